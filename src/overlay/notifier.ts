/**
 * Messages to the kernel about what it should no longer keep. They may be written only by a thread that is not
 * the request loop: the kernel handles them at once, and may have to wait for a request that the loop still owes.
 */
import { Notify, OUT_HEADER_SIZE } from '../fuse/abi.ts';
import type { Notifier } from './overlay.ts';

export class KernelNotifier implements Notifier {
  private readonly send: (messages: Uint8Array[]) => void;
  private pending: Uint8Array[] = [];

  constructor(send: (messages: Uint8Array[]) => void) {
    this.send = send;
  }

  inode(id: number): void {
    const out = header(Notify.INVAL_INODE, 24);
    out.writeBigUInt64LE(BigInt(id), OUT_HEADER_SIZE);
    // From offset 0 to the end: a length of 0 or less means all of it.
    out.writeBigInt64LE(0n, OUT_HEADER_SIZE + 8);
    out.writeBigInt64LE(0n, OUT_HEADER_SIZE + 16);
    this.pending.push(out);
  }

  entry(parent: number, name: string): void {
    const out = header(Notify.INVAL_ENTRY, 16 + name.length + 1);
    out.writeBigUInt64LE(BigInt(parent), OUT_HEADER_SIZE);
    out.writeUInt32LE(name.length, OUT_HEADER_SIZE + 8);
    out.writeUInt32LE(0, OUT_HEADER_SIZE + 12);
    out.latin1Write(name, OUT_HEADER_SIZE + 16);
    this.pending.push(out);
  }

  flush(): void {
    if (this.pending.length === 0) return;
    this.send(this.pending);
    this.pending = [];
  }
}

/** `struct fuse_out_header` of an unasked message: no unique, and the code where an error would stand. */
function header(code: number, length: number): Buffer {
  const out = Buffer.alloc(OUT_HEADER_SIZE + length);
  out.writeUInt32LE(out.length, 0);
  out.writeInt32LE(code, 4);
  return out;
}
