/**
 * The record of a request: the first argument of each callback is the memory of the addon's `fuse_thread_locals_t`, in
 * which a libfuse thread hands its arguments over and waits. Read and written here by the layout of fuse-native 2.2.6
 * on x64 (fuse-native.c), because what the addon itself makes of it loses things: names that are not UTF-8, the second
 * of utimens' times, O_APPEND of a write, nanoseconds, half of an inode number.
 */
import { callFillDir, copyTo, cstringAt, wordAt } from '../../sys/shared-library.ts';

const PATH = 24;
const DEST = 32;
const LINKNAME = 40;
const INFO = 48;
const BUFFER = 56;
const LENGTH = 72;
const ATIME = 104;
const MTIME = 112;
const NAME = 128;
const STAT = 168;
const STATVFS = 176;
const FILLER = 184;
// struct fuse_file_info of libfuse 2.9: `flags`, `fh_old`, `writepage`.
const FLAGS = 0n;
const WRITEPAGE = 16n;

/** What the addon makes of bytes that are not UTF-8. */
const MANGLED = '\ufffd';

/** One of the request's strings as a byte string, from the text that the addon made of it; undefined if too long. */
function bytesAt(record: Buffer, at: number, text: string): string | undefined {
  if (text.includes(MANGLED)) return cstringAt(record.readBigUInt64LE(at));
  return Buffer.from(text, 'utf8').toString('latin1');
}

export const pathIn = (record: Buffer, text: string) => bytesAt(record, PATH, text);
export const secondPathIn = (record: Buffer, text: string) => bytesAt(record, DEST, text);
export const xattrNameIn = (record: Buffer, text: string) => bytesAt(record, NAME, text);

/** The times that utimens(2) was given, in whole ms since 1970: that is how the addon keeps them. */
export const atimeIn = (record: Buffer) => Number(record.readBigInt64LE(ATIME));
export const mtimeIn = (record: Buffer) => Number(record.readBigInt64LE(MTIME));

/** The flags of the descriptor that a request came by, as open(2) and fcntl(2) have set them. */
export function openFlagsIn(record: Buffer): number {
  return wordAt(record.readBigUInt64LE(INFO) + FLAGS);
}

/** Whether a WRITE comes from the page cache (mmap), and not from a write call. */
export function isWriteback(record: Buffer): boolean {
  return wordAt(record.readBigUInt64LE(INFO) + WRITEPAGE) !== 0;
}

/** Answers with a `struct stat`. */
export function putStat(record: Buffer, stat: Buffer): void {
  copyTo(record.readBigUInt64LE(STAT), stat, stat.length);
}

/** Answers with a `struct statvfs`. */
export function putStatvfs(record: Buffer, statvfs: Buffer): void {
  copyTo(record.readBigUInt64LE(STATVFS), statvfs, statvfs.length);
}

/** Answers with a symlink's target, cut off where there is no more room. */
export function putTarget(record: Buffer, target: Buffer): void {
  const room = Number(record.readBigUInt64LE(LENGTH)) - 1;
  const size = Math.min(target.length, room);
  const terminated = Buffer.alloc(size + 1);
  target.copy(terminated, 0, 0, size);
  copyTo(record.readBigUInt64LE(LINKNAME), terminated, terminated.length);
}

/** Answers with one more entry of a directory; `name` ends with a NUL. False: libfuse has no memory for it. */
export function putEntry(record: Buffer, name: Buffer, stat: Buffer): boolean {
  return callFillDir(record.readBigUInt64LE(FILLER), record.readBigUInt64LE(BUFFER), name, stat) === 0;
}
