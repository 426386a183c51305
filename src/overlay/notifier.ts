/**
 * Messages to the kernel about what it should no longer keep. They may be written only by a thread that is not
 * the request loop: the kernel handles them at once, and may have to wait for a request that the loop still owes.
 */
import { EXPIRE_ONLY, Notify, OUT_HEADER_SIZE } from '../fuse/abi.ts';
import type { Notifier } from './overlay.ts';

export class KernelNotifier implements Notifier {
  private readonly send: (messages: Uint8Array[]) => void;
  private readonly sendNow: (message: Buffer) => void;
  private pending: Uint8Array[] = [];

  /** `send` writes from another thread, `sendNow` from this one. */
  constructor(send: (messages: Uint8Array[]) => void, sendNow: (message: Buffer) => void) {
    this.send = send;
    this.sendNow = sendNow;
  }

  /**
   * The one message that may be written within a request: with a negative offset the kernel drops the attributes and
   * touches no page, so that there is nothing it could have to wait for.
   */
  attributes(id: number): void {
    const out = header(Notify.INVAL_INODE, 24);
    out.writeBigUInt64LE(BigInt(id), OUT_HEADER_SIZE);
    out.writeBigInt64LE(-1n, OUT_HEADER_SIZE + 8);
    this.sendNow(out);
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
    // Older kernels take this for padding, and drop the name at once: a working directory is then without a path.
    out.writeUInt32LE(EXPIRE_ONLY, OUT_HEADER_SIZE + 12);
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
