/** What kind of filesystem a descriptor is on. */
import { RAMFS_MAGIC, TMPFS_MAGIC } from './constants.ts';
import { fstatfs } from './libc.ts';

const buffer = Buffer.alloc(120);

/** The magic number of its type (statfs(2)); undefined where it cannot be known. */
export function filesystemType(fd: number): number | undefined {
  return fstatfs(fd, buffer) < 0 ? undefined : buffer.readUInt32LE(0);
}

/** Whether it keeps its files in memory, so that no access waits for a disk. False also where it cannot be known. */
export function isRam(fd: number): boolean {
  const type = filesystemType(fd);
  return type === TMPFS_MAGIC || type === RAMFS_MAGIC;
}
