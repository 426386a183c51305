/** What of a file the kernel has in memory. */
import { RWF_NOWAIT } from './constants.ts';
import { iovecOf, rememberedAddress } from './iovec.ts';
import { cachestat, preadv2 } from './libc.ts';

/** The least that a page is. */
export const PAGE = 4096;
/** The kernel reads ahead in steps of at least this: one that is under way covers one of the places looked at. */
const STEP = 128 * 1024;

/** How many pages `size` bytes from `offset` touch. */
export function pagesOf(offset: number, size: number): number {
  return Math.ceil((offset + size) / PAGE) - Math.floor(offset / PAGE);
}

const range = Buffer.alloc(16);
/** `struct cachestat`: five 64-bit numbers of pages, the cached ones first. */
const stat = Buffer.alloc(40);
const byte = Buffer.alloc(1);
const byteAddress = rememberedAddress();

/**
 * Whether reading `size` bytes from `offset` would wait for no disk. False also where it cannot be known: before
 * Linux 6.5, for who may not know it of this file, on a filesystem that does not say. A page counts as cached
 * while it is still being read (cachestat(2)), so that some are tried.
 */
export function isInMemory(fd: number, offset: number, size: number): boolean {
  range.writeBigInt64LE(BigInt(offset), 0);
  range.writeBigInt64LE(BigInt(size), 8);
  if (cachestat(fd, range, stat, 0) < 0 || stat.readUInt32LE(0) < pagesOf(offset, size)) return false;
  const end = offset + size;
  for (let at = offset; at < end; at += STEP) if (!tryByte(fd, at)) return false;
  return tryByte(fd, end - 1);
}

function tryByte(fd: number, offset: number): boolean {
  return preadv2(fd, iovecOf(byteAddress(byte), 1), 1, offset, RWF_NOWAIT) === 1;
}
