/**
 * What the addon knows of a request and does not pass on. The first argument of each callback is the memory of its
 * `fuse_thread_locals_t`; read here is the layout of fuse-native 2.2.6 on a 64-bit machine (fuse-native.c):
 *
 * - utimens is given the access time twice; the record has both times, in ms.
 * - write is told nothing of O_APPEND, nor whether the page cache is writing back; `fuse_file_info` has both.
 */
import { wordAt } from '../../sys/shared-library.ts';

const INFO = 48;
const ATIME = 104;
const MTIME = 112;
// struct fuse_file_info of libfuse 2.9: `flags`, `fh_old`, `writepage`.
const FLAGS = 0n;
const WRITEPAGE = 16n;

/** The modification time that utimens(2) was given, in ms since 1970. */
export function mtimeOf(record: Buffer): number {
  return Number(record.readBigInt64LE(MTIME));
}

export function atimeOf(record: Buffer): number {
  return Number(record.readBigInt64LE(ATIME));
}

/** The flags of the descriptor that a request came by, as open(2) and fcntl(2) have set them. */
export function openFlagsOf(record: Buffer): number {
  return wordAt(record.readBigUInt64LE(INFO) + FLAGS);
}

/** Whether a WRITE comes from the page cache (mmap), and not from a write call. */
export function isWriteback(record: Buffer): boolean {
  return wordAt(record.readBigUInt64LE(INFO) + WRITEPAGE) !== 0;
}
