/**
 * A filesystem of the run's own: ext4 with a journal, in a file. What the machine's own disk was through decides else what
 * a new file costs: ext4 without a journal, as some virtual machines have it, gives an inode out again only minutes
 * after it was deleted, and searches past all such (fs/ext4/ialloc.c: recently_deleted), 0.2-1 ms a file.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isRoot } from './targets.ts';

const SIZE = 8 * 2 ** 30;

export interface Disk {
  path: string;
  remove(): void;
}

/** Below `base`; undefined where only root could, or there are no loop devices. */
export function freshDisk(base: string, say: (line: string) => void): Disk | undefined {
  if (!isRoot) return undefined;
  const image = join(base, 'disk.img');
  const path = join(base, 'disk');
  try {
    writeFileSync(image, '');
    truncateSync(image, SIZE);
    mkdirSync(path);
    // All of it now: the kernel would do it in the background while the run measures.
    execFileSync('mkfs.ext4', ['-q', '-F', '-E', 'lazy_itable_init=0,lazy_journal_init=0', image]);
    // Past the page cache of the file below, so that what is dropped from this one's cache comes from the disk.
    const [device] = execFileSync('losetup', ['--find', '--show', '--direct-io=on', image], {
      encoding: 'utf8',
    }).split('\n');
    try {
      execFileSync('mount', [device!, path]);
    } finally {
      // Goes with the mount.
      execFileSync('losetup', ['--detach', device!]);
    }
    return { path, remove: () => void execFileSync('umount', [path]) };
  } catch (error) {
    say(`no disk of its own: ${error instanceof Error ? error.message.split('\n')[0] : error}`);
    return undefined;
  }
}
