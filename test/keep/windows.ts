/**
 * A window that stays open while a test looks into it from outside: `forget exec` of a shell that is told what to do. All
 * ended afterwards.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { withWorkspace } from '../cases/window.ts';
import type { Workspace, WorkspaceShape } from '../harness/forget.ts';
import { asUser, environmentOf, forgetFor, type User } from '../harness/users.ts';
import { MARK, newMark, type RunResult, runWatched } from '../harness/watchdog.ts';

export interface OpenWindow {
  workspace: Workspace;
  id: string;
  /** Process id of forget. */
  pid: number;
  /** Runs a script inside, in the workspace; its output. Throws where it fails. */
  inside(script: string): Promise<string>;
  /** `forget ARGS --window ID` outside, in the workspace. */
  forget(...args: string[]): Promise<RunResult>;
  /** Ends the command, and with it the window. */
  close(code?: number): Promise<{ code: number | null; stderr: string }>;
}

const WITHIN_MS = 20_000;

export async function openWindow(
  workspace: Workspace,
  options: readonly string[] = [],
  env: Record<string, string> = {},
): Promise<OpenWindow> {
  const { user } = workspace;
  const mark = newMark();
  workspace.marks.push(mark);
  const line = asUser(user, [forgetFor(user), 'exec', '--verbose', ...options, '--', 'sh', '-s']);
  const child = spawn(line[0]!, line.slice(1), {
    cwd: workspace.path,
    env: environmentOf(user, { ...env, [MARK]: mark }),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk;
  });
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk;
  });
  child.stdin.on('error', () => {}); // it may be killed
  const ended = once(child, 'close') as Promise<[number | null]>;
  let count = 0;
  const inside = async (script: string) => {
    const end = `@@${++count} `;
    child.stdin.write(`(set -e; ${script}\n) 2>&1 </dev/null; echo "${end}$?"\n`);
    const before = out.length;
    const deadline = Date.now() + WITHIN_MS;
    for (;;) {
      const found = new RegExp(`${end}(\\d+)\n`).exec(out.slice(before));
      if (found) {
        const text = out.slice(before, before + found.index);
        if (found[1] !== '0') throw new Error(`inside: ${script}\nexit ${found[1]}: ${text}\n${err}`);
        return text;
      }
      if (Date.now() > deadline || child.exitCode !== null)
        throw new Error(`inside: ${script}\n${out}\n${err}`);
      await delay(5);
    }
  };
  const id = (await inside('echo $FORGET_WINDOW')).trim();
  const forget = (...args: string[]) => outside(workspace, user, [...args, '--window', id]);
  const close = async (code = 0) => {
    child.stdin.end(`exit ${code}\n`);
    const [status] = await ended;
    return { code: status, stderr: err };
  };
  return { workspace, id, pid: child.pid!, inside, forget, close };
}

/** `forget ARGS` in the workspace. */
export function outside(workspace: Workspace, user: User, args: readonly string[]): Promise<RunResult> {
  return runWatched([forgetFor(user), ...args], {
    user,
    cwd: workspace.path,
    timeout: WITHIN_MS,
    started: (_, mark) => workspace.marks.push(mark),
  });
}

/** A test with an open window, as each user. */
export function withOpenWindow(
  title: string,
  body: (window: OpenWindow) => Promise<void>,
  given: {
    options?: readonly string[];
    users?: readonly User[];
    shape?: WorkspaceShape;
  } = {},
): void {
  withWorkspace(
    title,
    async (workspace) => {
      const window = await openWindow(workspace, given.options);
      await body(window);
    },
    {
      ...(given.users && { users: given.users }),
      ...(given.shape && { shape: given.shape }),
      timeout: 60_000,
    },
  );
}
