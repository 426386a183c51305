/** Shared libraries that are loaded at run time, and the memory that they point to. Addresses must be mapped. */
import { koffi } from './koffi.ts';

const lib = koffi.load(null);

/** A library that nobody refers to is unloaded when garbage is collected. */
const loaded: unknown[] = [];

/**
 * Loads a shared library for the whole process: what is loaded later and needs one of its name (its SONAME) gets this
 * one. Throws what the dynamic linker says.
 */
export function loadLibrary(path: string): void {
  loaded.push(koffi.load(path, { global: true }));
}

/** The 32-bit word at an address. */
export function wordAt(address: bigint): number {
  return koffi.decode(address, 'int32') as number;
}

/** Copies the first `size` bytes of a Buffer to an address. */
export const copyTo: (address: bigint, from: Buffer, size: number) => unknown = lib.func(
  'void* memcpy(uint64_t to, void* from, size_t size)',
);

const memccpy: (to: Buffer, from: bigint, until: number, size: number) => unknown = lib.func(
  'void* memccpy(void* to, uint64_t from, int until, size_t size)',
);
const scratch = Buffer.alloc(1 << 16);

/** The byte string at an address, without its NUL; undefined for one of 64 KiB or more. */
export function cstringAt(address: bigint): string | undefined {
  if (memccpy(scratch, address, 0, scratch.length) === null) return undefined;
  return scratch.latin1Slice(0, scratch.indexOf(0));
}

const fillType = koffi.proto('int forget_fill_dir(uint64_t buf, void* name, void* stat, int64_t offset)');

/** Calls a `fuse_fill_dir_t` of libfuse: 1 says that there is no room for more. */
export function callFillDir(filler: bigint, buffer: bigint, name: Buffer, stat: Buffer): number {
  return koffi.call(filler, fillType, buffer, name, stat, 0);
}
