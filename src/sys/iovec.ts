/** `struct iovec` for calls that take one: where a Buffer's memory is, asked once for those that stay the same. */
import { addressOf } from './libc.ts';

const IOVEC_BYTES = 16;
const iovec = Buffer.alloc(IOVEC_BYTES);

function put(into: Buffer, address: bigint, size: number): void {
  into.writeBigUInt64LE(address, 0);
  into.writeBigUInt64LE(BigInt(size), 8);
}

/** One vector, in a Buffer that the next call overwrites: for a call that is over when it returns. */
export function iovecOf(address: bigint, size: number): Buffer {
  put(iovec, address, size);
  return iovec;
}

/**
 * A vector with a copy of the data behind it, in one Buffer: for a call that a pool thread makes. An address keeps
 * nothing alive, so that data in a Buffer of their own could be collected, and their memory be another's, while the
 * thread still writes them.
 */
export function iovecWith(data: Buffer): Buffer {
  const out = Buffer.allocUnsafeSlow(IOVEC_BYTES + data.length);
  put(out, addressOf(out) + BigInt(IOVEC_BYTES), data.length);
  data.copy(out, IOVEC_BYTES);
  return out;
}

/** `addressOf` that remembers the last Buffer. */
export function rememberedAddress(): (bytes: Buffer) => bigint {
  let known: Buffer | undefined;
  let address = 0n;
  return (bytes) => {
    if (bytes !== known) {
      known = bytes;
      address = addressOf(bytes);
    }
    return address;
  };
}
