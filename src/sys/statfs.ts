/** What kind of filesystem a descriptor is on. */
import { RAMFS_MAGIC, TMPFS_MAGIC } from './constants.ts';
import { fstatfs } from './libc.ts';

const buffer = Buffer.alloc(120);

/** Whether it keeps its files in memory, so that no access waits for a disk. False also where it cannot be known. */
export function isRam(fd: number): boolean {
  if (fstatfs(fd, buffer) < 0) return false;
  const type = buffer.readUInt32LE(0);
  return type === TMPFS_MAGIC || type === RAMFS_MAGIC;
}
