/** `struct iovec` for calls that take one: where a Buffer's memory is, asked once for those that stay the same. */
import { put64 } from './bytes.ts';
import { addressOf } from './libc.ts';

const IOVEC_BYTES = 16;
const iovec = Buffer.alloc(IOVEC_BYTES);
const words = new Uint32Array(iovec.buffer, iovec.byteOffset, IOVEC_BYTES / 4);

/** One vector, in a Buffer that the next call overwrites: for a call that is over when it returns. Without a BigInt: each is an object. */
export function iovecOf(address: number, size: number): Buffer {
  put64(words, 0, address);
  words[2] = size;
  return iovec;
}

/**
 * A vector with a copy of the data behind it, in one Buffer: for a call that a pool thread makes. An address keeps
 * nothing alive, so that data in a Buffer of their own could be collected, and their memory be another's, while the
 * thread still writes them.
 */
export function iovecWith(data: Buffer): Buffer {
  const out = Buffer.allocUnsafeSlow(IOVEC_BYTES + data.length);
  iovecOf(Number(addressOf(out)) + IOVEC_BYTES, data.length).copy(out);
  data.copy(out, IOVEC_BYTES);
  return out;
}

/** `addressOf` that remembers the last Buffer, as a number: addresses have 47 bits, more only for who asks for them. */
export function rememberedAddress(): (bytes: Buffer) => number {
  let known: Buffer | undefined;
  let address = 0;
  return (bytes) => {
    if (bytes !== known) {
      known = bytes;
      address = Number(addressOf(bytes));
    }
    return address;
  };
}
