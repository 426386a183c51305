/**
 * A window further down closes: what those above it changed stays, on top of what was there before it opened.
 *
 * A path is *changed* where the overlay of a later state differs from that of the closed window's end: another file,
 * another object (whoever changes a frozen one makes a copy first), a whiteout, or nothing. Changed paths come along;
 * all others are as before the closed window. A directory that only the closed window had stays where something in it
 * comes along, and belongs to the window above it from then on.
 */
import { cstring } from '../sys/bytes.ts';
import { O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW, S_IFDIR, S_IFMT } from '../sys/constants.ts';
import { SysError } from '../sys/errno.ts';
import { close, openat } from '../sys/libc.ts';
import { Stat } from '../sys/stat.ts';
import { eachEntry } from './listing.ts';
import { type Node, Whiteout } from './node.ts';
import type { Overlay } from './overlay.ts';
import {
  byDepth,
  covers,
  emptyState,
  isWhiteout,
  lastName,
  parentPath,
  type State,
  type Version,
  versionsOf,
} from './window-state.ts';

type Entry = Version | Whiteout;

const st = new Stat();

export interface Rebase {
  /** When the next window was opened: what the closed one left. */
  base: State;
  /** What the closed window was opened over. */
  onto: State;
  /** Later states, which are to be what they are without the closed window. */
  states: State[];
  /** The closed window, and the one above it, which takes over what stays. */
  closed: number;
  heir: number;
}

/** The states anew, in their order. */
export function rebase(o: Overlay, given: Rebase): State[] {
  const split = new Map<number, Node>();
  return given.states.map((state) => rebaseOne(o, state, given, split));
}

/** `split`: by its object, the other node of a file that is two now. */
function rebaseOne(o: Overlay, state: State, given: Rebase, split: Map<number, Node>): State {
  const { base, onto } = given;
  const result = emptyState();
  const paths = byDepth(new Set([...state.entries.keys(), ...base.entries.keys(), ...onto.entries.keys()]));
  const changed = new Set(paths.filter((path) => !isSameAt(path, state, base)));
  keepDirectories(o, state, onto, changed);
  const adopted = new Map<Version, Version>();
  const take = (version: Version): Version => {
    if (version.owner !== given.closed) return version;
    const known = adopted.get(version) ?? { ...version, owner: given.heir };
    adopted.set(version, known);
    return known;
  };
  const merged = new Set<string>();
  for (const path of paths) {
    let entry = changed.has(path) ? state.entries.get(path) : onto.entries.get(path);
    if (!entry && changed.has(path) && merged.has(parentPath(path)) && lowerType(o, path) !== 0)
      entry = new Whiteout();
    if (!entry || !hasPlace(result, path, isWhiteout(entry))) continue;
    if (!changed.has(path) && isReplaced(result, path, given)) continue;
    if (isWhiteout(entry)) result.entries.set(path, entry);
    else if (changed.has(path) && wasCutOff(o, entry, path, given)) {
      result.entries.set(path, { ...take(entry), hasLower: true });
      merged.add(path);
      for (const name of takenOut(o, path, paths, base)) result.entries.set(name, new Whiteout());
    } else result.entries.set(path, take(entry));
  }
  giveEachItsNode(o, result, state, split);
  keepUnlinked(result, state, given, take);
  for (const path of new Set([...state.changes.keys(), ...onto.changes.keys()])) {
    const time = state.changes.get(path);
    const kept = time === base.changes.get(path) ? onto.changes.get(path) : time;
    if (kept !== undefined) result.changes.set(path, kept);
  }
  return result;
}

function isSameAt(path: string, state: State, base: State): boolean {
  const is = state.entries.get(path);
  const was = base.entries.get(path);
  if (is && was && !isWhiteout(is) && !isWhiteout(was)) return is.upper === was.upper;
  if ((is && !isWhiteout(is)) || (was && !isWhiteout(was))) return false;
  return covers(state, path) === covers(base, path);
}

/** Adds the directories that what is changed stands in, where there would be none without them. */
function keepDirectories(o: Overlay, state: State, onto: State, changed: Set<string>): void {
  for (const path of [...changed]) {
    const entry = state.entries.get(path);
    if (!entry || isWhiteout(entry)) continue;
    for (let at = parentPath(path); at !== ''; at = parentPath(at)) {
      const directory = state.entries.get(at);
      if (directory && !changed.has(at) && !hasDirectory(o, onto, at)) changed.add(at);
    }
  }
}

/** Whether the view of a state has a directory at a path: one of the upper, or the lower's. */
function hasDirectory(o: Overlay, state: State, path: string): boolean {
  const entry = state.entries.get(path);
  if (entry) return !isWhiteout(entry) && entry.node.isDirectory;
  for (let at = parentPath(path); at !== ''; at = parentPath(at)) {
    const above = state.entries.get(at);
    if (above && (isWhiteout(above) || !above.hasLower)) return false;
  }
  return lowerType(o, path) === S_IFDIR;
}

/** The type's bits of what the lower has at a path; 0 for nothing. */
function lowerType(o: Overlay, path: string): number {
  const dir = openLower(o, parentPath(path));
  if (dir < 0) return 0;
  const error = st.at(dir, cstring(lastName(path)));
  close(dir);
  return error ? 0 : st.mode & S_IFMT;
}

function lowerNames(o: Overlay, path: string): string[] {
  const names: string[] = [];
  const dir = openLower(o, path);
  if (dir < 0) return names;
  const error = eachEntry(dir, (name) => names.push(name));
  close(dir);
  if (error) throw new SysError(error, 'reading a directory of the workspace');
  return names;
}

/** A descriptor of a lower directory, to be closed by the caller, or -1. */
function openLower(o: Overlay, path: string): number {
  const flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  let dir = openat(o.lowerFd, cstring('.'), flags, 0);
  for (const name of path === '' ? [] : path.split('/')) {
    const next = dir < 0 ? dir : openat(dir, cstring(name), flags, 0);
    if (dir >= 0) close(dir);
    dir = next;
  }
  return dir;
}

/**
 * A directory that was moved and moved back is cut off from the lower since (copy-up-tree.ts). Where the lower showed
 * through it before the closed window, it does again, but for what later windows have taken out of it.
 */
function wasCutOff(o: Overlay, entry: Version, path: string, { base, onto }: Rebase): boolean {
  if (!entry.node.isDirectory || entry.hasLower) return false;
  if (!isDirectoryOf(base.entries.get(path), entry, path)) return false;
  const under = onto.entries.get(path);
  if (!isDirectoryOf(under, entry, path)) return false;
  return under ? !isWhiteout(under) && under.hasLower : hasDirectory(o, onto, path);
}

/** Paths of the lower in such a directory that no state has anything at: they showed, and now they do not. */
function takenOut(o: Overlay, directory: string, paths: readonly string[], base: State): string[] {
  const known = new Set(paths);
  const all = lowerNames(o, directory).map((name) => `${directory}/${name}`);
  return all.filter((path) => !known.has(path) && !covers(base, path));
}

/** Whether the directory of a path is there. A whiteout needs a lower one that shows through. */
function hasPlace(result: State, path: string, asWhiteout: boolean): boolean {
  const parent = parentPath(path);
  for (let at = parent; at !== ''; at = parentPath(at)) {
    const above = result.entries.get(at);
    if (!above) continue;
    if (isWhiteout(above) || !above.node.isDirectory) return false;
    return above.hasLower || (at === parent && !asWhiteout);
  }
  return true;
}

/** The directory that the path stood in is another one now, which a later window made in its place or moved there. */
function isReplaced(result: State, path: string, { base, onto }: Rebase): boolean {
  const at = parentPath(path);
  const is = result.entries.get(at);
  const was = onto.entries.get(at);
  if (!is || isWhiteout(is) || is === was) return false;
  return !isDirectoryOf(base.entries.get(at), is, at) || !isDirectoryOf(was, is, at);
}

/** Whether a state has the same directory at the path; without an entry that is the lower's. */
function isDirectoryOf(entry: Entry | undefined, is: Version, path: string): boolean {
  if (!entry) return is.hasLower || (is.node.origin?.includes(path) ?? false);
  return !isWhiteout(entry) && entry.node.line === is.node.line;
}

/**
 * A file that the closed window renamed, and a later one changed, is two now: under its old name as it was, and under
 * the new one. Whoever has it open goes on with the new one.
 */
function giveEachItsNode(o: Overlay, result: State, state: State, split: Map<number, Node>): void {
  const kept = new Map<Node, Version>();
  for (const [path, entry] of result.entries) {
    const before = state.entries.get(path);
    if (isWhiteout(entry) || !before || isWhiteout(before)) continue;
    if (before.upper === entry.upper) kept.set(entry.node, entry);
  }
  const fresh = new Map<Version, Version>();
  for (const [path, entry] of result.entries) {
    if (isWhiteout(entry)) continue;
    const other = kept.get(entry.node);
    if (!other || other.upper === entry.upper) continue;
    const node = split.get(entry.upper) ?? splitFrom(o, entry);
    split.set(entry.upper, node);
    const own = fresh.get(entry) ?? { ...entry, node, lowerless: node.lowerIno === 0 };
    fresh.set(entry, own);
    result.entries.set(path, own);
  }
}

/** A directory through which the lower shows is known by that; a file's number stays with the other one. */
function splitFrom(o: Overlay, { node, hasLower }: Version): Node {
  const made = hasLower ? o.table.successor(node) : o.table.create(node.type);
  made.line = node.line;
  made.origin = node.origin;
  return made;
}

function keepUnlinked(result: State, state: State, given: Rebase, take: (version: Version) => Version): void {
  const named = versionsOf(result);
  const before = versionsOf(given.base);
  const under = versionsOf(given.onto);
  for (const version of state.unlinked) {
    if (named.has(version.node)) continue;
    const unchanged = before.get(version.node)?.upper === version.upper;
    const kept = unchanged ? under.get(version.node) : take(version);
    if (kept) result.unlinked.push(kept);
  }
}
