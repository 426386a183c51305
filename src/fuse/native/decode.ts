/** From a handler's reply, which has the kernel's form, to what fuse-native's addon takes. Pure. */
import { OUT_HEADER_SIZE } from '../abi.ts';
import type { Reply } from '../reply.ts';

const TWO_32 = 2 ** 32;
/** Of a `struct fuse_attr_out`: validity and padding in front of the attributes. */
const ATTR_OFFSET = OUT_HEADER_SIZE + 16;
const STAT_WORDS = 18;
const STATFS_WORDS = 11;

/**
 * A GETATTR reply into the addon's 18 words. Inode numbers have 32 bits there; times are whole ms, and none is before
 * 1970.
 */
export function putStat(reply: Reply, out: Uint32Array): void {
  const { bytes } = reply;
  const word = (index: number) => bytes.readUInt32LE(ATTR_OFFSET + index * 4);
  out[0] = word(15); // mode
  out[1] = word(17); // uid
  out[2] = word(18); // gid
  out[3] = word(2); // size
  out[4] = word(3);
  out[5] = 0; // the kernel takes the device from its own superblock
  out[6] = word(16); // nlink
  out[7] = shortInode(word(0), word(1));
  out[8] = word(19); // rdev
  out[9] = word(20); // blksize
  out[10] = word(4); // blocks
  out[11] = word(5);
  putTime(out, 12, word(6), word(7), word(12)); // atime
  putTime(out, 14, word(8), word(9), word(13)); // mtime
  putTime(out, 16, word(10), word(11), word(14)); // ctime
}

export function newStat(): Uint32Array {
  return new Uint32Array(STAT_WORDS);
}

/** Both halves in one: the overlay numbers what it made itself from 2^51 on. 0 would say that there is no file. */
function shortInode(low: number, high: number): number {
  return (low ^ high) >>> 0 || 1;
}

function putTime(out: Uint32Array, at: number, low: number, high: number, nsec: number): void {
  const ms = Math.max(0, (low + (high | 0) * TWO_32) * 1000 + Math.floor(nsec / 1e6));
  out[at] = ms % TWO_32;
  out[at + 1] = Math.floor(ms / TWO_32);
}

/** A STATFS reply as the addon's 11 words of 32 bits; a larger filesystem is told in larger blocks. */
export function statfsWords(reply: Reply): Uint32Array {
  const { bytes } = reply;
  const long = (index: number) => Number(bytes.readBigUInt64LE(OUT_HEADER_SIZE + index * 8));
  const word = (index: number) => bytes.readUInt32LE(OUT_HEADER_SIZE + 40 + index * 4);
  let scale = 1;
  while (long(0) / scale >= TWO_32) scale *= 2;
  const blocks = (index: number) => Math.floor(long(index) / scale);
  const files = (index: number) => Math.min(long(index), TWO_32 - 1);
  const out = new Uint32Array(STATFS_WORDS);
  out.set([word(0) * scale, word(2) * scale, blocks(0), blocks(1), blocks(2), files(3), files(4), files(4)]);
  out[10] = word(1);
  return out;
}

export function emptyStatfs(): Uint32Array {
  return new Uint32Array(STATFS_WORDS);
}

export interface Entry {
  /** Byte string. */
  name: string;
  /** Mode with the type alone, and inode number. */
  stat: Uint32Array;
  cookie: number;
}

/** The entries of a READDIR reply. */
export function* entriesOf(reply: Reply): Generator<Entry> {
  const { bytes } = reply;
  const end = OUT_HEADER_SIZE + reply.size;
  for (let at = OUT_HEADER_SIZE; at < end; ) {
    const length = bytes.readUInt32LE(at + 16);
    const stat = newStat();
    stat[0] = (bytes.readUInt32LE(at + 20) & 0xf) << 12;
    stat[7] = shortInode(bytes.readUInt32LE(at), bytes.readUInt32LE(at + 4));
    const cookie = bytes.readUInt32LE(at + 8) + bytes.readUInt32LE(at + 12) * TWO_32;
    yield { name: bytes.latin1Slice(at + 24, at + 24 + length), stat, cookie };
    at += (24 + length + 7) & ~7;
  }
}
