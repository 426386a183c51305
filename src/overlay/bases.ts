/**
 * What the lower had at a name when the window first covered it there, by a copy, a whiteout or another file: what is
 * kept later goes to the lower only if that has not changed since. A covered name without a record covered nothing.
 *
 * State: `Node.bases` of each directory, by name.
 */
import { scratchCstring } from '../sys/bytes.ts';
import { S_IFDIR, S_IFMT } from '../sys/constants.ts';
import { Stat } from '../sys/stat.ts';
import type { Node } from './node.ts';

/** What the lower has at a path. */
export interface LowerEntry {
  ino: number;
  dev: number;
  birth: number;
  /** Type and permissions. */
  mode: number;
  uid: number;
  gid: number;
  size: number;
  nlink: number;
  /** The mtime and ctime, as numbers to compare (Stat.change). */
  modified: number;
  change: number;
}

export interface Base extends LowerEntry {
  /** When it was covered: ms since the epoch. */
  at: number;
}

const stat = new Stat();

/** A name in a lower directory, or null. */
export function entryOf(dir: number, name: string): LowerEntry | null {
  return stat.at(dir, scratchCstring(name)) === 0 ? entryIn(stat) : null;
}

export function entryIn(st: Stat): LowerEntry {
  const { ino, dev, birth, mode, uid, gid, size, nlink, change } = st;
  const modified = st.mtimeSec * 1e9 + st.mtimeNsec;
  return { ino, dev, birth, mode, uid, gid, size, nlink, modified, change };
}

/**
 * The name was not covered before, and is from now on; `st` describes what the lower has there, but for the inode number
 * where it is as the view shows it.
 */
export function noteBase(parent: Node, name: string, st: Stat, ino = st.ino): void {
  parent.bases ??= new Map();
  parent.bases.set(name, { ...entryIn(st), ino, at: Date.now() });
}

/** Nothing of the window stands at the name any more. */
export function dropBase(parent: Node, name: string): void {
  parent.bases?.delete(name);
}

/** Whether the lower's entry is what was covered. A directory's times are those of what is in it. */
export function isUnchanged(now: LowerEntry, then: LowerEntry): boolean {
  if (now.ino !== then.ino || now.dev !== then.dev || (now.birth !== then.birth && now.birth !== 0))
    return false;
  if ((now.mode & S_IFMT) !== S_IFDIR) return now.change === then.change;
  return now.mode === then.mode && now.uid === then.uid;
}

/** What is in the directory `dir` covers something that was there at this time: ms; a newer change is another's. */
export function isOlderThan(entry: LowerEntry, at: number): boolean {
  return entry.change <= at * 1e6;
}
