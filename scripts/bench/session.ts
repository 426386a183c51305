/** A driver (driver.mjs) running somewhere, and steps given to it one after the other. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export type Step =
  | { step: 'run'; argv: string[]; cwd?: string }
  | { step: 'read'; path: string }
  | { step: 'write'; path: string; bytes: number }
  | { step: 'create'; directory: string; count: number; bytes: number }
  | { step: 'stat'; paths: string[] };

export interface Timing {
  ms: number;
  /** Milliseconds of each single call, for `stat`. */
  each?: number[];
}

export const driver = fileURLToPath(new URL('./driver.mjs', import.meta.url));
/** A mount that hangs must not hang the run. */
const STEP_TIMEOUT_MS = 180_000;

export class Session {
  private readonly child: ChildProcess;
  private readonly answers: AsyncIterator<string>;
  private readonly lines: Interface;

  /** Starts the driver in `cwd`, behind the words of `prefix` (`forget exec ... --`, or nothing). */
  constructor(prefix: readonly string[], options: { cwd: string; env: NodeJS.ProcessEnv }) {
    const [program, ...args] = [...prefix, process.execPath, driver];
    this.child = spawn(program!, args, { ...options, stdio: ['pipe', 'pipe', 'inherit'] });
    this.lines = createInterface({ input: this.child.stdout! });
    this.answers = this.lines[Symbol.asyncIterator]();
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** Throws if the step failed, or was not done in time: the driver is killed then. */
  async do(step: Step): Promise<Timing> {
    this.child.stdin!.write(`${JSON.stringify(step)}\n`);
    const timer = setTimeout(() => this.child.kill('SIGKILL'), STEP_TIMEOUT_MS);
    const { value, done } = await this.answers.next();
    clearTimeout(timer);
    if (done) throw new Error(`the driver ended or hung at ${JSON.stringify(step).slice(0, 200)}`);
    const answer = JSON.parse(value) as Timing & { error?: string };
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
