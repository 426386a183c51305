/** Is a process inside the window of a `forget exec`: in its mount namespace, or started by its command? */
import { readlinkSync } from 'node:fs';
import { descendsFrom } from './ancestry.ts';
import { mountNamespace } from './leftovers.ts';

/**
 * To be asked by the process that serves the window, which is the parent of all that the command leaves behind. One that
 * is gone by the time counts as inside; one whose namespace this user may not know is not in this one.
 */
export function isInside(pid: number): boolean {
  // Outside this process's pid namespace, and so no descendant of it.
  if (pid === 0) return false;
  if (pid !== process.pid && descendsFrom(pid, process.pid)) return true;
  try {
    return readlinkSync(`/proc/${pid}/ns/mnt`) === mountNamespace();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' || code === 'ESRCH';
  }
}
