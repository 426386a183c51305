/**
 * Runs a program so that a hang is a failed test with the kernel's stacks in its text, and never a stuck run.
 * Every process started here carries a mark in its environment, by which its descendants are found again however
 * far they drifted from their parent; nothing without that mark is ever signalled.
 */
import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { asUser, environmentOf, type User } from './users.ts';

export interface RunOptions {
  user: User;
  cwd: string | Buffer;
  /** Milliseconds after which the run counts as hung. Default 60,000. */
  timeout?: number;
  env?: Record<string, string>;
  input?: string | Buffer;
  /** Called with the program's pid as soon as it has one. */
  started?: (pid: number, mark: string) => void;
}

export interface RunResult {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  milliseconds: number;
  /** The mark of this run's processes, for `markedProcesses`. */
  mark: string;
}

export const MARK = 'FORGET_TEST_MARK';
let runs = 0;

/** A mark that no other run of any process has. */
export function newMark(): string {
  runs += 1;
  return `${process.pid}-${runs}-${Math.random().toString(36).slice(2)}`;
}

function procFile(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'latin1');
  } catch {
    return ''; // the process ended, or is another user's
  }
}

/** Pids that this process can see. */
export function allPids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** Live processes (zombies left out) whose environment at their start held `name=value`. */
export function processesWith(name: string, value: string): number[] {
  const wanted = `${name}=${value}`;
  return allPids().filter(
    (pid) =>
      procFile(pid, 'environ').split('\0').includes(wanted) &&
      !/^State:\s*[ZX]/m.test(procFile(pid, 'status')),
  );
}

export function markedProcesses(mark: string): number[] {
  return processesWith(MARK, mark);
}

/** A process as a person names it: pid, state and command line. */
export function describeProcess(pid: number): string {
  const state = /^State:\s*(\S)/m.exec(procFile(pid, 'status'))?.[1] ?? '?';
  return `${pid} [${state}] ${procFile(pid, 'cmdline').split('\0').join(' ').trim().slice(0, 200)}`;
}

/** The short name of the program that a process runs; empty when it has ended. */
export function programOf(pid: number): string {
  return procFile(pid, 'comm').trim();
}

export interface ForgetMount {
  mountpoint: string;
  /** The minor device number, which is the connection's number under /sys/fs/fuse/connections. */
  connection: number;
  pid: number;
}

/** Mounts of type fuse.forget in the mount namespaces of `pids`, each connection once. */
export function forgetMounts(pids: readonly number[]): ForgetMount[] {
  const found = new Map<string, ForgetMount>();
  for (const pid of pids) {
    for (const line of procFile(pid, 'mountinfo').split('\n')) {
      if (!/ - fuse\.forget /.test(line)) continue;
      const fields = line.split(' ');
      const connection = Number(fields[2]!.split(':')[1]);
      const mountpoint = fields[4]!;
      found.set(`${connection} ${mountpoint}`, { mountpoint, connection, pid });
    }
  }
  return [...found.values()];
}

/** A process with each of its threads: where it waits, and the kernel's stack (root only). */
export function stacksOf(pid: number): string {
  const lines = [describeProcess(pid)];
  let threads: string[] = [];
  try {
    threads = readdirSync(`/proc/${pid}/task`);
  } catch {
    return lines[0]!;
  }
  for (const thread of threads) {
    const at = `task/${thread}`;
    lines.push(`  thread ${thread} ${procFile(pid, `${at}/comm`).trim()} in ${procFile(pid, `${at}/wchan`)}`);
    lines.push(
      ...procFile(pid, `${at}/stack`)
        .split('\n')
        .filter(Boolean)
        .slice(0, 14)
        .map((line) => `    ${line}`),
    );
  }
  return lines.join('\n');
}

// The control filesystem is mounted in a namespace of the helper alone, since not every machine has it in place.
const CONTROL = `cd /sys/fs/fuse/connections
[ "$(ls)" ] || { mount -t fusectl fusectl . && cd /sys/fs/fuse/connections; }
`;

function withConnections(script: string, ...args: string[]): string {
  const argv = ['--mount', 'sh', '-c', `${CONTROL}${script}`, 'sh', ...args];
  return spawnSync('unshare', argv, { timeout: 5000, encoding: 'utf8' }).stdout;
}

/** Ends FUSE connections whatever their server does. Needs root; without it, killing the server has to do. */
function abortConnections(connections: readonly number[]): void {
  withConnections('for one; do echo 1 > "$one/abort"; done', ...connections.map(String));
}

/**
 * Connections whose mount no process sees any more: a thread of a dead server that waits for its own server keeps
 * one alive, and itself, for ever (state D; it holds the descriptor whose end would end the wait).
 */
export function orphanedConnections(): number[] {
  // Before the search, which takes its time: one that is made meanwhile is somebody's.
  const connections = withConnections('ls').split('\n').filter(Boolean).map(Number);
  const seen = new Set<number>();
  for (const pid of allPids()) {
    for (const line of procFile(pid, 'mountinfo').split('\n')) {
      const [major, minor] = (line.split(' ')[2] ?? '').split(':');
      if (major === '0') seen.add(Number(minor));
    }
  }
  return connections.filter((one) => !seen.has(one));
}

/** Signals each process that is still there: a list of processes is old the moment it is read. */
export function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

/** Ends every process with `mark` and the FUSE connections they see; returns their stacks before that. */
export async function endMarked(mark: string): Promise<string> {
  const pids = markedProcesses(mark);
  const text = pids.map(stacksOf).join('\n');
  const connections = forgetMounts(pids).map((mount) => mount.connection);
  if (connections.length > 0) abortConnections(connections);
  for (let round = 0; round < 20; round++) {
    const left = markedProcesses(mark);
    if (left.length === 0) break;
    signalAll(left, 'SIGKILL');
    await delay(50);
    if (round === 10) abortConnections(orphanedConnections());
  }
  return text;
}

/** Runs `argv` as a user until it ends and its output is closed. Throws, with stacks, when that takes too long. */
export async function runWatched(argv: readonly string[], options: RunOptions): Promise<RunResult> {
  const mark = newMark();
  const begun = performance.now();
  const [program, ...rest] = asUser(options.user, argv);
  const child = spawn(program!, rest, {
    cwd: options.cwd as string,
    env: environmentOf(options.user, { ...options.env, [MARK]: mark }),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
  child.stdin.on('error', () => {}); // the program need not read what it is given
  child.stdin.end(options.input ?? '');
  const text = (chunks: Buffer[]) => Buffer.concat(chunks).toString('utf8');

  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  if (child.pid !== undefined) options.started?.(child.pid, mark);
  const timeout = options.timeout ?? 60_000;
  const timer = new AbortController();
  const hung = delay(timeout, 'hung' as const, { signal: timer.signal }).catch(() => 'hung' as const);
  const first = await Promise.race([ended, hung]);
  if (first === 'hung') {
    const stacks = await endMarked(mark);
    throw new Error(
      `hung for ${timeout} ms: ${argv.join(' ')}\n${stacks}\nstdout: ${text(out).slice(-4000)}\nstderr: ${text(err).slice(-4000)}`,
    );
  }
  timer.abort();
  return { ...first, stdout: text(out), stderr: text(err), milliseconds: performance.now() - begun, mark };
}
