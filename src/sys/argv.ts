/**
 * The command line and the working directory as bytes. Node decodes both as UTF-8 and puts U+FFFD where that fails,
 * so that a file named in latin1 could not be reached.
 */
import { readFileSync, readlinkSync, statSync } from 'node:fs';
import { ENOENT, SysError } from './errno.ts';

/**
 * The arguments after the script, as byte strings: the counterpart of `process.argv.slice(2)`.
 * Read before anything sets `process.title`, which overwrites the kernel's copy.
 */
export function rawArguments(): string[] {
  const count = process.argv.length - 2;
  if (count <= 0) return [];
  const all = readFileSync('/proc/self/cmdline', 'latin1').split('\0');
  all.pop();
  return all.slice(-count);
}

/** The environment that this process was started with, as byte strings `NAME=value`. */
export function rawEnvironment(): string[] {
  const all = readFileSync('/proc/self/environ', 'latin1').split('\0');
  all.pop();
  return all;
}

/** The working directory's path as it was when the process entered, asked of no filesystem: one that hangs, too. */
export function directoryWithoutLooking(): string {
  return readlinkSync('/proc/self/cwd', 'buffer').toString('latin1');
}

/** The working directory as a byte string. Throws SysError ENOENT if it was removed. */
export function currentDirectory(): string {
  // Not by comparing with what stands at the path: a mount may cover it since this process entered.
  if (statSync('/proc/self/cwd').nlink === 0)
    throw new SysError(ENOENT, 'the current directory no longer exists');
  return readlinkSync('/proc/self/cwd', 'buffer').toString('latin1');
}
