/** INIT: what the kernel offers, and what this engine takes of it. Pure. */
import { EPROTO } from '../sys/errno.ts';
import { Init, KERNEL_VERSION, MAX_IO, MAX_PAGES, MINOR_VERSION, OLDEST_MINOR } from './abi.ts';
import type { Reply } from './reply.ts';
import type { Request } from './request.ts';

/**
 * Left out on purpose: WRITEBACK_CACHE (serves stale bytes after outside changes, owns mtime, loses O_APPEND),
 * ATOMIC_O_TRUNC (the truncation would travel in the OPEN that is never sent), POSIX_LOCKS and FLOCK_LOCKS
 * (the kernel's own locks are right as they are), DIRECT_IO in any form (mmap must work).
 */
const WANTED =
  Init.ASYNC_READ |
  Init.BIG_WRITES |
  Init.DONT_MASK |
  Init.AUTO_INVAL_DATA |
  Init.DO_READDIRPLUS |
  Init.READDIRPLUS_AUTO |
  Init.ASYNC_DIO |
  Init.NO_OPEN_SUPPORT |
  Init.PARALLEL_DIROPS |
  Init.POSIX_ACL |
  Init.MAX_PAGES |
  Init.CACHE_SYMLINKS |
  Init.NO_OPENDIR_SUPPORT |
  Init.HANDLE_KILLPRIV_V2 |
  Init.SETXATTR_EXT |
  Init.INIT_EXT;

const REQUIRED = Init.NO_OPEN_SUPPORT | Init.NO_OPENDIR_SUPPORT | Init.MAX_PAGES;

export interface Agreed {
  minor: number;
  extendedSetxattr: boolean;
}

/**
 * Fills `reply` with INIT's answer. Returns what was agreed, or an errno when the kernel is too old: forget
 * relies on opening without OPEN and cannot serve it.
 */
export function handshake(request: Request, reply: Reply): Agreed | number {
  const major = request.u32(0);
  const minor = request.u32(1);
  const offered = request.u32(3);
  if (major > KERNEL_VERSION) {
    // The kernel sends INIT again, in our version, after this answer.
    reply.putU32(KERNEL_VERSION);
    reply.putU32(MINOR_VERSION);
    return { minor: 0, extendedSetxattr: false };
  }
  if (major < KERNEL_VERSION || minor < OLDEST_MINOR || (offered & REQUIRED) !== REQUIRED) return EPROTO;
  const flags = offered & WANTED;
  reply.putU32(KERNEL_VERSION);
  reply.putU32(MINOR_VERSION);
  reply.putU32(MAX_IO); // max_readahead
  reply.putU32(flags);
  // Requests in flight in the background (readahead, direct I/O), and from how many on the kernel calls the
  // connection congested: 64 and 48, as 16-bit halves of one word.
  reply.putU32(64 | (48 << 16));
  reply.putU32(MAX_IO);
  reply.putU32(1); // time granularity: 1 ns
  reply.putU32(MAX_PAGES);
  for (let i = 0; i < 8; i++) reply.putU32(0);
  return { minor, extendedSetxattr: (flags & Init.SETXATTR_EXT) !== 0 };
}
