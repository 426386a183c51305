/**
 * Answers whose data are a file's pages: header and pages go through a pipe to the device, and are copied once, into the
 * asker's page cache, where a read and a write copy them twice.
 */
import { F_GETPIPE_SZ, F_SETPIPE_SZ, O_CLOEXEC, O_NONBLOCK } from '../sys/constants.ts';
import { close, fcntl, pipe2, splice, write } from '../sys/libc.ts';
import { PAGE, pagesOf } from '../sys/page-cache.ts';
import { MAX_IO, OUT_HEADER_SIZE } from './abi.ts';

/** A pipe holds so many pieces, of a page at most: the header is one. An ordinary user's may be 1 MiB (pipe(7)). */
const SIZES = [2 * MAX_IO, MAX_IO];

export class PagePipe {
  private readEnd = -1;
  private writeEnd = -1;
  private pieces = 0;
  private readonly position = Buffer.alloc(8);

  /**
   * Writes to `device` the `OUT_HEADER_SIZE` bytes of `header`, and `size` bytes of `fd` from `offset`. False, with nothing
   * written, where the file does not have as many, they do not fit into a pipe, or the device refuses them. It
   * may wait for the file's disk.
   */
  send(device: number, header: Buffer, fd: number, offset: number, size: number): boolean {
    if (this.readEnd < 0 && !this.make()) return false;
    if (pagesOf(offset, size) + 1 > this.pieces) return false;
    const length = OUT_HEADER_SIZE + size;
    const sent =
      write(this.writeEnd, header, OUT_HEADER_SIZE) === OUT_HEADER_SIZE &&
      this.fill(fd, offset, size) &&
      splice(this.readEnd, null, device, null, length, 0) === length;
    if (!sent) this.close();
    return sent;
  }

  private fill(fd: number, offset: number, size: number): boolean {
    this.position.writeBigInt64LE(BigInt(offset));
    for (let left = size; left > 0; ) {
      const n = splice(fd, this.position, this.writeEnd, null, left, 0);
      if (n <= 0) return false;
      left -= n;
    }
    return true;
  }

  private make(): boolean {
    const ends = Buffer.alloc(8);
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) return false;
    this.readEnd = ends.readInt32LE(0);
    this.writeEnd = ends.readInt32LE(4);
    for (const size of SIZES) if (fcntl(this.readEnd, F_SETPIPE_SZ, size) >= 0) break;
    this.pieces = fcntl(this.readEnd, F_GETPIPE_SZ, 0) / PAGE;
    return true;
  }

  /** Gives up the pipe with what is in it; the next `send` makes another. */
  close(): void {
    if (this.readEnd < 0) return;
    close(this.readEnd);
    close(this.writeEnd);
    this.readEnd = -1;
    this.writeEnd = -1;
  }
}
