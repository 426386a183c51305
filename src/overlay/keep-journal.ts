/**
 * Keeping changes several names of the lower, one after another. So that it is all or nothing also after a `kill -9`, the
 * lower's root has a journal meanwhile, from which the next keep, the next window or `forget doctor` puts things right.
 *
 *   stage      what stands in the lower                       what a recovery does
 *   prepare    new files under temporary names                removes them
 *   commit     some of the steps are done                     takes them back, removes the new files
 *   clean      all steps are done; originals may be left      removes the originals
 *
 * Who keeps has a lock on the root directory, which the kernel gives back however it ends.
 */
import { cstring, scratchCstring } from '../sys/bytes.ts';
import {
  AT_REMOVEDIR,
  AT_SYMLINK_NOFOLLOW,
  LOCK_EX,
  LOCK_NB,
  O_CLOEXEC,
  O_CREAT,
  O_DIRECTORY,
  O_EXCL,
  O_NOFOLLOW,
  O_RDONLY,
  O_WRONLY,
  RENAME_EXCHANGE,
  RENAME_NOREPLACE,
  S_IFDIR,
  S_IFMT,
} from '../sys/constants.ts';
import { EAGAIN, EINVAL, ENOENT, ENOTDIR, SysError } from '../sys/errno.ts';
import {
  close,
  errno,
  fchmodat,
  fchownat,
  flock,
  fsync,
  linkat,
  openat,
  read,
  renameat2,
  unlinkat,
  write,
} from '../sys/libc.ts';
import { slowly } from '../sys/pool.ts';
import { Stat } from '../sys/stat.ts';
import { entryOf } from './bases.ts';
import { JOURNAL, NEXT_JOURNAL, TEMPORARY } from './keep-names.ts';
import { eachEntry } from './listing.ts';
import { withLowerDirectory } from './lower-path.ts';

const LONGEST = 64 << 20;

export type Stage = 'prepare' | 'commit' | 'clean';

/** One change of one name of the lower. Names are byte strings. */
export interface Step {
  /**
   * `put`: a new name. `swap`: the new file takes the place of what is there. `remove`: what is there goes. `attributes`:
   * of a directory that stays.
   */
  kind: 'put' | 'swap' | 'remove' | 'attributes';
  /** The directory's path from the root. */
  directory: string;
  name: string;
  /** Beside the name: the new file before the step, the original after it. */
  temporary: string;
  /** The new file's inode, from `commit` on. */
  ino: number;
  /** What a directory's attributes were. */
  before?: { mode: number; uid: number; gid: number };
}

export interface Journal {
  version: 1;
  stage: Stage;
  steps: Step[];
}

const stat = new Stat();

/** A lock on keeping in this lower: a descriptor to close, or -errno; -EAGAIN where another keeps. */
export function lockKeeping(root: number): number {
  const fd = openat(root, scratchCstring('.'), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0) return -errno();
  // A network filesystem may not lock directories: there the journal alone tells of another.
  if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno() === EAGAIN) {
    close(fd);
    return -EAGAIN;
  }
  return fd;
}

/** Writes the journal, or its next stage in its place, for good. `lock` is the root's own descriptor. Throws SysError. */
export async function writeJournal(root: number, lock: number, journal: Journal): Promise<void> {
  const name = cstring(NEXT_JOURNAL);
  unlinkat(root, name, 0);
  const fd = openat(root, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0o600);
  if (fd < 0) throw new SysError(errno(), 'writing the journal of the keep');
  try {
    const bytes = Buffer.from(JSON.stringify(journal));
    for (let at = 0; at < bytes.length; ) {
      const n = write(fd, bytes.subarray(at), bytes.length - at);
      if (n < 0) throw new SysError(errno(), 'writing the journal of the keep');
      at += n;
    }
    const { result, error } = await slowly(fsync, [fd]);
    if (result < 0) throw new SysError(error, 'writing the journal of the keep');
  } catch (error) {
    unlinkat(root, name, 0);
    throw error;
  } finally {
    close(fd);
  }
  if (renameat2(root, name, root, cstring(JOURNAL), 0) < 0) {
    throw new SysError(errno(), 'writing the journal of the keep');
  }
  await slowly(fsync, [lock]);
}

export function removeJournal(root: number): void {
  unlinkat(root, cstring(NEXT_JOURNAL), 0);
  unlinkat(root, cstring(JOURNAL), 0);
}

/** Undefined where there is none. Throws SysError, or an Error where it is not forget's. */
export function readJournal(root: number): Journal | undefined {
  const fd = openat(root, cstring(JOURNAL), O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
  if (fd < 0) {
    if (errno() === ENOENT) return undefined;
    throw new SysError(errno(), `reading ${JOURNAL}`);
  }
  const chunks: Buffer[] = [];
  try {
    const error = stat.of(fd);
    if (error) throw new SysError(error, `reading ${JOURNAL}`);
    // It may have come with the workspace: one that this user's forget has written is nobody else's to read.
    if (stat.uid !== process.geteuid!() || (stat.mode & 0o7777) !== 0o600) {
      throw new Error(`${JOURNAL} was not written by a forget of this user: look at it, and remove it`);
    }
    for (let total = 0; total < LONGEST; ) {
      const chunk = Buffer.alloc(64 << 10);
      const n = read(fd, chunk, chunk.length);
      if (n < 0) throw new SysError(errno(), `reading ${JOURNAL}`);
      if (n === 0) break;
      chunks.push(chunk.subarray(0, n));
      total += n;
    }
  } finally {
    close(fd);
  }
  return journalIn(Buffer.concat(chunks).toString());
}

/** It stands in a directory where others write: it is believed only in names that are forget's own. */
function journalIn(text: string): Journal {
  const journal = JSON.parse(text) as Journal;
  const isName = (value: unknown) => typeof value === 'string' && !/^\.{0,2}$|[/\0]|[^\0-\xff]/.test(value);
  const isPath = (value: unknown) =>
    typeof value === 'string' && (value === '' || value.split('/').every(isName));
  const isStep = (step: Step) =>
    ['put', 'swap', 'remove', 'attributes'].includes(step.kind) &&
    isPath(step.directory) &&
    isName(step.name) &&
    isName(step.temporary) &&
    step.temporary.startsWith(TEMPORARY) &&
    typeof step.ino === 'number';
  const isWhole =
    journal.version === 1 &&
    ['prepare', 'commit', 'clean'].includes(journal.stage) &&
    Array.isArray(journal.steps) &&
    journal.steps.every(isStep);
  if (!isWhole) throw new Error(`${JOURNAL} is not a journal that this version of forget has written`);
  return journal;
}

/** Does one step. Returns 0 or an errno. */
export function doStep(root: number, step: Step): number {
  const { kind, name, temporary, directory } = step;
  return withLowerDirectory(root, directory, (dir) => {
    if (dir < 0) return -dir;
    if (kind === 'attributes') return 0;
    if (kind === 'remove') return move(dir, name, temporary);
    if (kind === 'put') return move(dir, temporary, name);
    return exchange(dir, temporary, name);
  });
}

/** Takes back what was done of a step: nothing, where it was not. Returns 0 or an errno. */
export function undoStep(root: number, step: Step): number {
  const { kind, name, temporary, directory } = step;
  return withLowerDirectory(root, directory, (dir) => {
    if (dir < 0) return -dir;
    if (kind === 'attributes') return restoreAttributes(dir, step);
    const here = entryOf(dir, name);
    const aside = entryOf(dir, temporary);
    if (kind === 'swap' && entryOf(dir, thirdName(temporary))) {
      const error = here?.ino === step.ino ? move(dir, name, temporary) : 0;
      return error || move(dir, thirdName(temporary), name);
    }
    if (kind === 'remove') return aside && !here ? move(dir, temporary, name) : 0;
    // Not ours by now: somebody has put something else there.
    if (here?.ino !== step.ino) return 0;
    if (kind === 'put') return move(dir, name, temporary);
    return aside ? exchange(dir, temporary, name) : 0;
  });
}

function restoreAttributes(dir: number, { name, before }: Step): number {
  if (!before) return 0;
  const at = cstring(name);
  if (fchownat(dir, at, before.uid, before.gid, AT_SYMLINK_NOFOLLOW) < 0) return errno();
  return fchmodat(dir, at, before.mode & 0o7777, 0) < 0 ? errno() : 0;
}

/** Renames to a name that must be free. */
function move(dir: number, from: string, to: string): number {
  if (renameat2(dir, scratchCstring(from, 0), dir, scratchCstring(to, 1), RENAME_NOREPLACE) === 0) return 0;
  if (errno() !== EINVAL) return errno();
  // NFS has no such rename. A link does not replace anything either; a directory replaces nothing but an empty one.
  if (isDirectory(dir, from)) return plainRename(dir, from, to);
  if (linkat(dir, scratchCstring(from, 0), dir, scratchCstring(to, 1), 0) < 0) return errno();
  return unlinkat(dir, scratchCstring(from), 0) < 0 ? errno() : 0;
}

/** Afterwards each of the two has the other's name. */
function exchange(dir: number, a: string, b: string): number {
  if (renameat2(dir, scratchCstring(a, 0), dir, scratchCstring(b, 1), RENAME_EXCHANGE) === 0) return 0;
  if (errno() !== EINVAL) return errno();
  const third = thirdName(a);
  return plainRename(dir, b, third) || plainRename(dir, a, b) || plainRename(dir, third, a);
}

/** Where the original is for a moment, where two names cannot be exchanged in one step. */
function thirdName(temporary: string): string {
  return `${temporary}.x`;
}

function plainRename(dir: number, from: string, to: string): number {
  return renameat2(dir, scratchCstring(from, 0), dir, scratchCstring(to, 1), 0) < 0 ? errno() : 0;
}

function isDirectory(dir: number, name: string): boolean {
  return ((entryOf(dir, name)?.mode ?? 0) & S_IFMT) === S_IFDIR;
}

/** Removes what stands under the temporary name of a step, with all below it. Returns 0 or an errno. */
export function clearStep(root: number, { directory, temporary }: Step): number {
  return withLowerDirectory(root, directory, (dir) => {
    if (dir < 0) return dir === -ENOENT || dir === -ENOTDIR ? 0 : -dir;
    return removeTree(dir, temporary);
  });
}

function removeTree(dir: number, name: string): number {
  if (!isDirectory(dir, name)) {
    return unlinkat(dir, scratchCstring(name), 0) < 0 && errno() !== ENOENT ? errno() : 0;
  }
  const open = () => openat(dir, scratchCstring(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
  let fd = open();
  // One's own, and barred by its mode.
  if (fd < 0 && fchmodat(dir, scratchCstring(name), 0o700, 0) === 0) fd = open();
  if (fd < 0) return errno();
  const names: string[] = [];
  let error = eachEntry(fd, (entry) => names.push(entry));
  for (const entry of names) error ||= removeTree(fd, entry);
  close(fd);
  return error || unlinkDirectory(dir, name);
}

function unlinkDirectory(dir: number, name: string): number {
  return unlinkat(dir, scratchCstring(name), AT_REMOVEDIR) < 0 ? errno() : 0;
}

/**
 * Puts a lower right in which a keep was cut off; who keeps at this moment is left alone. Returns a line for the person,
 * or undefined where there is nothing to do. Throws SysError, or an Error for a journal that is not forget's.
 */
export function recoverKeep(root: number): string | undefined {
  if (!entryOf(root, JOURNAL)) return undefined;
  const lock = lockKeeping(root);
  if (lock === -EAGAIN) return undefined;
  if (lock < 0) throw new SysError(-lock, 'looking after a keep that was cut off');
  try {
    const journal = readJournal(root);
    if (!journal) return undefined;
    const error = settle(root, journal);
    if (error) throw new SysError(error, `clearing up after a keep that was cut off (${JOURNAL})`);
    removeJournal(root);
    return journal.stage === 'clean'
      ? 'a keep that was cut off after it was done was cleared up'
      : 'a keep that was cut off was taken back: nothing of it is in the workspace';
  } finally {
    close(lock);
  }
}

/** Takes back or clears up all steps. Returns 0 or the first errno. */
export function settle(root: number, { stage, steps }: Journal): number {
  let error = 0;
  if (stage === 'commit') for (const step of steps.toReversed()) error ||= undoStep(root, step);
  if (error) return error;
  for (const step of steps) error ||= clearStep(root, step);
  return error;
}
