/**
 * Descriptors of nodes, opened on demand. Without OPEN and RELEASE nobody says when a file is done with, so
 * they are kept while there is room, and go by a clock: each use sets a mark, each round takes it away, and one
 * without a mark is closed. An unlinked lower file is the exception: its descriptor is all that is left of it.
 *
 * A descriptor that may write is closed after `WRITE_IDLE_MS` without use: while forget holds one, the file
 * cannot be executed outside the mount (ETXTBSY). One that this user could not open again stays: a file made
 * read-only (0444, as git's objects are) takes writes from whoever has it open, and that the kernel does not say.
 */
import { readFileSync } from 'node:fs';
import { scratchCstring } from '../sys/bytes.ts';
import { monotonicMs } from '../sys/clock.ts';
import { AT_FDCWD, O_CLOEXEC, O_NONBLOCK, O_RDWR } from '../sys/constants.ts';
import { growDescriptorTable } from '../sys/descriptor-table.ts';
import { EACCES } from '../sys/errno.ts';
import { close, errno, openat } from '../sys/libc.ts';
import { Stat } from '../sys/stat.ts';
import { NO_FD, type Node, WRITE_FD } from './node.ts';

/** What the rest of the process needs, and a request that walks down a deep path. */
const RESERVED = 256;
const MOST = 12_000;
export const WRITE_IDLE_MS = 50;
/** Descriptors of nodes that are gone. */
const MOST_ENDING = 4096;
/** Requests wait no longer than this until such descriptors are closed. */
const ENDING_MS = 1;
/** With so many open there will be more than a new process has room for, which is 256. */
const SOON_MANY = 32;

/** The limit on open files: 20,000 where this was measured, 1,024 on small ones. */
function openFilesLimit(): number {
  const line = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'));
  return line ? Number(line[1]) : 1024;
}

export class Descriptors {
  private readonly queue: Node[] = [];
  private hand = 0;
  private readonly writable = new Set<Node>();
  /** Of nodes that are gone, most of them of unlinked files. */
  private readonly ending: number[] = [];
  private readonly limit: number;
  private mostEnding = 0;
  /** Numbers that this process's descriptors may take. */
  private readonly numbers: number;
  private readonly stat = new Stat();
  /** Called before a descriptor that may write to a lower file is closed. */
  closing: (node: Node) => void = () => {};
  /** Gives a lower file an `O_PATH` descriptor in place of the one that it has, which it returns; or -errno. */
  openPath: (node: Node) => number = () => -1;
  /** Open now. */
  count = 0;

  /** `share` is how much of what this process may have open is for these nodes, where others have nodes too. */
  constructor(share = 1) {
    const files = openFilesLimit();
    this.limit = Math.floor(Math.max(files >> 2, Math.min(MOST, files - RESERVED)) * share);
    this.numbers = Math.min(files, MOST + RESERVED);
  }

  /** Whether somebody calls `endSome` when it is quiet, and `endAll` when there is no space. */
  set mayEndLater(may: boolean) {
    this.mostEnding = may ? Math.min(MOST_ENDING, this.limit >> 2) : 0;
  }

  /** Gives the node this descriptor, in place of the one it may have had. */
  set(node: Node, fd: number, kind: number): void {
    if (node.fd >= 0) {
      this.close(node);
    } else {
      node.fdIndex = this.queue.push(node) - 1;
    }
    node.fd = fd;
    node.fdKind = kind;
    node.fdUsed = true;
    this.count++;
    if (this.count === SOON_MANY) growDescriptorTable(this.numbers);
    if (kind === WRITE_FD && !node.inUpper) this.writable.add(node);
    else this.writable.delete(node);
  }

  release(node: Node): void {
    if (node.fd < 0) return;
    this.close(node);
    this.forgetFd(node);
  }

  private forgetFd(node: Node): void {
    node.fd = -1;
    node.fdKind = NO_FD;
    this.writable.delete(node);
    this.leaveQueue(node);
  }

  /**
   * As `release`, of a node that is gone. To close the last descriptor of an unlinked file is to delete it, 10 us in which
   * who unlinks a whole tree would wait with its next request: that is done when there are none, or no room.
   */
  releaseLater(node: Node): void {
    const full = this.ending.length >= this.mostEnding;
    if (full || node.fd < 0 || node.inUpper || node.fdKind === WRITE_FD) this.release(node);
    else {
      this.ending.push(node.fd);
      this.forgetFd(node);
    }
  }

  /** Closes descriptors of nodes that are gone, for a while. Whether there are more. */
  endSome(): boolean {
    const until = monotonicMs() + ENDING_MS;
    while (this.ending.length > 0 && monotonicMs() < until) this.endOne();
    return this.ending.length > 0;
  }

  endAll(): void {
    while (this.ending.length > 0) this.endOne();
  }

  private endOne(): void {
    close(this.ending.pop()!);
    this.count--;
  }

  private close(node: Node): void {
    if (node.fdKind === WRITE_FD && !node.inUpper) this.closing(node);
    close(node.fd);
    this.count--;
  }

  /** The last one of the queue takes its place. */
  private leaveQueue(node: Node): void {
    if (node.fdIndex < 0) return;
    const last = this.queue.pop()!;
    if (last !== node) {
      this.queue[node.fdIndex] = last;
      last.fdIndex = node.fdIndex;
    }
    node.fdIndex = -1;
  }

  /**
   * Between requests: closes about a quarter of what is open, those not used for the longest time. Never within one,
   * which may still hold a descriptor by its number.
   */
  makeRoom(): void {
    if (this.count <= this.limit) return;
    this.endAll();
    const target = Math.floor(this.limit * 0.75);
    for (
      let looked = this.queue.length * 2;
      looked > 0 && this.count > target && this.queue.length > 0;
      looked--
    ) {
      if (this.hand >= this.queue.length) this.hand = 0;
      const node = this.queue[this.hand]!;
      if (isLastHold(node)) this.leaveQueue(node);
      else if (!node.fdUsed) this.release(node);
      else {
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
      // Whoever has the file open may write on, also after somebody outside renamed or removed it: an `O_PATH`
      // descriptor is no writer, and can be opened again.
      else if (!this.opensAgain(node.fd) || this.openPath(node) < 0) this.writable.delete(node);
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
