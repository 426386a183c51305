/** WRITE and what else works on the bytes of a file. Every operation goes to the node's current layer. */
import { WRITE_CACHE, WRITE_KILL_SUIDGID } from '../fuse/abi.ts';
import type { Caller } from '../fuse/handler.ts';
import type { Reply } from '../fuse/reply.ts';
import { monotonicMs } from '../sys/clock.ts';
import {
  FALLOC_FL_KEEP_SIZE,
  FALLOC_FL_PUNCH_HOLE,
  FALLOC_FL_ZERO_RANGE,
  O_APPEND,
  RWF_APPEND,
} from '../sys/constants.ts';
import { EINVAL, EOPNOTSUPP, ESTALE, errnoName, isOutOfSpace } from '../sys/errno.ts';
import { iovecOf, iovecWith, rememberedAddress } from '../sys/iovec.ts';
import {
  close,
  errno,
  fdatasync,
  pwritev2,
  copyFileRange as sysCopyFileRange,
  fallocate as sysFallocate,
  fsync as sysFsync,
  lseek as sysLseek,
} from '../sys/libc.ts';
import { slowInPool } from '../sys/pool.ts';
import { voluntarySwitches } from '../sys/waits.ts';
import { clearSetuid } from './attributes.ts';
import { prepareChange } from './copy-up.ts';
import { changeElsewhere, ownDescriptor, syncElsewhere } from './elsewhere.ts';
import { isTooBigToHold, releaseHeld } from './held.ts';
import { openDirectory } from './listing.ts';
import type { Node } from './node.ts';
import type { Overlay } from './overlay.ts';

const offsets = [Buffer.alloc(8), Buffer.alloc(8)] as const;

const requestAddress = rememberedAddress();

/**
 * A write that takes longer than this, and waited meanwhile, has met a busy disk, and so may the next ones. One that was
 * only preempted, on a machine with busy processors, has not.
 */
const SLOW_MS = 3;
const SLOW_FOR_MS = 1000;

export function write(
  o: Overlay,
  id: number,
  offset: number,
  bytes: Buffer,
  start: number,
  size: number,
  writeFlags: number,
  openFlags: number,
  caller: Caller,
  reply: Reply,
): number {
  const node = o.node(id);
  if (!node) return ESTALE;
  if (o.discarding !== null && writeFlags & WRITE_CACHE && o.discarding.has(node)) {
    reply.putCount(size);
    return 0;
  }
  const outcome = prepareChange(o, node);
  if (outcome) return outcome;
  const fd = o.fileFd(node, true);
  if (fd < 0) return -fd;
  if (node.inUpper) {
    if (!(openFlags & O_APPEND)) o.pages.overwriting(o, node, offset);
  } else if (!node.recorded) o.written.note(o, node, caller.pid);
  // What is written back from the page cache has its place already; an append finds it now, in the lower, where
  // others may have appended since the kernel looked.
  const append = (openFlags & O_APPEND) !== 0 && !(writeFlags & WRITE_CACHE);
  const flags = append ? RWF_APPEND : 0;
  const change = { offset, append, killSetuid: (writeFlags & WRITE_KILL_SUIDGID) !== 0, pid: caller.pid };
  const began = node.inUpper ? 0 : monotonicMs();
  if (began < o.slowUntil && !node.inUpper)
    return writeElsewhere(o, node, fd, bytes.subarray(start, start + size), flags, change);
  const waits = node.inUpper ? 0 : voluntarySwitches();
  const written = pwritev2(fd, iovecOf(requestAddress(bytes) + start, size), 1, offset, flags);
  if (written < 0) {
    const error = errno();
    if (isOutOfSpace(error) && node.inUpper && o.engine.lastTry)
      o.ledger.error(o.pathOf(node), `write failed: ${errnoName(error)}`);
    return error;
  }
  if (!node.inUpper) {
    const now = monotonicMs();
    if (now - began > SLOW_MS && voluntarySwitches() !== waits) o.slowUntil = now + SLOW_FOR_MS;
  }
  wrote(o, node, fd, written, change);
  reply.putCount(written);
  return 0;
}

function writeElsewhere(
  o: Overlay,
  node: Node,
  fd: number,
  data: Buffer,
  flags: number,
  change: Change,
): number {
  const vector = iovecWith(data);
  return changeElsewhere(
    o,
    node,
    fd,
    (own, done) => slowInPool(pwritev2, [own, vector, 1, change.offset, flags], done),
    (written, own) => wrote(o, node, own, written, change),
  );
}

interface Change {
  offset: number;
  append: boolean;
  killSetuid: boolean;
  pid: number;
}

/** What follows from a write that succeeded. */
function wrote(o: Overlay, node: Node, fd: number, written: number, change: Change): void {
  if (change.killSetuid) clearSetuid(o, node);
  const end = change.append ? change.offset + written : undefined;
  if (!node.inUpper) noticeOwnWrite(o, node, fd, end);
  else if (node.endUnsure && end !== undefined) {
    node.endUnsure = o.otherStat.of(fd) !== 0 || o.otherStat.size !== end;
    if (node.endUnsure) retakeEnd(o, node);
  }
  if (node.held) {
    if (isTooBigToHold(o, fd)) releaseHeld(o, node, 'it grew past what is held');
  } else if (node.inUpper && node.link) {
    o.ledger.note(o.pathOf(node), change.pid, 'write', written);
    o.pages.wrote(node, change.offset + written);
  }
}

/**
 * The event that this write causes in the lower is forget's own, which its ctime tells (watch.ts).
 *
 * The kernel puts an append into its page cache where it believes the end to be. If others appended before it
 * through the lower, that is the wrong place, and its pages and size must go.
 */
function noticeOwnWrite(o: Overlay, node: Node, fd: number, expectedEnd: number | undefined): void {
  const st = o.otherStat;
  if (st.of(fd) !== 0) return;
  node.settledChange = st.change;
  if (expectedEnd !== undefined && st.size !== expectedEnd) retakeEnd(o, node);
}

function retakeEnd(o: Overlay, node: Node): void {
  o.notifier.inode(node.id);
  o.notifier.flush();
}

export function lseek(o: Overlay, id: number, offset: number, whence: number, reply: Reply): number {
  const node = o.node(id);
  if (!node) return ESTALE;
  const fd = o.fileFd(node, false);
  if (fd < 0) return -fd;
  const at = sysLseek(fd, offset, whence);
  if (at < 0) return errno();
  reply.putU64(at);
  return 0;
}

export function fallocate(
  o: Overlay,
  id: number,
  offset: number,
  length: number,
  mode: number,
  caller: Caller,
): number {
  const node = o.node(id);
  if (!node) return ESTALE;
  const outcome = prepareChange(o, node);
  if (outcome) return outcome;
  const fd = o.fileFd(node, true);
  if (fd < 0) return -fd;
  const error = allocate(node, fd, mode, offset, length);
  if (error) return error;
  // No flag says, as a WRITE's does, whether the caller may keep setuid (CAP_FSETID): whoever is not root may not.
  if (caller.uid !== 0) clearSetuid(o, node);
  o.settle(node);
  if (node.inUpper && !node.held) o.ledger.note(o.pathOf(node), caller.pid, 'change');
  return 0;
}

/** tmpfs knows no FALLOC_FL_ZERO_RANGE, and makes the same of two calls: a hole, and room in its place. */
function allocate(node: Node, fd: number, mode: number, offset: number, length: number): number {
  if (sysFallocate(fd, mode, offset, length) === 0) return 0;
  const error = errno();
  const zeroes = (mode & ~FALLOC_FL_KEEP_SIZE) === FALLOC_FL_ZERO_RANGE;
  if (error !== EOPNOTSUPP || !node.inUpper || !zeroes) return error;
  if (sysFallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length) < 0) return errno();
  return sysFallocate(fd, mode & FALLOC_FL_KEEP_SIZE, offset, length) < 0 ? errno() : 0;
}

export function copyFileRange(
  o: Overlay,
  sourceId: number,
  sourceOffset: number,
  targetId: number,
  targetOffset: number,
  length: number,
  caller: Caller,
  reply: Reply,
): number {
  const source = o.node(sourceId);
  const target = o.node(targetId);
  if (!source || !target) return ESTALE;
  if (!source.isRegular || !target.isRegular) return EINVAL;
  const outcome = prepareChange(o, target);
  if (outcome) return outcome;
  // The one that writes first: where both are one file it serves as both.
  const to = o.fileFd(target, true);
  const from = source === target ? to : o.fileFd(source, false);
  if (from < 0) return -from;
  if (to < 0) return -to;
  if (target.inUpper) o.pages.overwriting(o, target, targetOffset);
  else if (!target.recorded) o.written.note(o, target, caller.pid);
  const { uid, pid } = caller;
  const copied = (n: number) => {
    if (uid !== 0) clearSetuid(o, target);
    o.settle(target);
    if (target.inUpper && !target.held) {
      o.ledger.note(o.pathOf(target), pid, 'write', n);
      o.pages.wrote(target, targetOffset + n);
    }
  };
  // Between two filesystems the kernel says EXDEV, and the caller's kernel then copies by READ and WRITE.
  // A held file may go to the lower at any request, and must not be half copied then.
  if (length > COPIED_AT_ONCE && !target.held) {
    const input = ownDescriptor(from);
    if (input < 0) return -input;
    const places = [bytesOf(sourceOffset), bytesOf(targetOffset)] as const;
    const count = Math.min(length, MAX_COPY);
    return changeElsewhere(
      o,
      target,
      to,
      (own, done) =>
        slowInPool(sysCopyFileRange, [input, places[0], own, places[1], count, 0], (n, error) => {
          close(input);
          done(n, error);
        }),
      copied,
    );
  }
  offsets[0].writeBigInt64LE(BigInt(sourceOffset));
  offsets[1].writeBigInt64LE(BigInt(targetOffset));
  const n = sysCopyFileRange(from, offsets[0], to, offsets[1], Math.min(length, COPIED_AT_ONCE), 0);
  if (n < 0) return errno();
  copied(n);
  reply.putCount(n);
  return 0;
}

function bytesOf(offset: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt(offset));
  return bytes;
}

/** About 0.2 ms of copying. */
const COPIED_AT_ONCE = 256 << 10;
/** What one answer may keep its asker waiting for; who asked for more asks again. */
const MAX_COPY = 128 << 20;

export function fsync(o: Overlay, id: number, dataOnly: boolean): number {
  const node = o.node(id);
  if (!node) return ESTALE;
  // RAM: there is no disk to wait for.
  if (node.inUpper || o.isProtected(node)) return 0;
  const fd = node.isDirectory ? openDirectory(o, node) : o.fileFd(node, false);
  if (fd < 0) return -fd;
  const outcome = syncElsewhere(o, fd, dataOnly ? fdatasync : sysFsync);
  if (node.isDirectory) close(fd);
  return outcome;
}
