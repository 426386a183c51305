/**
 * One run of the differential fuzzer: a sequence of operations on a plain directory and in a window, and what the
 * lower must be when the window has closed. The sequence is a function of the seed; programs/ has the operations.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { disposeWorkspace, forgetExec, makeWorkspace, plainExec, type Workspace } from '../harness/forget.ts';
import { snapshot } from '../harness/tree.ts';
import { asUser, environmentOf, idsOf, readableFor, type User } from '../harness/users.ts';
import { judgeLower } from './judge.ts';

export const MODES = ['protected', 'unprotected', 'mixed', 'outside'] as const;
export type Mode = (typeof MODES)[number];

const programs = fileURLToPath(new URL('./programs', import.meta.url));

/** As generate.py prints it; what else it holds is the programs' affair. */
export interface Operation {
  n: number;
  worker: number;
  do: string;
  [argument: string]: unknown;
}

export interface LogEntry {
  op: Operation;
  mount: unknown;
  plain?: unknown;
  names?: Record<string, string | null>;
  excused?: string;
}

/** What twin.py writes. */
export interface Outcome {
  difference: { what: string; mount: unknown; plain: unknown } | null;
  performed: number;
  /** How often each documented difference came up. */
  excused: Record<string, number>;
  /** Milliseconds until each outside operation on a file with one name was seen inside. */
  settled: number[];
  log: LogEntry[];
  /** Paths whose files must not be in the lower. */
  caught: string[];
  /** Unprotected paths at which the lower may have what the window hid or moved away. */
  originals: string[];
  /** What was written to caught files: none of it may be in the lower. */
  secrets: string[];
}

export interface Sequence {
  seed: number;
  mode: Mode;
  user: User;
  operations: readonly Operation[];
}

export interface Finding extends Outcome {
  /** The difference first, then what is wrong with the lower afterwards; empty when all is as it should be. */
  wrong: string[];
}

function python(user: User, program: string, ...args: string[]): string {
  const [command, ...rest] = asUser(user, ['python3', join(readableFor(user, programs), program), ...args]);
  return execFileSync(command!, rest, { env: environmentOf(user), encoding: 'utf8', maxBuffer: 1 << 28 });
}

/** The sequence of a seed: the same on every machine. */
export function generate(seed: number, count: number, mode: Mode, user: User): Sequence {
  const text = python(user, 'generate.py', String(seed), String(count), mode, user);
  return { seed, mode, user, operations: JSON.parse(text) as Operation[] };
}

function ownDirectory(path: string, user: User): string {
  mkdirSync(path);
  const { uid, gid } = idsOf(user);
  chownSync(path, uid, gid);
  return path;
}

/** A worker on the lower itself, outside the window; it ends with the window that asks it. */
async function startOutside(workspace: Workspace, at: string): Promise<void> {
  const argv = ['python3', join(readableFor(workspace.user, programs), 'perform.py'), at, workspace.path];
  const ended = plainExec(workspace, argv, { cwd: workspace.top, timeout: 600_000 });
  while (!existsSync(at)) {
    const early = await Promise.race([ended, delay(20)]);
    if (early) throw new Error(`the outside worker ended: ${early.stderr}`);
  }
  ended.catch(() => {}); // a hung window is told by forgetExec, which waits for less
}

/** Runs a sequence in a window of its own, and judges the lower after it. */
export async function runSequence(sequence: Sequence, timeout = 120_000): Promise<Finding> {
  const { mode, user, operations } = sequence;
  const workspace = makeWorkspace(user, { empty: true });
  try {
    chmodSync(workspace.top, 0o755); // one of root's workers is another user
    const plain = join(ownDirectory(join(workspace.top, 'plain'), user), 'ws');
    ownDirectory(plain, user);
    for (const top of [plain, workspace.path]) python(user, 'names.py', top, mode);
    workspace.before = snapshot(workspace.path);
    const [run, out, outside] = ['run.json', 'out.json', 'outside'].map((name) => join(workspace.top, name));
    if (mode === 'outside') await startOutside(workspace, outside!);
    writeFileSync(
      run!,
      JSON.stringify({
        plain,
        mount: workspace.path,
        mode,
        operations,
        out,
        ...(mode === 'outside' && { outside }),
      }),
    );
    const argv = ['python3', join(readableFor(user, programs), 'twin.py'), run!];
    const result = await forgetExec(workspace, argv, { timeout, cwd: workspace.path });
    if (result.code !== 0 || !existsSync(out!)) {
      throw new Error(`the run ended with ${result.code ?? result.signal}: ${result.stdout}${result.stderr}`);
    }
    const outcome = JSON.parse(readFileSync(out!, 'utf8')) as Outcome;
    const wrong = outcome.difference
      ? [
          `${outcome.difference.what}\n  mount: ${JSON.stringify(outcome.difference.mount)}\n  plain: ${JSON.stringify(outcome.difference.plain)}`,
        ]
      : judgeLower(workspace.before, plain, workspace.path, mode, outcome);
    return { ...outcome, wrong };
  } finally {
    await disposeWorkspace(workspace);
  }
}
