/** Keeps that were cut off by a `kill -9` or a crash, and what they left in a workspace (overlay/keep-journal.ts). */
import { posix } from 'node:path';
import { entryOf } from '../overlay/bases.ts';
import { JOURNAL } from '../overlay/keep-names.ts';
import { cstring, displayName } from '../sys/bytes.ts';
import { O_CLOEXEC, O_DIRECTORY, O_PATH } from '../sys/constants.ts';
import { close, open } from '../sys/libc.ts';
import { isFuseMount, mountAt, readMountinfo } from './mountinfo.ts';

/** Puts a workspace right before it is covered. `lower` is its descriptor; returns a line for the person, if there was anything. */
export async function recoverBeforeOpening(lower: number, name: string): Promise<string | undefined> {
  if (!entryOf(lower, JOURNAL)) return undefined;
  const { recoverKeep } = await import('../overlay/keep-journal.ts');
  try {
    const done = recoverKeep(lower);
    return done && `forget: ${displayName(name)}: ${done}`;
  } catch (error) {
    return `forget: ${displayName(name)}: ${(error as Error).message}`;
  }
}

export interface CutOffKeep {
  /** Made readable. */
  directory: string;
  /** What was done about it, or what stands against it. */
  outcome: string;
  settled: boolean;
}

/** In the directory and those above it, which a workspace may be; nobody's mount is touched. */
export async function cutOffKeeps(directory: string, fix: boolean): Promise<CutOffKeep[]> {
  const mounts = readMountinfo();
  const found: CutOffKeep[] = [];
  for (let at = directory; ; at = posix.dirname(at)) {
    const mount = mountAt(at, mounts);
    if (!mount || !isFuseMount(mount)) {
      const keep = await cutOffKeepIn(at, fix);
      if (keep) found.push(keep);
    }
    if (at === '/') return found;
  }
}

async function cutOffKeepIn(directory: string, fix: boolean): Promise<CutOffKeep | undefined> {
  const fd = open(cstring(directory), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0) return undefined;
  try {
    if (!entryOf(fd, JOURNAL)) return undefined;
    const name = displayName(directory);
    if (!fix) return { directory: name, outcome: 'a keep was cut off, or is under way', settled: false };
    const { recoverKeep } = await import('../overlay/keep-journal.ts');
    try {
      const done = recoverKeep(fd);
      return { directory: name, outcome: done ?? 'a keep is under way', settled: true };
    } catch (error) {
      return { directory: name, outcome: (error as Error).message, settled: false };
    }
  } finally {
    close(fd);
  }
}
