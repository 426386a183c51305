/**
 * A long day in minutes: an agent's mix of work in 8 processes inside one window, with edits from outside, other
 * windows that open and close on the same workspace, and a mount that comes and goes. What is read is checked all
 * along; the server's memory, descriptors and nodes are sampled.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chownSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import {
  disposeWorkspace,
  makeWorkspace,
  protectedDifferences,
  type Workspace,
} from '../../test/harness/forget.ts';
import { isProtectedByDefault } from '../../test/harness/protected.ts';
import { snapshot } from '../../test/harness/tree.ts';
import { asUser, environmentOf, forgetFor, idsOf, readableFor, type User } from '../../test/harness/users.ts';
import { endMarked, MARK, markedProcesses, newMark } from '../../test/harness/watchdog.ts';
import { complaints, growthOf, type Sample, sampleProcess } from './samples.ts';

const worker = fileURLToPath(new URL('./worker.py', import.meta.url));
const run = promisify(execFile);

export interface SoakOptions {
  seconds: number;
  user: User;
  processes: number;
  seed: string;
  sampleEverySeconds: number;
  /** Called with each sample as it is taken. */
  onSample?: (sample: Sample) => void;
}

export interface SoakResult {
  samples: Sample[];
  /** Sentences; none when all went well. */
  wrong: string[];
  /** Windows and mounts that were opened and closed beside. */
  windows: number;
  mounts: number;
  outsideEdits: number;
  /** Nodes in the quiet time after the work, and at most before. */
  nodes: { most: number; quiet: number };
}

interface Report {
  errors: unknown[];
  defects: string[];
  leftovers: unknown[];
}

const BIG = 24 << 20;

class Soak {
  private readonly options: SoakOptions;
  private readonly workspace: Workspace;
  private readonly mark = newMark();
  private readonly env: Record<string, string>;
  private readonly wrong: string[] = [];
  private readonly samples: Sample[] = [];
  private readonly begun = Date.now();
  private over = false;
  private windows = 0;
  private mounts = 0;
  private edits = 0;
  private quietNodes: number | undefined;
  private quiet = false;

  constructor(options: SoakOptions, workspace: Workspace) {
    this.options = options;
    this.workspace = workspace;
    this.env = environmentOf(options.user, { [MARK]: this.mark });
  }

  /** What the window finds: files of the lower to delete and to copy up. */
  private prepare(): void {
    const { workspace, options } = this;
    const { uid, gid } = idsOf(options.user);
    const put = (path: string, text: string) => {
      writeFileSync(join(workspace.path, path), text);
      chownSync(join(workspace.path, path), uid, gid);
    };
    for (let n = 0; n < options.processes; n++) put(`memory/given-w${n}.md`, `given to ${n}\n`);
    put('logs/big.jsonl', `{"line":"${'x'.repeat(98)}"}\n`.repeat(BIG / 110));
    mkdirSync(join(workspace.path, 'outside'));
    this.editOutside();
    workspace.before = snapshot(workspace.path);
  }

  private editOutside(): void {
    const n = this.edits++;
    const path = join(this.workspace.path, 'outside/stamp.json');
    writeFileSync(`${path}.next`, JSON.stringify({ n, pad: 'x'.repeat(n % 5000) }));
    renameSync(`${path}.next`, path);
    writeFileSync(join(this.workspace.path, `src/outside${n % 20}.py`), `import os\nprint(${n})\n`);
  }

  private command(argv: readonly string[]): [string, string[]] {
    const [program, ...rest] = asUser(this.options.user, argv);
    return [program!, rest];
  }

  private forget(...argv: string[]): Promise<{ stdout: string; stderr: string }> {
    const [program, rest] = this.command([forgetFor(this.options.user), ...argv]);
    return run(program, rest, {
      cwd: this.workspace.path,
      env: this.env,
      timeout: 120_000,
      maxBuffer: 64 << 20,
    });
  }

  private note(what: string, error: unknown): void {
    const { stderr, message } = error as { stderr?: string; message: string };
    this.wrong.push(`${what}: ${message}${stderr ? `\n${stderr}` : ''}`.slice(0, 2000));
  }

  private async repeat(what: string, pauseMs: number, action: () => Promise<void> | void): Promise<void> {
    while (!this.over && this.wrong.length < 20) {
      try {
        await action();
      } catch (error) {
        this.note(what, error);
      }
      await sleep(pauseMs);
    }
  }

  /** A short window of its own: sees the lower, not the long one's protected writes, and copies a large file up. */
  private async shortWindow(): Promise<void> {
    const script = `set -e
[ "$(cat memory/given-w0.md)" = 'given to 0' ]
echo more >>logs/big.jsonl; [ "$(tail -n 1 logs/big.jsonl)" = more ]
echo leak >memory/given-w1.md; rm -r memory/people; [ ! -e memory/people ]
ls -R . >/dev/null 2>&1 || true`;
    const { stderr } = await this.forget('exec', '--quiet', '--', 'sh', '-c', script);
    if (stderr) throw new Error(stderr);
    this.windows++;
  }

  private async shortMount(at: string): Promise<void> {
    await this.forget('mount', this.workspace.path, at);
    let failure: unknown;
    try {
      const script =
        'set -e; cd "$1"; echo leak >>memory/old.md; for i in 1 2 3 4 5; do cat MEMORY.md >/dev/null; find src >/dev/null; sleep 0.3; done';
      const [program, rest] = this.command(['sh', '-c', script, 'sh', at]);
      await run(program, rest, { cwd: '/', env: this.env, timeout: 120_000 });
    } catch (error) {
      failure = error;
    }
    await this.forget('unmount', at).catch((error) => {
      failure ??= error;
    });
    if (failure) throw failure;
    this.mounts++;
  }

  private async sample(pid: number): Promise<void> {
    const part = sampleProcess(pid);
    const { stdout } = await this.forget('status', '--json');
    const windows = JSON.parse(stdout) as {
      pid: number;
      memory: { nodes: number };
      requests: Record<string, number>;
    }[];
    const status = windows.find((window) => window.pid === pid);
    if (!part || !status) return;
    const sample: Sample = {
      seconds: Math.round((Date.now() - this.begun) / 1000),
      ...part,
      nodes: status.memory.nodes,
      requests: Object.values(status.requests).reduce((sum, count) => sum + count, 0),
    };
    if (this.quiet) this.quietNodes = sample.nodes;
    else {
      this.samples.push(sample);
      this.options.onSample?.(sample);
    }
  }

  private start(report: string): { child: ChildProcess; ended: Promise<string> } {
    const { options, workspace } = this;
    const work = ['python3', readableFor(options.user, worker), 'all', `${options.processes}`];
    const [program, rest] = this.command([
      ...[forgetFor(options.user), 'exec', '--report', report, '--'],
      ...[...work, `${options.seconds}`, options.seed],
    ]);
    const child = spawn(program, rest, {
      cwd: workspace.path,
      env: this.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let errors = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (text.includes('quiet\n')) this.quiet = true;
    });
    const ended = new Promise<string>((resolve) => {
      child.once('close', (code, signal) => resolve(`${signal ?? code}\n${errors}`));
    });
    return { child, ended };
  }

  async go(): Promise<SoakResult> {
    const { options, workspace } = this;
    this.prepare();
    const report = join(workspace.top, 'report.json');
    const at = join(workspace.top, 'view');
    mkdirSync(at);
    const { child, ended } = this.start(report);
    // setpriv, sh and unshare each become the next: the pid is that of forget.
    const pid = child.pid!;
    const besides = [
      this.repeat('an edit from outside', 50, () => this.editOutside()),
      this.repeat('a window beside', 1000, () => this.shortWindow()),
      this.repeat('a sample', options.sampleEverySeconds * 1000, () => this.sample(pid)),
    ];
    // An ordinary user's mount needs an account, which not every machine's has.
    if (options.user === 'root') besides.push(this.repeat('a mount beside', 3000, () => this.shortMount(at)));
    const [code, ...said] = (await ended).split('\n');
    this.over = true;
    await Promise.all(besides);
    if (code !== '0') this.wrong.push(`the work ended with ${code}`);
    // forget's report, and nothing else.
    const unexpected = said.filter((line) => line && !/^(forget: | {2})/.test(line));
    if (unexpected.length > 0) this.wrong.push(`stderr: ${unexpected.join('\n').slice(0, 4000)}`);
    this.judge(JSON.parse(readFileSync(report, 'utf8')) as Report);
    const most = Math.max(0, ...this.samples.map(({ nodes }) => nodes ?? 0));
    return {
      samples: this.samples,
      wrong: this.wrong,
      windows: this.windows,
      mounts: this.mounts,
      outsideEdits: this.edits,
      nodes: { most, quiet: this.quietNodes ?? Number.NaN },
    };
  }

  private judge({ errors, defects, leftovers }: Report): void {
    for (const [what, list] of Object.entries({ errors, defects, leftovers })) {
      if (list.length > 0) this.wrong.push(`${what} in the report: ${JSON.stringify(list).slice(0, 2000)}`);
    }
    this.wrong.push(...protectedDifferences(this.workspace, isProtectedByDefault));
    this.wrong.push(...complaints(growthOf(this.samples)));
    const left = markedProcesses(this.mark);
    if (left.length > 0) this.wrong.push(`processes are left: ${left.join(', ')}`);
  }

  end(): Promise<unknown> {
    return endMarked(this.mark);
  }
}

export async function soak(options: SoakOptions): Promise<SoakResult> {
  const workspace = makeWorkspace(options.user);
  const one = new Soak(options, workspace);
  try {
    return await one.go();
  } finally {
    await one.end();
    await disposeWorkspace(workspace);
  }
}
