/**
 * Descriptors of nodes, opened on demand. Without OPEN and RELEASE nobody says when a file is done with, so
 * they are kept while there is room, and go by a clock: each use sets a mark, each round takes it away, and one
 * without a mark is closed. An unlinked lower file is the exception: its descriptor is all that is left of it.
 *
 * A descriptor that may write is closed after `WRITE_IDLE_MS` without use: while forget holds one, the file
 * cannot be executed outside the mount (ETXTBSY). One that this user could not open again stays: a file made
 * read-only (0444, as git's objects are) takes writes from whoever has it open, and that the kernel does not say.
 */
import { scratchCstring } from '../sys/bytes.ts';
import { AT_FDCWD, O_CLOEXEC, O_NONBLOCK, O_RDWR } from '../sys/constants.ts';
import { EACCES } from '../sys/errno.ts';
import { close, errno, openat } from '../sys/libc.ts';
import { Stat } from '../sys/stat.ts';
import { NO_FD, type Node, WRITE_FD } from './node.ts';

/** The hard limit on open files is 20,000 on the machines this was measured on, 4,096 on small ones. */
const DEFAULT_LIMIT = 3000;
export const WRITE_IDLE_MS = 50;

export class Descriptors {
  private readonly queue: Node[] = [];
  private hand = 0;
  private readonly writable = new Set<Node>();
  private readonly limit: number;
  private readonly stat = new Stat();
  /** Open now. */
  count = 0;

  constructor(limit = DEFAULT_LIMIT) {
    this.limit = limit;
  }

  /** Gives the node this descriptor, in place of the one it may have had. */
  set(node: Node, fd: number, kind: number): void {
    if (node.fd >= 0) {
      close(node.fd);
      this.count--;
    } else {
      node.fdIndex = this.queue.push(node) - 1;
    }
    node.fd = fd;
    node.fdKind = kind;
    node.fdUsed = true;
    this.count++;
    if (kind === WRITE_FD && !node.inUpper) this.writable.add(node);
    else this.writable.delete(node);
    if (this.count > this.limit) this.makeRoom();
  }

  release(node: Node): void {
    if (node.fd < 0) return;
    close(node.fd);
    this.count--;
    node.fd = -1;
    node.fdKind = NO_FD;
    this.writable.delete(node);
    const last = this.queue.pop()!;
    if (last !== node) {
      this.queue[node.fdIndex] = last;
      last.fdIndex = node.fdIndex;
    }
    node.fdIndex = -1;
  }

  /** Closes about a quarter of what is open: those not used for the longest time. */
  makeRoom(): void {
    const target = Math.floor(this.limit * 0.75);
    let looked = 0;
    const most = this.queue.length * 2;
    while (this.count > target && looked++ < most) {
      if (this.hand >= this.queue.length) this.hand = 0;
      const node = this.queue[this.hand];
      if (!node) break;
      if (!node.fdUsed && !isLastHold(node)) {
        this.release(node); // another takes its place in the queue
      } else {
        node.fdUsed = false;
        this.hand++;
      }
    }
  }

  get hasWritable(): boolean {
    return this.writable.size > 0;
  }

  /** Closes writable descriptors that were not used since the last call. */
  closeIdleWritable(): void {
    for (const node of this.writable) {
      if (node.fdUsed) node.fdUsed = false;
      else if (isLastHold(node)) continue;
      else if (this.opensAgain(node.fd)) this.release(node);
      else this.writable.delete(node);
    }
  }

  private opensAgain(fd: number): boolean {
    const ownerMay = 0o600;
    if (this.stat.of(fd) !== 0 || (this.stat.mode & ownerMay) === ownerMay) return true;
    const flags = O_RDWR | O_NONBLOCK | O_CLOEXEC;
    const again = openat(AT_FDCWD, scratchCstring(`/proc/self/fd/${fd}`), flags, 0);
    if (again < 0) return errno() !== EACCES;
    close(again);
    return true;
  }
}

/** An unlinked file of the lower lives by its descriptor alone. */
function isLastHold(node: Node): boolean {
  return !node.link && !node.inUpper;
}
