/**
 * Messages to the kernel about what it should no longer keep. They may be written only by a thread that is not
 * the request loop: the kernel handles them at once, and may have to wait for a request that the loop still owes.
 * State: what was said since the last flush, and the names to be said once more.
 */
import { EXPIRE_ONLY, Notify, OUT_HEADER_SIZE } from '../fuse/abi.ts';
import type { Notifier } from './overlay.ts';

/**
 * A process that had a name confirmed just before it was expired may note that only now, and make it valid again: the
 * kernel has no lock between the two. So the name is expired a second time.
 */
const AGAIN_MS = 40;

/** A message, and the node that it is about: those about one node must not overtake each other. */
export interface Message {
  key: number;
  bytes: Buffer;
}

export class KernelNotifier implements Notifier {
  private readonly send: (messages: Message[]) => void;
  private readonly sendNow: (message: Buffer) => void;
  private readonly pending = new Map<string, Message>();
  /** How many there were so far. */
  sent = 0;
  private expired: Message[] = [];
  private timer: NodeJS.Timeout | undefined;

  /** `send` writes from another thread, `sendNow` from this one. */
  constructor(send: (messages: Message[]) => void, sendNow: (message: Buffer) => void) {
    this.send = send;
    this.sendNow = sendNow;
  }

  attributesNow(id: number): void {
    this.sendNow(inodeMessage(id, -1n));
  }

  attributes(id: number): void {
    const key = `a${id}`;
    if (!this.pending.has(key)) this.pending.set(key, { key: id, bytes: inodeMessage(id, -1n) });
  }

  inode(id: number): void {
    const key = `i${id}`;
    // From offset 0 to the end: a length of 0 or less means all of it.
    if (!this.pending.has(key)) this.pending.set(key, { key: id, bytes: inodeMessage(id, 0n) });
  }

  entry(parent: number, name: string, stillSomewhere: boolean): void {
    const key = `${parent}/${name}`;
    if (this.pending.has(key)) return;
    const bytes = header(Notify.INVAL_ENTRY, 16 + name.length + 1);
    bytes.writeBigUInt64LE(BigInt(parent), OUT_HEADER_SIZE);
    bytes.writeUInt32LE(name.length, OUT_HEADER_SIZE + 8);
    // Kernels before 6.2 take this for padding, and drop the name at once: a working directory is then without a path.
    bytes.writeUInt32LE(stillSomewhere ? EXPIRE_ONLY : 0, OUT_HEADER_SIZE + 12);
    bytes.latin1Write(name, OUT_HEADER_SIZE + 16);
    const message = { key: parent, bytes };
    this.pending.set(key, message);
    if (stillSomewhere) this.expired.push(message);
  }

  flush(): void {
    if (this.pending.size > 0) this.write([...this.pending.values()]);
    this.pending.clear();
    if (this.expired.length > 0) this.timer ??= setTimeout(() => this.again(), AGAIN_MS);
  }

  end(): void {
    clearTimeout(this.timer);
    this.expired = [];
  }

  private again(): void {
    this.timer = undefined;
    this.write(this.expired);
    this.expired = [];
  }

  private write(messages: Message[]): void {
    this.sent += messages.length;
    this.send(messages);
  }
}

function inodeMessage(id: number, offset: bigint): Buffer {
  const out = header(Notify.INVAL_INODE, 24);
  out.writeBigUInt64LE(BigInt(id), OUT_HEADER_SIZE);
  out.writeBigInt64LE(offset, OUT_HEADER_SIZE + 8);
  return out;
}

/** `struct fuse_out_header` of an unasked message: no unique, and the code where an error would stand. */
function header(code: number, length: number): Buffer {
  const out = Buffer.alloc(OUT_HEADER_SIZE + length);
  out.writeUInt32LE(out.length, 0);
  out.writeInt32LE(code, 4);
  return out;
}
