/**
 * One workspace seen by two processes: one inside a window, one outside. A change is made outside; both say what they
 * see, and the inside one how long it took until it saw the same.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { forgetExec, plainExec, type Workspace } from '../harness/forget.ts';
import { asUser, environmentOf, forgetFor, readableFor } from '../harness/users.ts';
import type { RunResult } from '../harness/watchdog.ts';

const programs = fileURLToPath(new URL('./programs', import.meta.url));

/** A program of this folder, where the workspace's user can read it. */
export function programFor(workspace: Workspace, name: string): string {
  return readableFor(workspace.user, join(programs, name));
}

type State = Record<string, unknown>;

interface Seen {
  /** Milliseconds of the monotonic clock. */
  at: number;
  /** What was not seen in the end: wanted and seen. */
  left: Record<string, [State, State]>;
}

/** A running view.py. */
class View {
  private readonly socket: Socket;
  private readonly answers: AsyncIterableIterator<string>;
  readonly ended: Promise<RunResult>;

  private constructor(socket: Socket, ended: Promise<RunResult>) {
    this.socket = socket;
    this.ended = ended;
    this.answers = createInterface({ input: socket })[Symbol.asyncIterator]();
  }

  static async open(path: string, ended: Promise<RunResult>): Promise<View> {
    const early = ended.then((result) => {
      throw new Error(`view.py ended (${result.code}): ${result.stderr}`);
    });
    early.catch(() => {});
    for (;;) {
      const socket = connect(path);
      const opened = new Promise<boolean>((resolve) => {
        socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      });
      if (await Promise.race([opened, early])) return new View(socket, ended);
      await delay(10);
    }
  }

  private async ask<T>(request: Record<string, unknown>): Promise<T> {
    this.socket.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await this.answers.next();
    if (done) throw new Error(`view.py ended: ${(await this.ended).stderr}`);
    return JSON.parse(value) as T;
  }

  states(paths: readonly string[]): Promise<Record<string, State>> {
    return this.ask({ do: 'states', paths });
  }

  until(states: Record<string, State>, timeout: number): Promise<Seen> {
    return this.ask({ do: 'until', states, timeout });
  }

  /** `name` starts with "@" and is a path from then on. */
  async hold(name: string, path: string, how: 'fd' | 'map' | 'cwd'): Promise<void> {
    await this.ask({ do: 'hold', name, path, how });
  }

  /** Runs a program to its end and returns its output. Throws where its exit code is not 0. */
  async run(...argv: string[]): Promise<string> {
    return this.output({ do: 'run', argv });
  }

  /** Starts one; `finish` waits for the one that was started first. */
  async start(...argv: string[]): Promise<void> {
    await this.ask({ do: 'start', argv });
  }

  finish(): Promise<string> {
    return this.output({ do: 'finish' });
  }

  private async output(request: Record<string, unknown>): Promise<string> {
    const { code, out, err } = await this.ask<{ code: number; out: string; err: string }>(request);
    assert.equal(code, 0, `${JSON.stringify(request)}: ${out}${err}`);
    return out;
  }

  async end(): Promise<RunResult> {
    this.socket.end();
    return this.ended;
  }
}

export interface Views {
  inside: View;
  outside: View;
  /** The process that serves the window. */
  server: number;
  /** What the window says of itself. */
  status(): {
    requests: Record<string, number>;
    notifications: number;
    memory: { rss: number; nodes: number };
  };
  /**
   * Makes a change of the lower and returns how many milliseconds later the inside saw all paths as they are outside.
   * Throws if that takes longer than 2 seconds.
   */
  shown(paths: readonly string[], change: () => void | Promise<void>): Promise<number>;
}

/** Runs a body with both views of a workspace open. */
export async function withViews(
  workspace: Workspace,
  body: (views: Views) => Promise<void>,
  options: { timeout?: number; name?: string } = {},
): Promise<void> {
  const program = programFor(workspace, 'view.py');
  const timeout = options.timeout ?? 100_000;
  const sockets = ['inside', 'outside'].map((side) =>
    join(workspace.top, `${side}${options.name ?? ''}.socket`),
  ) as [string, string];
  let server = 0;
  const insideRun = forgetExec(workspace, ['python3', program, sockets[0]], {
    timeout,
    started: (pid, mark) => {
      server = pid;
      workspace.marks.push(mark);
    },
  });
  const outsideRun = plainExec(workspace, ['python3', program, sockets[1]], { timeout });
  const inside = await View.open(sockets[0], insideRun);
  const outside = await View.open(sockets[1], outsideRun);
  const views: Views = {
    inside,
    outside,
    server,
    status() {
      const [command, ...rest] = asUser(workspace.user, [forgetFor(workspace.user), 'status', '--json']);
      // Other windows of this user may be stopped: what is said about them is no matter.
      const text = execFileSync(command!, rest, {
        env: environmentOf(workspace.user),
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      const all = JSON.parse(text) as { pid: number }[];
      return all.find(({ pid }) => pid === server) as unknown as ReturnType<Views['status']>;
    },
    async shown(paths, change) {
      const before = await outside.states(paths);
      // The kernel inside is to know all of it, and to have answered from what it knows.
      const known = await inside.until(before, 5);
      assert.deepEqual(known.left, {}, 'before the change');
      await change();
      const changed = Number(process.hrtime.bigint()) / 1e6;
      const after = await outside.states(paths);
      const seen = await inside.until(after, 2);
      assert.deepEqual(seen.left, {}, 'seen inside, two seconds after the change');
      return Math.max(0, seen.at - changed);
    },
  };
  try {
    await body(views);
  } finally {
    const [{ stderr }] = await Promise.all([inside.end(), outside.end()]);
    // Defects of forget itself are told at the close.
    if (stderr) console.log(stderr);
    assert.doesNotMatch(stderr, /internal error/);
  }
}
