/** From a handler's reply, in the kernel's form, to the C library's structures on x64. Pure. */
import { OUT_HEADER_SIZE } from '../abi.ts';
import type { Reply } from '../reply.ts';

const TWO_32 = 2 ** 32;
/** Of a `struct fuse_attr_out`: validity and padding in front of the attributes. */
const ATTR_OFFSET = OUT_HEADER_SIZE + 16;

export const newStat = () => Buffer.alloc(144);
export const newStatvfs = () => Buffer.alloc(88);

/** A GETATTR reply as a `struct stat`. The kernel takes the device from its own superblock. `moreLinks` are counted in. */
export function attrToStat(reply: Reply, out: Buffer, moreLinks: number): void {
  const { bytes } = reply;
  const at = (index: number) => ATTR_OFFSET + index * 4;
  const long = (from: number, to: number) => bytes.copy(out, to, at(from), at(from) + 8);
  const word = (from: number, to: number) => bytes.copy(out, to, at(from), at(from) + 4);
  long(0, 8); // ino
  out.writeUInt32LE(bytes.readUInt32LE(at(16)) + moreLinks, 16); // nlink
  word(15, 24); // mode
  word(17, 28); // uid
  word(18, 32); // gid
  word(19, 40); // rdev
  long(2, 48); // size
  word(20, 56); // blksize
  long(4, 64); // blocks
  for (const time of [0, 1, 2]) {
    long(6 + time * 2, 72 + time * 16);
    word(12 + time, 80 + time * 16);
  }
}

/** A STATFS reply as a `struct statvfs`. */
export function kstatfsToStatvfs(reply: Reply, out: Buffer): void {
  const { bytes } = reply;
  const from = OUT_HEADER_SIZE;
  const word = (index: number) => bytes.readUInt32LE(from + 40 + index * 4);
  out.writeUInt32LE(word(0), 0); // bsize
  out.writeUInt32LE(word(2), 8); // frsize
  bytes.copy(out, 16, from, from + 40); // blocks, bfree, bavail, files, ffree
  bytes.copy(out, 56, from + 32, from + 40); // favail
  out.writeUInt32LE(word(1), 80); // namemax
}

/**
 * Calls back for each entry of a READDIR reply, with a NUL-terminated name and the type and inode number in `stat`,
 * until that returns false. Returns the cookie of the last one.
 */
export function eachEntry(reply: Reply, stat: Buffer, put: (name: Buffer) => boolean): number {
  const { bytes } = reply;
  const end = OUT_HEADER_SIZE + reply.size;
  let cookie = 0;
  for (let at = OUT_HEADER_SIZE; at < end; ) {
    const length = bytes.readUInt32LE(at + 16);
    bytes.copy(stat, 8, at, at + 8);
    stat.writeUInt32LE((bytes.readUInt32LE(at + 20) & 0xf) << 12, 24);
    cookie = bytes.readUInt32LE(at + 8) + bytes.readUInt32LE(at + 12) * TWO_32;
    const name = Buffer.alloc(length + 1);
    bytes.copy(name, 0, at + 24, at + 24 + length);
    if (!put(name)) break;
    at += (24 + length + 7) & ~7;
  }
  return cookie;
}
