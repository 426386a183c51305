/**
 * A request as the kernel wrote it, decoded field by field. Pure: it reads bytes and knows no file system.
 *
 * One Request stands for the buffer of the loop and is filled again and again. Words are 32 bits, little
 * endian; a 64-bit field is returned as a number, exact below 2^53.
 */
import { nulAt } from '../sys/bytes.ts';
import { IN_HEADER_SIZE, REQUEST_BUFFER_SIZE } from './abi.ts';

const TWO_32 = 2 ** 32;
const HEADER_WORDS = IN_HEADER_SIZE / 4;

export class Request {
  readonly bytes = Buffer.alloc(REQUEST_BUFFER_SIZE);
  private readonly words = new Uint32Array(this.bytes.buffer, this.bytes.byteOffset, REQUEST_BUFFER_SIZE / 4);
  /** Bytes of the request that now stands in the buffer. */
  length = 0;

  // struct fuse_in_header
  get opcode(): number {
    return this.words[1]!;
  }
  get uniqueLow(): number {
    return this.words[2]!;
  }
  get uniqueHigh(): number {
    return this.words[3]!;
  }
  get nodeid(): number {
    return this.words[4]! + this.words[5]! * TWO_32;
  }
  get uid(): number {
    return this.words[6]!;
  }
  get gid(): number {
    return this.words[7]!;
  }
  get pid(): number {
    return this.words[8]!;
  }

  /** False for a request that is shorter than its header says, or than a header. */
  get wellFormed(): boolean {
    return this.length >= IN_HEADER_SIZE && this.words[0] === this.length;
  }

  /** The number of bytes of arguments behind the header. */
  get argLength(): number {
    return this.length - IN_HEADER_SIZE;
  }

  /** The `index`-th 32-bit word of the arguments. */
  u32(index: number): number {
    return this.words[HEADER_WORDS + index]!;
  }
  /** The 64-bit field that begins at the `index`-th word of the arguments. */
  u64(index: number): number {
    return this.words[HEADER_WORDS + index]! + this.words[HEADER_WORDS + index + 1]! * TWO_32;
  }
  i64(index: number): number {
    return this.words[HEADER_WORDS + index]! + (this.words[HEADER_WORDS + index + 1]! | 0) * TWO_32;
  }

  /**
   * The NUL-terminated byte string at `offset` bytes into the arguments, or undefined where no NUL ends it
   * within the request.
   */
  cstring(offset: number): string | undefined {
    const start = IN_HEADER_SIZE + offset;
    const end = nulAt(this.bytes, start);
    if (end < 0 || end >= this.length) return undefined;
    return this.bytes.latin1Slice(start, end);
  }

  /** A view of the arguments from `offset` on, valid until the next request is read. */
  data(offset: number, length: number): Buffer {
    const start = IN_HEADER_SIZE + offset;
    return this.bytes.subarray(start, start + length);
  }

  /** Where the data at `offset` of the arguments begin in `bytes`. */
  dataStart(offset: number): number {
    return IN_HEADER_SIZE + offset;
  }

  /** A copy to be answered later, and its way back. */
  save(): Buffer {
    return Buffer.from(this.bytes.subarray(0, this.length));
  }
  restore(saved: Buffer): void {
    saved.copy(this.bytes);
    this.length = saved.length;
  }
}
