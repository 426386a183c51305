/**
 * A reply in the making: header, then whatever the operation puts behind it. Pure: it writes bytes.
 *
 * One Reply stands for the loop's buffer. `begin` clears it, the `put*` methods append, `finish` writes the
 * header and says how many bytes to send.
 */
import { put64 } from '../sys/bytes.ts';
import type { Stat } from '../sys/stat.ts';
import { ATTR_SIZE, ENTRY_OUT_SIZE, MAX_IO, OUT_HEADER_SIZE } from './abi.ts';

const CAPACITY = OUT_HEADER_SIZE + MAX_IO + 4096;

/** How long the kernel may keep a name and attributes, in whole seconds. */
export interface Validity {
  entry: number;
  attr: number;
}

export class Reply {
  readonly bytes = Buffer.alloc(CAPACITY);
  private readonly words = new Uint32Array(this.bytes.buffer, this.bytes.byteOffset, CAPACITY / 4);
  private end = OUT_HEADER_SIZE;

  begin(): void {
    this.end = OUT_HEADER_SIZE;
  }

  /** Both are multiples of 4. */
  private zero(from: number, to: number): void {
    for (let at = from >> 2; at < to >> 2; at++) this.words[at] = 0;
  }

  /** Bytes put so far, without the header. */
  get size(): number {
    return this.end - OUT_HEADER_SIZE;
  }

  /** Writes the header for a success (`errno` 0) or a failure; returns the bytes to send. */
  finish(uniqueLow: number, uniqueHigh: number, errno: number): number {
    const length = errno === 0 ? this.end : OUT_HEADER_SIZE;
    this.words[0] = length;
    this.words[1] = -errno;
    this.words[2] = uniqueLow;
    this.words[3] = uniqueHigh;
    return length;
  }

  putU32(value: number): void {
    this.words[this.end >> 2] = value;
    this.end += 4;
  }
  putU64(value: number): void {
    put64(this.words, this.end >> 2, value);
    this.end += 8;
  }

  /** Where data may be written directly; `commit` then says how much was. */
  room(): Buffer {
    return this.bytes.subarray(this.end);
  }
  commit(length: number): void {
    this.end += length;
  }
  putBytes(data: Buffer): void {
    data.copy(this.bytes, this.end);
    this.end += data.length;
  }

  /** `struct fuse_attr`. */
  putAttr(st: Stat): void {
    const w = this.words;
    const s = st.words;
    const at = this.end >> 2;
    w[at] = s[8]!;
    w[at + 1] = s[9]!;
    w[at + 2] = s[10]!;
    w[at + 3] = s[11]!;
    w[at + 4] = s[12]!;
    w[at + 5] = s[13]!;
    w[at + 6] = s[16]!;
    w[at + 7] = s[17]!;
    w[at + 8] = s[28]!;
    w[at + 9] = s[29]!;
    w[at + 10] = s[24]!;
    w[at + 11] = s[25]!;
    w[at + 12] = s[18]!;
    w[at + 13] = s[30]!;
    w[at + 14] = s[26]!;
    w[at + 15] = st.mode;
    w[at + 16] = st.nlink;
    w[at + 17] = st.uid;
    w[at + 18] = st.gid;
    w[at + 19] = encodeDevice(st.rdevMajor, st.rdevMinor);
    w[at + 20] = st.blksize;
    w[at + 21] = 0;
    this.end += ATTR_SIZE;
  }

  /** `struct fuse_entry_out`. A node id of 0 says that the name does not exist, for as long as `entry`. */
  putEntry(nodeid: number, validity: Validity, st: Stat | null): void {
    this.putU64(nodeid);
    this.putU64(0);
    this.putU64(validity.entry);
    this.putU64(validity.attr);
    this.putU32(0);
    this.putU32(0);
    if (st) this.putAttr(st);
    else {
      this.zero(this.end, this.end + ATTR_SIZE);
      this.end += ATTR_SIZE;
    }
  }

  /** `struct fuse_attr_out`. */
  putAttrOut(attrValid: number, st: Stat): void {
    this.putU64(attrValid);
    this.putU32(0);
    this.putU32(0);
    this.putAttr(st);
  }

  /** `struct fuse_statx_out`: its record has the layout of `struct statx`. */
  putStatxOut(attrValid: number, st: Stat): void {
    this.putU64(attrValid);
    this.putU32(0);
    this.putU32(0);
    this.putU64(0);
    this.putU64(0);
    const at = this.end;
    this.putBytes(st.bytes);
    // The kernel refuses any other attribute bits, and takes the device from its own superblock.
    this.zero(at + 8, at + 16);
    this.zero(at + 56, at + 64);
    this.zero(at + 136, at + 256);
  }

  /** `struct fuse_write_out`: how many bytes were written or copied. */
  putCount(count: number): void {
    this.putU32(count);
    this.putU32(0);
  }

  /** `struct fuse_open_out`. */
  putOpen(handle: number, flags: number): void {
    this.putU64(handle);
    this.putU32(flags);
    this.putU32(0);
  }

  /**
   * One directory entry for READDIR; with an entry in front of it for READDIRPLUS. Returns false, with nothing
   * put, when it does not fit into `limit` bytes of reply.
   */
  putDirent(ino: number, cookie: number, type: number, name: string, limit: number): boolean {
    const size = direntSize(name.length);
    if (this.size + size > limit) return false;
    const end = this.end + size;
    this.zero(end - 8, end);
    this.putU64(ino);
    this.putU64(cookie);
    this.putU32(name.length);
    this.putU32(type);
    this.bytes.latin1Write(name, this.end);
    this.end = end;
    return true;
  }
}

/** Bytes of a `struct fuse_dirent` with its name, padded to 8. */
export function direntSize(nameLength: number): number {
  return (24 + nameLength + 7) & ~7;
}

/** Bytes of a `struct fuse_direntplus` with its name. */
export function direntPlusSize(nameLength: number): number {
  return ENTRY_OUT_SIZE + direntSize(nameLength);
}

/** The kernel's `new_encode_dev`: the form of device numbers in FUSE, and of mknod(2)'s argument below 2^32. */
export function encodeDevice(major: number, minor: number): number {
  return ((minor & 0xff) | (major << 8) | ((minor & ~0xff) << 12)) >>> 0;
}
