/**
 * READ. What the page cache of the lower has is answered at once; what would have to wait for a disk is read by a pool
 * thread (elsewhere.ts), and other requests do not wait for it.
 */
import { OUT_HEADER_SIZE } from '../fuse/abi.ts';
import { type Caller, DEFERRED } from '../fuse/handler.ts';
import type { Reply } from '../fuse/reply.ts';
import { scratchCstring } from '../sys/bytes.ts';
import { O_CLOEXEC, O_NOATIME, O_RDONLY, RWF_NOWAIT, SEEK_END } from '../sys/constants.ts';
import { EAGAIN, EOPNOTSUPP, ESTALE } from '../sys/errno.ts';
import { iovecOf, rememberedAddress } from '../sys/iovec.ts';
import { close, errno, lseek, openat, pread, preadv2 } from '../sys/libc.ts';
import { isInMemory, PAGE } from '../sys/page-cache.ts';
import { isRam } from '../sys/statfs.ts';
import { readElsewhere } from './elsewhere.ts';
import type { Node } from './node.ts';
import type { Overlay } from './overlay.ts';

const replyAddress = rememberedAddress();
const RAM = { ram: true };
/** What is read in smaller pieces costs as much: 128 KiB 3 % less by pages, 256 KiB and more 10-30 % (files of that size, from memory). */
const BY_PAGES = 128 * 1024;

export function read(
  o: Overlay,
  id: number,
  offset: number,
  size: number,
  openFlags: number,
  caller: Caller,
  reply: Reply,
): number {
  const node = o.node(id);
  if (!node) return ESTALE;
  const fd = o.fileFd(node, false);
  if (fd < 0) return -fd;
  const quiet = openFlags & O_NOATIME || o.quietReaders.has(caller.pid) ? openQuietly(fd) : -1;
  const outcome = readFrom(o, node, quiet < 0 ? fd : quiet, offset, size, reply);
  if (quiet >= 0) close(quiet);
  return outcome;
}

/**
 * A backup's reads leave the access time, also by way of a descriptor that others read through. -1 where only the
 * caller may ask for that (root inside, not the owner, by a server without capabilities).
 */
function openQuietly(fd: number): number {
  return openat(-1, scratchCstring(`/proc/self/fd/${fd}`), O_RDONLY | O_NOATIME | O_CLOEXEC, 0);
}

function readFrom(o: Overlay, node: Node, fd: number, offset: number, size: number, reply: Reply): number {
  const mute = node.inUpper ? RAM : o.mute.get(node.lowerDev);
  if (size >= BY_PAGES && (!mute || mute.ram) && readByPages(o, fd, offset, size, mute !== undefined))
    return DEFERRED;
  if (!mute) return readCached(o, node, fd, offset, size, reply);
  return mute.ram ? readAtOnce(fd, offset, size, reply) : readElsewhere(o, fd, offset, size);
}

/** Large pieces of what is in memory, without copying them. Whether it did. */
function readByPages(o: Overlay, fd: number, offset: number, size: number, isInRam: boolean): boolean {
  const there = Math.min(size, lseek(fd, 0, SEEK_END) - offset);
  if (there < BY_PAGES || !(isInRam || isInMemory(fd, offset, there))) return false;
  return o.engine.answerFromFile(fd, offset, there);
}

function readAtOnce(fd: number, offset: number, size: number, reply: Reply): number {
  const n = pread(fd, reply.room(), size, offset);
  if (n < 0) return errno();
  reply.commit(n);
  return 0;
}

/** What the page cache of the lower has, at once; all of it by a pool thread, which may wait for the disk, else. */
function readCached(o: Overlay, node: Node, fd: number, offset: number, size: number, reply: Reply): number {
  const start = replyAddress(reply.bytes) + OUT_HEADER_SIZE + reply.size;
  let got = 0;
  while (got < size) {
    const n = preadv2(fd, iovecOf(start + got, size - got), 1, offset + got, RWF_NOWAIT);
    if (n === 0) break; // the end of the file
    if (n > 0) {
      got += n;
      // For want of a page it ends where that begins; anywhere else the file does.
      if ((offset + got) % PAGE !== 0) break;
      continue;
    }
    const error = errno();
    if (error === EAGAIN) return readElsewhere(o, fd, offset, size);
    if (error !== EOPNOTSUPP) return error;
    const mute = { ram: isRam(fd) };
    o.mute.set(node.lowerDev, mute);
    return mute.ram ? readAtOnce(fd, offset, size, reply) : readElsewhere(o, fd, offset, size);
  }
  reply.commit(got);
  return 0;
}
