/** Shared libraries that are loaded at run time, and the memory that they point to. */
import { koffi } from './koffi.ts';

/**
 * Loads a shared library for the whole process: what is loaded later and needs one of its name (its SONAME) gets this
 * one. Throws what the dynamic linker says.
 */
export function loadLibrary(path: string): void {
  koffi.load(path, { global: true });
}

/** The 32-bit word at an address, which must be mapped. */
export function wordAt(address: bigint): number {
  return koffi.decode(address, 'int32') as number;
}
