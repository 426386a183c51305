/**
 * The main thread's end of the FUSE worker: starts it, writes the kernel notifications it asks for, asks it for
 * the window's state, ends it. Every wait is bounded.
 */
import type { Worker } from 'node:worker_threads';
import { O_CLOEXEC, O_NONBLOCK } from '../sys/constants.ts';
import { SysError } from '../sys/errno.ts';
import { close, errno, eventfd, write, writeInPool } from '../sys/libc.ts';
import { Failure } from './failure.ts';
import type { FromWorker, ToWorker, WindowState, WorkerStart } from './messages.ts';
import { takeWorker } from './worker.ts';

const START_MS = 20_000;
const ANSWER_MS = 10_000;
/** Notifications being written at once: one may wait for a directory that a process is busy in. */
const MOST_WRITES = 2;

const one = Buffer.alloc(8);
one.writeBigUInt64LE(1n);

export class Server {
  /** Settles when the loop has ended, for whatever reason: with the last state, unless the worker failed. */
  readonly ended: Promise<WindowState | undefined>;
  readonly defects: string[] = [];
  private readonly worker: Worker;
  private readonly wake: number;
  private readonly serving: Promise<void>;
  private device = -1;
  private readonly notifications: Uint8Array[] = [];
  private writes = 0;
  private readonly questions: ((state: WindowState) => void)[] = [];

  /** The worker does nothing before `serve`. */
  constructor() {
    this.wake = eventfd(0, O_CLOEXEC | O_NONBLOCK);
    if (this.wake < 0) throw new SysError(errno(), 'making an eventfd');
    this.worker = takeWorker();
    let nowServing: () => void = () => {};
    let nowEnded: (state?: WindowState) => void = () => {};
    this.serving = new Promise((resolve) => {
      nowServing = resolve;
    });
    this.ended = new Promise((resolve) => {
      nowEnded = resolve;
    });
    this.worker.on('message', (message: FromWorker) => {
      if (message.kind === 'serving') nowServing();
      else if (message.kind === 'ended') nowEnded(message.state);
      else if (message.kind === 'defect') this.defects.push(message.message);
      else if (message.kind === 'state') this.questions.shift()?.(message.state);
      else this.notify(message.messages);
    });
    this.worker.on('error', (error) => {
      this.defects.push(`the FUSE worker failed: ${error.stack ?? error.message}`);
      nowEnded();
    });
    this.worker.on('exit', () => nowEnded());
  }

  /** Begins to serve; the device must be mounted by now. Throws a Failure if the worker does not come up. */
  async serve(start: Omit<WorkerStart, 'wake'>): Promise<void> {
    this.device = start.device;
    this.send({ kind: 'serve', start: { ...start, wake: this.wake } });
    const outcome = await within(
      START_MS,
      Promise.race([this.serving, this.ended.then(() => 'ended' as const)]),
    );
    if (outcome === 'ended' || outcome === LATE) {
      throw new Failure(
        `the filesystem did not start: ${this.defects.join('\n') || 'no answer from its worker'}`,
      );
    }
  }

  /** Throws a Failure when no answer comes. */
  async state(): Promise<WindowState> {
    const answer = new Promise<WindowState>((resolve) => this.questions.push(resolve));
    this.send({ kind: 'ask' });
    const state = await within(ANSWER_MS, Promise.race([answer, this.ended]));
    if (state === LATE || state === undefined) throw new Failure(this.silence());
    return state;
  }

  /**
   * Ends the loop, if it still runs, and with it the connection: whoever is inside gets errors from then on. Returns
   * the last state; throws a Failure when none comes.
   */
  async finish(): Promise<WindowState> {
    this.send({ kind: 'stop' });
    const state = await within(ANSWER_MS, this.ended);
    if (state === LATE || state === undefined) throw new Failure(this.silence());
    return state;
  }

  /** Ends the thread as well. */
  async stop(): Promise<void> {
    this.send({ kind: 'stop' });
    await within(ANSWER_MS, this.ended);
    await within(ANSWER_MS, this.worker.terminate());
    close(this.wake);
  }

  private silence(): string {
    return `the filesystem gave no account: ${this.defects.join('\n') || 'its worker does not answer'}`;
  }

  private send(message: ToWorker): void {
    this.worker.postMessage(message);
    write(this.wake, one, 8);
  }

  private notify(messages: Uint8Array[]): void {
    this.notifications.push(...messages);
    while (this.writes < MOST_WRITES && this.notifications.length > 0) this.writeNext();
  }

  private writeNext(): void {
    const next = this.notifications.shift();
    if (!next) return;
    this.writes++;
    // Refusals are in order: the kernel does not know the name or the node any more.
    writeInPool(this.device, Buffer.from(next.buffer, next.byteOffset, next.length), () => {
      this.writes--;
      this.writeNext();
    });
  }
}

const LATE = Symbol('late');

async function within<T>(ms: number, promise: Promise<T>): Promise<T | typeof LATE> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<typeof LATE>((resolve) => {
    timer = setTimeout(() => resolve(LATE), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
