/**
 * `struct statx` as a reusable record: the kernel fills the buffer, the getters read it. Nothing is allocated
 * for a call (1.1 us with the call itself, against 3.2 us for `fs.lstatSync({ bigint: true })`).
 */
import { put64 } from './bytes.ts';
import { AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, STATX_BTIME } from './constants.ts';
import { errno, statx } from './libc.ts';

const WANTED = STATX_BASIC_STATS | STATX_BTIME;
const EMPTY = Buffer.from([0]);
const TWO_32 = 2 ** 32;

export class Stat {
  readonly bytes = Buffer.alloc(256);
  /** The same bytes as 64 little words of 32 bits; offsets in this file are in words. */
  readonly words = new Uint32Array(this.bytes.buffer, this.bytes.byteOffset, 64);

  /** Fills the record from `name` in the directory `dir`, not following a symlink. Returns 0 or an errno. */
  at(dir: number, name: Buffer): number {
    return statx(dir, name, AT_SYMLINK_NOFOLLOW, WANTED, this.bytes) < 0 ? errno() : 0;
  }

  /** Fills the record from an open descriptor (`O_PATH` is enough). Returns 0 or an errno. */
  of(fd: number): number {
    return statx(fd, EMPTY, AT_EMPTY_PATH, WANTED, this.bytes) < 0 ? errno() : 0;
  }

  copyFrom(other: Stat): void {
    this.words.set(other.words);
  }

  get blksize(): number {
    return this.words[1]!;
  }
  get nlink(): number {
    return this.words[4]!;
  }
  set nlink(value: number) {
    this.words[4] = value;
  }
  get uid(): number {
    return this.words[5]!;
  }
  get gid(): number {
    return this.words[6]!;
  }
  set gid(value: number) {
    this.words[6] = value;
  }
  get mode(): number {
    return this.words[7]! & 0xffff;
  }
  get ino(): number {
    return this.words[8]! + this.words[9]! * TWO_32;
  }
  set ino(value: number) {
    put64(this.words, 8, value);
  }
  get size(): number {
    return this.words[10]! + this.words[11]! * TWO_32;
  }
  /** In units of 512 bytes. */
  get blocks(): number {
    return this.words[12]! + this.words[13]! * TWO_32;
  }
  /** Whole seconds of birth, and nanoseconds: one number to compare, good to about 200 ns; 0 if unknown. */
  get birth(): number {
    if (!(this.words[0]! & STATX_BTIME)) return 0;
    return (this.words[20]! + (this.words[21]! | 0) * TWO_32) * 1e9 + this.words[22]!;
  }
  /** The birth as the kernel has it: three words, in the order of the record. */
  get birthWords(): Uint32Array {
    return this.words.slice(20, 23);
  }
  set birthWords(value: Uint32Array) {
    this.words.set(value, 20);
  }
  get mtimeSec(): number {
    return this.words[28]! + (this.words[29]! | 0) * TWO_32;
  }
  get mtimeNsec(): number {
    return this.words[30]!;
  }
  setMtime(sec: number, nsec: number): void {
    put64(this.words, 28, sec);
    this.words[30] = nsec;
  }
  /** The ctime as one number to compare, good to about 200 ns. */
  get change(): number {
    return this.ctimeSec * 1e9 + this.ctimeNsec;
  }
  get ctimeSec(): number {
    return this.words[24]! + (this.words[25]! | 0) * TWO_32;
  }
  get ctimeNsec(): number {
    return this.words[26]!;
  }
  setCtime(sec: number, nsec: number): void {
    put64(this.words, 24, sec);
    this.words[26] = nsec;
  }
  get rdevMajor(): number {
    return this.words[32]!;
  }
  get rdevMinor(): number {
    return this.words[33]!;
  }
  /** Major and minor of the device the file is on, in one number. */
  get dev(): number {
    return this.words[34]! * TWO_32 + this.words[35]!;
  }
}
