/**
 * What the overlay holds at one moment: which names lead to which object of the upper, and which are whiteouts. A
 * window keeps the state that it was opened over, and its close goes back to it.
 *
 * Names are paths here, since the lower's directories may be other nodes by the time of the close; files are nodes,
 * since the kernel and its descriptors know them. A state owns what it names: nodes in it are pinned, and its objects
 * are frozen until it goes (Overlay.owns).
 *
 * Held files (held.ts) are in no state: nobody knows yet whose they are, so they belong to whichever window is on top.
 */
import { type Node, Whiteout } from './node.ts';
import type { Overlay } from './overlay.ts';

/** A node of the upper as a state has it. */
export interface Version {
  node: Node;
  upper: number;
  owner: number;
  hasLower: boolean;
  /** It stood for no lower inode. */
  lowerless: boolean;
  copiedBirth: Uint32Array | null;
  unseenNames: number;
  protected: boolean;
}

export interface State {
  /** What the overlay has at a path; a file with several names has one version at all of them. */
  entries: Map<string, Version | Whiteout>;
  /** Lower directories whose times in the view are newer than the lower's: ms since the epoch. */
  changes: Map<string, number>;
  /** Files without a name that somebody has open. */
  unlinked: Version[];
}

/** The state, and where it was found: the directory of each path. */
export interface Captured extends State {
  parents: Map<string, Node>;
}

export const emptyState = (): State => ({ entries: new Map(), changes: new Map(), unlinked: [] });

export function isWhiteout(entry: Version | Whiteout | undefined): entry is Whiteout {
  return entry instanceof Whiteout;
}

export function capture(o: Overlay): Captured {
  const versions = new Map<Node, Version>();
  const state: Captured = { ...emptyState(), parents: new Map() };
  const queue: [Node, string][] = [[o.root, '']];
  for (let next = queue.pop(); next; next = queue.pop()) {
    const [dir, prefix] = next;
    if (dir.overlayChange !== 0) state.changes.set(prefix.slice(0, -1), dir.overlayChange);
    for (const [name, kid] of dir.kids ?? []) {
      const path = prefix + name;
      if (kid instanceof Whiteout) state.entries.set(path, kid);
      else if (kid.inUpper && !kid.held) state.entries.set(path, versionOf(kid, versions));
      else if (!kid.isDirectory) continue;
      if (!(kid instanceof Whiteout) && kid.isDirectory) queue.push([kid, `${path}/`]);
      if (state.entries.has(path)) state.parents.set(path, dir);
    }
  }
  for (const node of o.table.all()) {
    if (node.inUpper && !node.held && !versions.has(node)) state.unlinked.push(versionOf(node, versions));
  }
  return state;
}

function versionOf(node: Node, known: Map<Node, Version>): Version {
  const before = known.get(node);
  if (before) return before;
  const { upper, owner, hasLower, copiedBirth, unseenNames, protected: isProtected } = node;
  const lowerless = node.lowerIno === 0;
  const version = {
    node,
    upper,
    owner,
    hasLower,
    lowerless,
    copiedBirth,
    unseenNames,
    protected: isProtected,
  };
  known.set(node, version);
  return version;
}

/** Puts other nodes in the place of directories that the kernel has removed since. */
export function replaceDead(o: Overlay, state: State): void {
  const dead = [...versionsOf(state).values()].filter(({ node }) => node.dead);
  if (dead.length === 0) return;
  unpin(state);
  const anew = new Map<Version | Whiteout, Version>();
  for (const version of dead) {
    anew.set(version, { ...version, node: livingFor(o, version.node) });
  }
  for (const [path, entry] of state.entries) state.entries.set(path, anew.get(entry) ?? entry);
  pin(state);
}

function livingFor(o: Overlay, dead: Node): Node {
  let node = dead;
  while (node.dead) {
    if (!node.successor) {
      node.successor = o.table.successor(node);
      node.successor.origin = node.origin;
      node.origin = null;
    }
    node = node.successor;
  }
  return node;
}

/** Each node of a state once. */
export function versionsOf(state: State): Map<Node, Version> {
  const out = new Map<Node, Version>();
  for (const entry of state.entries.values()) if (!isWhiteout(entry)) out.set(entry.node, entry);
  for (const version of state.unlinked) out.set(version.node, version);
  return out;
}

export function pin(state: State): void {
  for (const node of versionsOf(state).keys()) node.pins++;
}

export function unpin(state: State): void {
  for (const node of versionsOf(state).keys()) node.pins--;
}

/** The objects of the upper that a state needs, with whether each is a directory. */
export function objectsOf(state: State): Map<number, boolean> {
  return new Map([...versionsOf(state).values()].map(({ upper, node }) => [upper, node.isDirectory]));
}

/** A directory of the lower has another name, and what the overlay has below it with it. */
export function renameBelow(state: State, from: string, to: string): void {
  for (const map of [state.entries, state.changes] as Map<string, unknown>[]) {
    for (const [path, value] of [...map]) {
      if (path !== from && !path.startsWith(`${from}/`)) continue;
      map.delete(path);
      map.set(to + path.slice(from.length), value);
    }
  }
}

/** Whether the lower does not show at a path: something else, or nothing, does. */
export function covers(state: State, path: string): boolean {
  if (state.entries.has(path)) return true;
  for (let at = parentPath(path); at !== ''; at = parentPath(at)) {
    const entry = state.entries.get(at);
    if (entry && (isWhiteout(entry) || !entry.hasLower)) return true;
  }
  return false;
}

export const parentPath = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf('/')));
export const lastName = (path: string) => path.slice(path.lastIndexOf('/') + 1);

/** Parents before children. */
export function byDepth(paths: Iterable<string>): string[] {
  const depth = (path: string) => path.split('/').length;
  return [...paths].sort((a, b) => depth(a) - depth(b) || (a < b ? -1 : 1));
}
