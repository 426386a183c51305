/**
 * Makes the live overlay what a state says, between two requests: names, layers and objects are put back, each node
 * stays the node that the kernel knows, and what differs is taken back from the kernel.
 *
 * A node that the state does not have goes back to the lower, if it came from there and the lower still has it; whoever
 * has it open goes on with that. Otherwise it is nothing any more (ESTALE).
 */
import { scratchCstring } from '../sys/bytes.ts';
import { O_CLOEXEC, O_NOFOLLOW, O_PATH, S_IFDIR, S_IFMT } from '../sys/constants.ts';
import { openat } from '../sys/libc.ts';
import { Stat } from '../sys/stat.ts';
import { dropBase } from './bases.ts';
import { findChild } from './lookup.ts';
import { Node, PATH_FD, Whiteout } from './node.ts';
import type { Overlay } from './overlay.ts';
import { hidesLower } from './remove.ts';
import {
  byDepth,
  type Captured,
  covers,
  isWhiteout,
  lastName,
  parentPath,
  type State,
  type Version,
  versionsOf,
} from './window-state.ts';

const st = new Stat();

/** `before` is the live state. */
export function restore(o: Overlay, before: Captured, target: State): void {
  const versions = versionsOf(target);
  const leaving = [...versionsOf(before).keys()];
  const isHidden = (node: Node) => !node.inUpper && node.origin !== null && !node.link && node.lookups > 0;
  const hidden = [...o.table.all()].filter(isHidden);
  const changed = new Set<Node>();
  for (const node of [...leaving, ...hidden]) if (node.dead) o.table.anonymise(node);
  detach(o, leaving);
  for (const node of new Set([...leaving, ...versions.keys()])) {
    const version = versions.get(node);
    if (version ? version.upper !== node.upper : node.inUpper) {
      changed.add(node);
      node.endUnsure = node.isRegular;
      o.descriptors.release(node);
    }
    if (version) takeVersion(node, version);
    else leaveUpper(o, node);
  }
  partFromLower(o, target, versions);
  const lost = link(o, target);
  forgetBases(o);
  const stray = [...leaving.filter((node) => !versions.has(node)), ...hidden];
  for (const node of stray) backToLower(o, node);
  for (const [path, time] of target.changes) {
    const dir = directoryAt(o, path);
    if (dir) dir.overlayChange = time;
  }
  noteHiddenNames(o, target);
  releaseStrandedHeld(o);
  tell(o, before, target, changed, [...leaving, ...versions.keys(), ...hidden]);
  for (const node of [...stray, ...lost, ...versions.keys()]) o.dropIdle(node);
}

/** What remains is what the kernel has looked up in the lower, and held files. */
function detach(o: Overlay, leaving: readonly Node[]): void {
  for (const node of leaving) for (const { parent, name } of [...node.links()]) node.removeLink(parent, name);
  for (const dir of o.table.all()) {
    if (!dir.isDirectory) continue;
    dir.overlayChange = 0;
    dir.hiddenSubdirectories = null;
    for (const [name, kid] of dir.kids ?? []) if (kid instanceof Whiteout) dir.kids!.delete(name);
  }
  o.table.showAllNames();
}

function takeVersion(node: Node, version: Version): void {
  node.upper = version.upper;
  node.owner = version.owner;
  // A directory that was made real in the meantime is (ensureLowerDirectory).
  node.hasLower = version.hasLower || (node.isDirectory && version.lowerless && node.lowerIno !== 0);
  node.copiedBirth = version.copiedBirth;
  node.unseenNames = version.unseenNames;
  node.protected = version.protected;
  node.hidden = false;
}

function leaveUpper(o: Overlay, node: Node): void {
  node.upper = 0;
  node.owner = 0;
  node.copiedBirth = null;
  node.unseenNames = 0;
  node.protected = false;
  node.hasLower = node.isDirectory && node.lowerIno !== 0;
  o.table.leaveUpper(node);
}

/** The directory of the view at a path; '' is the root. */
function directoryAt(o: Overlay, path: string): Node | undefined {
  let node: Node = o.root;
  if (path === '') return node;
  for (const name of path.split('/')) {
    const kid = findChild(o, node, name, st);
    if (!(kid instanceof Node) || !kid.isDirectory) return undefined;
    node = kid;
  }
  return node;
}

/** Returns the nodes that could not be put back: the directory of the lower that they stood in is gone. */
function link(o: Overlay, target: State): Node[] {
  const lost: Node[] = [];
  for (const path of byDepth(target.entries.keys())) {
    const entry = target.entries.get(path)!;
    const parent = directoryAt(o, parentPath(path));
    if (!parent) {
      if (!isWhiteout(entry)) lost.push(entry.node);
      continue;
    }
    const name = lastName(path);
    const kid = parent.kid(name);
    if (kid instanceof Node) {
      kid.removeLink(parent, name);
      o.dropIdle(kid);
    }
    if (!isWhiteout(entry)) {
      if (entry.node.hasLower) identifyLower(o, entry.node, parent, name);
      entry.node.addLink(parent, name);
    } else {
      parent.kids ??= new Map();
      parent.kids.set(name, entry);
    }
  }
  return lost;
}

/** What the lower had is remembered of covered names alone (bases.ts). */
function forgetBases(o: Overlay): void {
  for (const dir of o.table.all()) {
    for (const name of dir.bases?.keys() ?? []) {
      const kid = dir.kid(name);
      if (!(kid instanceof Whiteout) && !kid?.inUpper) dropBase(dir, name);
    }
  }
}

/** The directory of the lower that shows through this one: it may have been known by another node meanwhile. */
function identifyLower(o: Overlay, node: Node, parent: Node, name: string): void {
  node.hasLower = o.lowerHas(parent, name, st) && (st.mode & S_IFMT) === S_IFDIR;
  if (node.hasLower && !o.table.isSame(node, st)) o.table.identify(node, st);
}

/**
 * A file stays in the upper under a new name while its old one shows the lower again: the two are different files from
 * now on, and the lower's gets a node of its own.
 */
function partFromLower(o: Overlay, target: State, versions: Map<Node, Version>): void {
  for (const node of versions.keys()) {
    if (node.lowerIno === 0 || !node.origin || node.hasLower) continue;
    if (!node.origin.every((path) => covers(target, path))) o.table.part(node);
  }
}

function backToLower(o: Overlay, node: Node): void {
  const origin = node.origin ?? [];
  const wanted = !node.dead && (node.lookups > 0 || (node.kids?.size ?? 0) > 0);
  if (node.lowerIno !== 0 && wanted) for (const path of origin) seekIn(o, node, path);
  if (node.link) {
    node.origin = null;
    o.judge(node);
  } else if (node.fd < 0) {
    o.table.anonymise(node);
    node.hasLower = false;
    for (const [name, kid] of node.kids ?? []) if (kid instanceof Node) kid.removeLink(node, name);
  }
}

/** If the lower has the node at this path, it is that again: by that name, or open behind what hides it. */
function seekIn(o: Overlay, node: Node, path: string): void {
  const parent = directoryAt(o, parentPath(path));
  if (!parent) return;
  const name = lastName(path);
  const kid = parent.kid(name);
  if (!(kid instanceof Whiteout) && !kid?.inUpper) {
    findChild(o, parent, name, st);
    return;
  }
  if (node.fd >= 0 || !o.lowerHas(parent, name, st) || !o.table.isSame(node, st)) return;
  const fd = openat(o.dirFd(parent), scratchCstring(name), O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
  if (fd < 0) return;
  node.hidden = true;
  o.descriptors.set(node, fd, PATH_FD);
}

function noteHiddenNames(o: Overlay, target: State): void {
  for (const [path, entry] of target.entries) {
    const parent = directoryAt(o, parentPath(path));
    if (!parent?.hasLower) continue;
    const name = lastName(path);
    if (!isWhiteout(entry)) {
      if (entry.node.hasLower) continue;
      if (o.lowerHas(parent, name, st) && o.table.isSame(entry.node, st)) continue;
    }
    hidesLower(o, parent, name);
  }
}

/** A held file stands in an ordinary directory; where that was the window's own after all, it goes with it. */
function releaseStrandedHeld(o: Overlay): void {
  for (const node of [...o.table.all()]) {
    if (!node.held || !node.link || o.path(node.link.parent, node.link.name) !== undefined) continue;
    o.ledger.error(o.pathOf(node), 'a held file went with the directory that it stood in');
    for (const { parent, name } of [...node.links()]) node.removeLink(parent, name);
    o.dropIdle(node);
  }
}

function tell(o: Overlay, before: Captured, target: State, changed: Set<Node>, touched: Node[]): void {
  const { notifier } = o;
  const known = (node: Node) => node.lookups > 0;
  const directories = new Set<Node>();
  const compare = (parent: Node | undefined, path: string) => {
    if (!parent) return;
    const was = before.entries.get(path);
    const is = parent.kid(lastName(path));
    const same = isWhiteout(was) ? is instanceof Whiteout : was?.node === is;
    if (was !== undefined && same) return;
    directories.add(parent);
    const moved = !isWhiteout(was) && was?.node.isDirectory === true && was.node.link !== null;
    if (known(parent)) notifier.entry(parent.id, lastName(path), moved);
  };
  for (const [path] of before.entries) compare(before.parents.get(path), path);
  for (const [path] of target.entries) {
    if (!before.entries.has(path)) compare(directoryAt(o, parentPath(path)), path);
  }
  for (const path of [...before.changes.keys(), ...target.changes.keys()]) {
    const dir = directoryAt(o, path);
    if (dir) directories.add(dir);
  }
  for (const node of new Set([...changed, ...directories])) if (known(node)) notifier.inode(node.id);
  for (const node of touched) if (known(node)) notifier.attributes(node.id);
  notifier.flush();
}
