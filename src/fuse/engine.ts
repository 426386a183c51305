/**
 * Serving requests: reads one from /dev/fuse, has it handled, writes the answer, and so on until there is none. It
 * runs on the main thread, called by the event loop when the device is readable. State: the buffers of the request in
 * hand and of its reply, the counters, and the work to do between requests.
 *
 * A handler that would have to wait for a disk puts the request aside and answers it later (`postpone`, `defer`).
 * Between requests the loop looks at other descriptors (inotify). It ends when the kernel says so (unmount, abort), when
 * `stop` is called, or when it fails itself; in every case it gives up the device, so that no process waits for an
 * answer that nobody will give.
 */
import { monotonicMs } from '../sys/clock.ts';
import { POLLIN } from '../sys/constants.ts';
import { EAGAIN, EINTR, EIO, ENODEV, ENOENT, errnoName, isOutOfSpace, SysError } from '../sys/errno.ts';
import { errno, poll, read, write } from '../sys/libc.ts';
import { leadNowhere } from '../sys/nowhere.ts';
import { whenReadable } from '../sys/readable.ts';
import { MAX_OPCODE, Op, OUT_HEADER_SIZE, opName, REQUEST_BUFFER_SIZE } from './abi.ts';
import { dispatch } from './dispatch.ts';
import {
  type Caller,
  DEFERRED,
  type Driver,
  type DriverEvents,
  type Handler,
  type Postponed,
} from './handler.ts';
import { handshake } from './handshake.ts';
import { PagePipe } from './page-pipe.ts';
import { Reply } from './reply.ts';
import { Request } from './request.ts';

/** How long /dev/fuse is asked again before the event loop sleeps: a wake-up costs 20-100 us, a look 0.5 us. */
const SPIN_MS = 0.2;
/** The same where requests have lately come further apart, so that a core is not burned for nothing. */
const SHORT_SPIN_MS = 0.02;
/** Below this share of spins that met a request they are short, but for every `PROBE_EVERY`th. */
const WORTHWHILE = 0.3;
const PROBE_EVERY = 8;
/** Timers, signals and sockets of this process wait no longer than this behind requests. */
const ROUND_MS = 10;
/** A look at the watched descriptors at least every so many requests, however busy the mount is. */
const WATCH_EVERY = 64;
/** A look at the clock every so many requests, and every so many looks at the device: it is an array each time. */
const CLOCK_EVERY = 4;

/** A descriptor to look at besides the device. */
export interface Watched {
  fd: number;
  ready(): void;
}

/** struct pollfd */
const POLL_ENTRY_SIZE = 8;

function pollEntry(fd: number): Buffer {
  const entry = Buffer.alloc(POLL_ENTRY_SIZE);
  entry.writeInt32LE(fd, 0);
  entry.writeInt16LE(POLLIN, 4);
  return entry;
}

export class Engine implements Driver {
  /** Requests answered so far, by opcode. */
  readonly counts = new Float64Array(MAX_OPCODE + 1);
  private readonly device: number;
  private readonly handler: Handler;
  private readonly events: DriverEvents;
  private readonly request = new Request();
  private readonly reply = new Reply();
  private readonly pages = new PagePipe();
  private readonly header = Buffer.alloc(OUT_HEADER_SIZE);
  private readonly caller: Caller = { uid: 0, gid: 0, pid: 0, umask: 0 };
  private readonly watched: Watched[] = [];
  private pollSet = Buffer.alloc(0);
  /** The devices of other engines on this thread, which must not wait for this one's spin. */
  private otherDevices = Buffer.alloc(0);
  private readonly handles: { stop(): void }[] = [];
  private readonly replays: Buffer[] = [];
  /** Requests that found no space, to be tried once more when all that the kernel has queued is worked off. */
  private readonly retries: Buffer[] = [];
  private retriesDue = 0;
  /** Whether an ENOSPC or EDQUOT of the request in hand is final. */
  lastTry = false;
  private extendedSetxattr = false;
  private running = true;
  /** Answers owed by `postpone`. */
  private owed = 0;
  /** The share of the last spins that met a request: a moving average. */
  private spinsMet = 1;
  private spins = 0;
  /** Called after each request, when nothing of it is in use any more. */
  afterRequest: () => void = () => {};
  /** Called when there is nothing to do for now. */
  idle: () => void = () => {};
  /** Called before what found no space is tried again. */
  makeSpace: () => void = () => {};

  constructor(device: number, handler: Handler, events: DriverEvents) {
    this.device = device;
    this.handler = handler;
    this.events = events;
  }

  watch(watched: Watched): void {
    this.watched.push(watched);
    this.pollSet = Buffer.concat([this.pollSet, pollEntry(watched.fd)]);
  }

  besides(devices: readonly number[]): void {
    this.otherDevices = Buffer.concat(devices.map(pollEntry));
  }

  private othersHaveRequests(): boolean {
    const { length } = this.otherDevices;
    return length > 0 && poll(this.otherDevices, length / POLL_ENTRY_SIZE, 0) > 0;
  }

  /**
   * For a handler that cannot answer yet and returns DEFERRED: the request in hand goes to `list`, to be
   * handled from its beginning when the list is given to `replay`.
   */
  defer(list: Buffer[]): typeof DEFERRED {
    list.push(this.request.save());
    return DEFERRED;
  }

  /** Has all that was put aside handled again; from outside the loop too. */
  replay(list: Buffer[]): void {
    if (list.length === 0) return;
    this.replays.push(...list.splice(0));
    setImmediate(() => this.pump());
  }

  /** Like `replay`, for what met ENOSPC or EDQUOT: when all that the kernel has queued is worked off, and for the last time. */
  retry(list: Buffer[]): void {
    this.retries.push(...list.splice(0));
    setImmediate(() => this.pump());
  }

  /** Answers all that was put aside with an error. */
  fail(list: Buffer[], error: number): void {
    for (const saved of list.splice(0)) {
      const out = this.header;
      saved.copy(out, 8, 8, 16); // the unique
      this.send(out, OUT_HEADER_SIZE, -error);
    }
  }

  /** For a handler that returns DEFERRED and answers when its work, done elsewhere, is. */
  postpone(): Postponed {
    const { uniqueLow, uniqueHigh, opcode } = this.request;
    this.owed++;
    return {
      answer: (outcome, put) => {
        this.owed--;
        const { reply } = this;
        reply.begin();
        if (outcome === 0) put?.(reply);
        const length = reply.finish(uniqueLow, uniqueHigh, outcome);
        if (this.running && write(this.device, reply.bytes, length) < 0) this.refused(errno(), opcode);
      },
      answerWith: (message, length) => {
        this.owed--;
        message.writeUInt32LE(uniqueLow, 8);
        message.writeUInt32LE(uniqueHigh, 12);
        this.send(message, OUT_HEADER_SIZE + length, 0, opcode);
      },
    };
  }

  answerFromFile(fd: number, offset: number, size: number): boolean {
    const { request, reply } = this;
    reply.begin();
    reply.commit(size);
    reply.finish(request.uniqueLow, request.uniqueHigh, 0);
    const sent = this.pages.send(this.device, reply.bytes, fd, offset, size);
    if (!sent) reply.begin();
    return sent;
  }

  private send(message: Buffer, length: number, code: number, opcode = 0): void {
    if (!this.running) return; // the descriptor's number may be another's by now
    message.writeUInt32LE(length, 0);
    message.writeInt32LE(code, 4);
    if (write(this.device, message, length) < 0) this.refused(errno(), opcode);
  }

  /** Begins to serve; the device must be mounted (a read before that fails). */
  start(): void {
    this.handles.push(whenReadable(this.device, () => this.pump()));
    for (const { fd, ready } of this.watched) this.handles.push(whenReadable(fd, ready));
  }

  stop(): void {
    if (!this.running) return;
    this.running = false;
    for (const handle of this.handles) handle.stop();
    this.pages.close();
    leadNowhere([this.device]); // a notification may be about to be written to it
    this.events.ended();
  }

  /** Requests by name, those that came at all. */
  requestCounts(): Record<string, number> {
    const out: Record<string, number> = {};
    for (let op = 0; op <= MAX_OPCODE; op++) if (this.counts[op]! > 0) out[opName(op)] = this.counts[op]!;
    return out;
  }

  /** Serves all there is, for `ROUND_MS` at the most. Throws nothing. */
  pump(): void {
    const until = monotonicMs() + ROUND_MS;
    let sinceWatch = 0;
    try {
      while (this.running) {
        const got = this.next();
        if (got === 'end') this.stop();
        else if (got === 'request') {
          this.serve();
          this.afterRequest();
        } else {
          this.betweenRequests();
          this.idle();
          return;
        }
        if (++sinceWatch >= WATCH_EVERY) {
          sinceWatch = 0;
          this.betweenRequests();
          if (this.othersHaveRequests()) break;
        }
        if (sinceWatch % CLOCK_EVERY === 0 && monotonicMs() > until) break;
      }
    } catch (error) {
      this.events.defect('serving failed', error);
      this.stop();
    }
    // What is not in the device will not call back.
    const pending = this.replays.length > 0 || this.retries.length > 0;
    if (this.running && pending) setImmediate(() => this.pump());
  }

  /** Puts the next request into the buffer: one that was put aside, or one from the device, after a spin. */
  private next(): 'request' | 'nothing' | 'end' {
    this.lastTry = this.retriesDue > 0;
    const saved = this.lastTry ? this.retries.shift() : this.replays.shift();
    if (this.lastTry) this.retriesDue--;
    if (saved) {
      this.request.restore(saved);
      return 'request';
    }
    let until = 0;
    for (let looks = 0; ; looks++) {
      const n = read(this.device, this.request.bytes, REQUEST_BUFFER_SIZE);
      if (n > 0) {
        if (until !== 0) this.noteSpin(true);
        this.request.length = n;
        return 'request';
      }
      const error = errno();
      // ENOENT: the request was interrupted before it was read. ENODEV: unmounted or aborted.
      if (n === 0 || error === ENODEV) return 'end';
      if (error !== EAGAIN && error !== ENOENT && error !== EINTR)
        throw new SysError(error, 'reading /dev/fuse');
      if (this.retries.length > 0) {
        this.makeSpace();
        this.retriesDue = this.retries.length;
        return this.next();
      }
      // A pool thread's answer comes through the event loop, which must not wait for a spin.
      if (this.owed > 0 || this.othersHaveRequests()) return 'nothing';
      if (looks % CLOCK_EVERY !== 0) continue;
      const now = monotonicMs();
      if (until === 0) until = now + this.spinTime();
      else if (now > until) {
        this.noteSpin(false);
        return 'nothing';
      }
    }
  }

  private spinTime(): number {
    const worthwhile = this.spinsMet >= WORTHWHILE || ++this.spins % PROBE_EVERY === 0;
    return worthwhile ? SPIN_MS : SHORT_SPIN_MS;
  }

  private noteSpin(met: boolean): void {
    this.spinsMet += ((met ? 1 : 0) - this.spinsMet) / 16;
  }

  private betweenRequests(): void {
    if (this.watched.length === 0) return;
    if (poll(this.pollSet, this.watched.length, 0) <= 0) return;
    for (let i = 0; i < this.watched.length; i++) {
      if (this.pollSet.readInt16LE(i * POLL_ENTRY_SIZE + 6) !== 0) this.watched[i]!.ready();
    }
  }

  private serve(): void {
    const { request, reply } = this;
    if (!request.wellFormed) {
      this.events.defect(`a malformed request of ${request.length} bytes was dropped`);
      return;
    }
    const opcode = request.opcode;
    this.counts[opcode <= MAX_OPCODE ? opcode : 0]!++;
    switch (opcode) {
      case Op.FORGET:
        if (request.argLength >= 8) this.handler.forget(request.nodeid, request.u64(0));
        return;
      case Op.BATCH_FORGET:
        this.batchForget();
        return;
      case Op.INTERRUPT:
        // Nothing that this loop has in hand blocks for long, and what is put aside is bounded work.
        return;
      case Op.DESTROY:
        this.stop();
        return;
    }
    reply.begin();
    let outcome: number;
    try {
      outcome =
        opcode === Op.INIT
          ? this.init()
          : dispatch(request, this.caller, reply, this.handler, this.extendedSetxattr);
    } catch (error) {
      outcome = this.failed(opName(opcode), error);
    }
    if (outcome === DEFERRED) return;
    if (isOutOfSpace(outcome) && !this.lastTry) {
      // An unlinked file's space is free when the kernel forgets it, and that message may be queued behind this one.
      this.retries.push(request.save());
      return;
    }
    const length = reply.finish(request.uniqueLow, request.uniqueHigh, outcome);
    if (write(this.device, reply.bytes, length) < 0) this.refused(errno(), opcode);
  }

  private failed(doing: string, error: unknown): number {
    if (error instanceof SysError) return error.errno;
    this.events.defect(`${doing} failed`, error);
    return EIO;
  }

  /** ENOENT: the asker was killed meanwhile and wants no answer. */
  private refused(error: number, opcode: number): void {
    if (error === ENOENT) return;
    if (error === ENODEV) this.stop();
    else this.events.defect(`the kernel refused the reply to ${opName(opcode)}: ${errnoName(error)}`);
  }

  private init(): number {
    if (this.request.argLength < 16) return EIO;
    const agreed = handshake(this.request, this.reply);
    if (typeof agreed === 'number') return agreed;
    this.extendedSetxattr = agreed.extendedSetxattr;
    return 0;
  }

  private batchForget(): void {
    const count = this.request.u32(0);
    for (let i = 0; i < count && 8 + (i + 1) * 16 <= this.request.argLength; i++) {
      this.handler.forget(this.request.u64(2 + i * 4), this.request.u64(4 + i * 4));
    }
  }
}
