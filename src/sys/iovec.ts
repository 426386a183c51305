/** `struct iovec` for calls that take one: where a Buffer's memory is, asked once for those that stay the same. */
import { addressOf } from './libc.ts';

const iovec = Buffer.alloc(16);

/** One vector, in a Buffer that the next call overwrites. */
export function iovecOf(address: bigint, size: number): Buffer {
  iovec.writeBigUInt64LE(address, 0);
  iovec.writeBigUInt64LE(BigInt(size), 8);
  return iovec;
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
