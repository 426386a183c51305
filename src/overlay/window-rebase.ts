/**
 * A window further down closes: what those above it changed stays, on top of what was there before it opened.
 *
 * A path is *changed* where the overlay of a later state differs from that of the closed window's end: another file,
 * another object (whoever changes a frozen one makes a copy first), a whiteout, or nothing. Changed paths come along;
 * all others are as before the closed window. A directory that only the closed window had stays where something in it
 * comes along, and belongs to the window above it from then on.
 */
import { cstring } from '../sys/bytes.ts';
import { O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW, O_PATH, S_IFDIR, S_IFMT } from '../sys/constants.ts';
import { close, openat } from '../sys/libc.ts';
import { Stat } from '../sys/stat.ts';
import { type Node, Whiteout } from './node.ts';
import type { Overlay } from './overlay.ts';
import {
  byDepth,
  emptyState,
  isWhiteout,
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
  const changed = new Set(paths.filter((path) => !isSame(state.entries.get(path), base.entries.get(path))));
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

function isSame(a: Entry | undefined, b: Entry | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (isWhiteout(a) || isWhiteout(b)) return isWhiteout(a) && isWhiteout(b);
  return a.upper === b.upper;
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
  let dir = o.lowerFd;
  const names = path.split('/');
  const last = names.pop()!;
  for (const name of names) {
    const next = openat(dir, cstring(name), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (dir !== o.lowerFd) close(dir);
    if (next < 0) return 0;
    dir = next;
  }
  const error = st.at(dir, cstring(last));
  if (dir !== o.lowerFd) close(dir);
  return error ? 0 : st.mode & S_IFMT;
}

/**
 * A directory that the closed window cut off from the lower (it moved it there and back, copy-up-tree.ts) shows the lower
 * again, but for what a later window has taken out of it.
 */
function wasCutOff(o: Overlay, entry: Version, path: string, { base, onto }: Rebase): boolean {
  const before = base.entries.get(path);
  if (!entry.node.isDirectory || entry.hasLower || !before || isWhiteout(before)) return false;
  if (before.hasLower || before.node.line !== entry.node.line) return false;
  const under = onto.entries.get(path);
  if (under) return !isWhiteout(under) && under.hasLower && under.node.line === entry.node.line;
  return (entry.node.origin?.includes(path) ?? false) && hasDirectory(o, onto, path);
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
  return !isDirectoryOf(base.entries.get(at), is) || !isDirectoryOf(was, is);
}

function isDirectoryOf(entry: Entry | undefined, is: Version): boolean {
  if (!entry) return is.hasLower;
  return !isWhiteout(entry) && entry.node.line === is.node.line;
}

/**
 * A file that the closed window renamed, and a later one changed, is two now: under its old name as it was, and under
 * the new one. Whoever has it open goes on with the new one.
 */
function giveEachItsNode(o: Overlay, result: State, state: State, split: Map<number, Node>): void {
  const kept = new Map<Node, Version>();
  for (const [path, entry] of result.entries) {
    if (!isWhiteout(entry) && state.entries.get(path) && isSame(entry, state.entries.get(path)))
      kept.set(entry.node, entry);
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
