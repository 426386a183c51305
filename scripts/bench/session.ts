/** A driver (driver.mjs) running somewhere, and steps given to it one after the other. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export type Step =
  | { step: 'window' }
  | { step: 'run'; argv: string[]; cwd?: string }
  | { step: 'read'; path: string }
  | { step: 'write'; path: string; bytes: number }
  | { step: 'create'; directory: string; count: number; bytes: number }
  | { step: 'stat'; paths: string[] };

export interface Outcome {
  ms: number;
  /** `stat`: milliseconds of each call. `window`: the id of the window that the driver is in. */
  value?: unknown;
}

export const driver = fileURLToPath(new URL('./driver.mjs', import.meta.url));
/** A mount that hangs must not hang the run. */
const STEP_TIMEOUT_MS = 180_000;
/** forget watches from its 50th millisecond on, and takes back then what the kernel has learned before. */
const SETTLE_MS = 150;

export interface SessionOptions {
  cwd: string;
  env: NodeJS.ProcessEnv;
  /** Where the session's user finds driver.mjs. Default: here. */
  driver?: string;
  /** Milliseconds before the first step. */
  settle?: number;
}

export class Session {
  private readonly child: ChildProcess;
  private readonly answers: AsyncIterator<string>;

  /** The window that the driver runs in; undefined where it is none. */
  window: string | undefined;

  /** Starts the driver in `cwd`, behind the words of `prefix` (`forget exec ... --`, or nothing). */
  static async start(prefix: readonly string[], options: SessionOptions): Promise<Session> {
    const session = new Session([...prefix, process.execPath, options.driver ?? driver], options);
    session.window = (await session.do({ step: 'window' })).value as string | undefined;
    await delay(options.settle ?? SETTLE_MS);
    return session;
  }

  private constructor([program, ...args]: string[], { cwd, env }: SessionOptions) {
    this.child = spawn(program!, args, { cwd, env, stdio: ['pipe', 'pipe', 'inherit'] });
    this.answers = createInterface({ input: this.child.stdout! })[Symbol.asyncIterator]();
  }

  /** Throws if the step failed, or was not done in time: the driver is killed then. */
  async do(step: Step): Promise<Outcome> {
    this.child.stdin!.write(`${JSON.stringify(step)}\n`);
    const timer = setTimeout(() => this.child.kill('SIGKILL'), STEP_TIMEOUT_MS);
    const { value, done } = await this.answers.next();
    clearTimeout(timer);
    if (done) throw new Error(`the driver ended or hung at ${JSON.stringify(step).slice(0, 200)}`);
    const answer = JSON.parse(value) as Outcome & { error?: string };
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer;
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    this.child.stdin!.end();
    await ended;
  }
}
