/**
 * Writes that threads of the C library make (POSIX AIO), while this thread goes on: for what may block in the kernel.
 * libuv's pool would do it too, but it has four threads for everything, and tells of each write's end through the event
 * loop, which a busy mount lets turn every 10 ms.
 *
 * The C library gives each descriptor a thread of its own, in which the writes to it are made one after another; so a
 * lane is a duplicate of the descriptor. State: the lanes, and in each what is still to be handed over and what the C
 * library has, which must stay in memory until it is written.
 */
import { monotonicMs } from './clock.ts';
import { F_DUPFD_CLOEXEC } from './constants.ts';
import { SysError } from './errno.ts';
import { koffi } from './koffi.ts';
import { addressOf, close, errno, fcntl } from './libc.ts';
import { leadNowhere } from './nowhere.ts';

/** One that is blocked holds up the others of its lane alone. */
const LANES = 4;
/** `struct aiocb` is 168 bytes in glibc; the fields used here stand alike in musl, on every 64-bit machine. */
const CONTROL_SIZE = 256;
const BUFFER_OFFSET = 16;
const LENGTH_OFFSET = 24;
const NOTIFY_OFFSET = 44;
const SIGEV_NONE = 1;
const EINPROGRESS = 115;
/** What the C library has of one lane at a time: for each new write it walks through those before. */
const MOST_GIVEN = 512;
/** How soon a lane that was full is looked at again. */
const LATER_MS = 2;
/** How often somebody who waits looks whether all is written. */
const MOST_OFTEN_MS = 1;

interface Aio {
  write(control: Buffer): number;
  error(control: Buffer): number;
}

let aio: Aio | undefined;

/** Declared when first needed: most windows never write anything this way. */
function loadAio(): Aio {
  let lib = koffi.load(null);
  try {
    lib.func('int aio_write(void* control)');
  } catch {
    lib = koffi.load('librt.so.1'); // glibc before 2.34
  }
  return { write: lib.func('int aio_write(void* control)'), error: lib.func('int aio_error(void* control)') };
}

interface Lane {
  fd: number;
  waiting: Buffer[];
  /** How many messages it was ever given, and how many of them are not written yet. */
  total: number;
  /** A control block with its message behind it, each. */
  given: Buffer[];
}

export class ThreadedWrites {
  private readonly fd: number;
  private lanes: Lane[] | undefined;
  private timer: NodeJS.Timeout | undefined;
  private ended = false;

  /** `fd` is duplicated when the first message comes. */
  constructor(fd: number) {
    this.fd = fd;
  }

  /** Messages with the same `key` are written in the order of their coming. Throws SysError where nothing can be written. */
  write(messages: readonly { key: number; bytes: Buffer }[]): void {
    if (this.ended) return;
    aio ??= loadAio();
    this.lanes ??= this.openLanes();
    for (const { key, bytes } of messages) {
      const lane = this.lanes[key % LANES]!;
      lane.waiting.push(bytes);
      lane.total++;
    }
    this.handOver();
  }

  /** Resolves when everything so far is written, or nothing will be any more. */
  async written(): Promise<void> {
    const goals = this.lanes?.map((lane) => ({ lane, total: lane.total })) ?? [];
    for (const { lane, total } of goals) {
      for (let waitMs = 0; !this.ended && finished(lane) < total; waitMs = MOST_OFTEN_MS) {
        if (waitMs === 0) await new Promise((resolve) => setImmediate(resolve));
        else await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
    }
  }

  /**
   * No more is written, and what waits is forgotten. The descriptors are ended, but their numbers stay taken: a thread
   * may be about to write to one, which must not hit a file that was opened since.
   */
  end(): void {
    this.ended = true;
    clearTimeout(this.timer);
    if (!this.lanes) return;
    for (const lane of this.lanes) lane.waiting = [];
    leadNowhere(this.lanes.map(({ fd }) => fd));
  }

  /** After `end`: closes the descriptors when nothing is being written any more. False: that took too long. */
  async release(withinMs: number): Promise<boolean> {
    if (!this.lanes) return true;
    const deadline = monotonicMs() + withinMs;
    while (this.lanes.some(isWriting)) {
      if (monotonicMs() > deadline) return false;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    for (const lane of this.lanes) close(lane.fd);
    this.lanes = undefined;
    return true;
  }

  private openLanes(): Lane[] {
    return Array.from({ length: LANES }, () => {
      const fd = fcntl(this.fd, F_DUPFD_CLOEXEC, 0);
      if (fd < 0) throw new SysError(errno(), 'duplicating a descriptor');
      return { fd, waiting: [], total: 0, given: [] };
    });
  }

  private handOver(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    let left = false;
    for (const lane of this.lanes!) left = !fill(lane) || left;
    if (left) this.timer = setTimeout(() => this.handOver(), LATER_MS);
  }
}

/** They are written in their order, so those that are not are the last. */
function finished(lane: Lane): number {
  return lane.total - lane.waiting.length - lane.given.filter(isUnwritten).length;
}

function isWriting(lane: Lane): boolean {
  return lane.given.some(isUnwritten);
}

function isUnwritten(control: Buffer): boolean {
  return aio!.error(control) === EINPROGRESS;
}

/** Hands over what there is room for. False: something is left. */
function fill(lane: Lane): boolean {
  const { error, write } = aio!;
  let done = 0;
  while (done < lane.given.length && error(lane.given[done]!) !== EINPROGRESS) done++;
  lane.given.splice(0, done);
  let taken = 0;
  for (; taken < lane.waiting.length && lane.given.length < MOST_GIVEN; taken++) {
    const message = lane.waiting[taken]!;
    const given = Buffer.alloc(CONTROL_SIZE + message.length);
    message.copy(given, CONTROL_SIZE);
    given.writeInt32LE(lane.fd, 0);
    given.writeBigUInt64LE(addressOf(given) + BigInt(CONTROL_SIZE), BUFFER_OFFSET);
    given.writeUInt32LE(message.length, LENGTH_OFFSET);
    given.writeInt32LE(SIGEV_NONE, NOTIFY_OFFSET);
    if (write(given) < 0) break; // no thread to be had just now
    lane.given.push(given);
  }
  lane.waiting.splice(0, taken);
  return lane.waiting.length === 0;
}
