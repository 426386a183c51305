/**
 * RENAME, by the table of DESIGN 3: both names are classified, and what the file already is counts too. A
 * regular file's rename never fails with EXDEV; a directory's does where files below it would change class, so
 * that `mv` copies and each file is judged by itself.
 */
import type { Caller } from '../fuse/handler.ts';
import { scratchCstring } from '../sys/bytes.ts';
import { RENAME_EXCHANGE, RENAME_NOREPLACE, RENAME_WHITEOUT, S_IFCHR } from '../sys/constants.ts';
import {
  EEXIST,
  EINVAL,
  ENAMETOOLONG,
  ENOENT,
  ENOTDIR,
  ENOTEMPTY,
  EROFS,
  ESTALE,
  EXDEV,
} from '../sys/errno.ts';
import { errno, renameat2 } from '../sys/libc.ts';
import { Stat } from '../sys/stat.ts';
import { touchChangeTime, touchDirectory } from './attributes.ts';
import { dropBase } from './bases.ts';
import { copyUp, moveToLower } from './copy-up.ts';
import { copyUpTree } from './copy-up-tree.ts';
import { coversProtected, makeObject, setOriginalAside } from './create.ts';
import { isEmptyInView } from './listing.ts';
import { findChild, NAME_MAX } from './lookup.ts';
import { ensureLowerDirectory } from './lower-directory.ts';
import { type Node, Whiteout } from './node.ts';
import type { Overlay } from './overlay.ts';
import { protectedInLowerBelow } from './protected-below.ts';
import { hidesLower, hidesSomething, keepOpen, takeName, vacate } from './remove.ts';
import { directoryMoved, nameIsReal } from './window-real.ts';

/** One side of a rename: a name in a directory, what it leads to, and the class of the name. */
interface Side {
  parent: Node;
  name: string;
  node: Node | undefined;
  protected: boolean;
}

const sourceStat = new Stat();
const targetStat = new Stat();

export function rename(
  o: Overlay,
  fromId: number,
  name: string,
  toId: number,
  newName: string,
  flags: number,
  caller: Caller,
): number {
  const from = o.node(fromId);
  const to = o.node(toId);
  if (!from || !to) return ESTALE;
  if (!from.isDirectory || !to.isDirectory) return ENOTDIR;
  if (newName.length > NAME_MAX) return ENAMETOOLONG;
  if (flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE | RENAME_WHITEOUT)) return EINVAL;
  if (flags & RENAME_EXCHANGE && flags & RENAME_WHITEOUT) return EINVAL;
  const node = findChild(o, from, name, sourceStat);
  if (typeof node === 'number') return node;
  const found = findChild(o, to, newName, targetStat);
  if (typeof found === 'number' && found !== ENOENT) return found;
  const source: Side = { parent: from, name, node, protected: o.isProtectedName(from, name) };
  const target: Side = {
    parent: to,
    name: newName,
    node: typeof found === 'number' ? undefined : found,
    protected: o.isProtectedName(to, newName),
  };
  if (flags & RENAME_NOREPLACE && target.node) return EEXIST;
  if (flags & RENAME_EXCHANGE && !target.node) return ENOENT;
  if (target.node === node) return 0;
  if (o.isFixedName(source.parent, source.name) || o.isFixedName(target.parent, target.name)) return EROFS;
  if (o.readonly && (source.protected || target.protected)) return EROFS;
  if (flags & RENAME_EXCHANGE) return exchange(o, source, target, caller);
  return node.isDirectory
    ? renameDirectory(o, source, target, flags, caller)
    : renameFile(o, source, target, flags, caller);
}

function renameFile(o: Overlay, source: Side, target: Side, flags: number, caller: Caller): number {
  const node = source.node!;
  if (node.held && !target.protected) {
    const error = moveToLower(o, node);
    if (error) return error;
  }
  const whiteout = target.parent.kid(target.name);
  const sticks =
    node.inUpper ||
    o.isProtected(node) ||
    source.protected ||
    target.protected ||
    (whiteout instanceof Whiteout && coversProtected(o, target.parent, target.name, whiteout));
  return sticks ? moveInView(o, source, target, flags, caller) : renameInLower(o, source, target, flags);
}

/** Unprotected to unprotected: the lower's own rename. */
function renameInLower(o: Overlay, source: Side, target: Side, flags: number): number {
  const node = source.node!;
  ensureLowerDirectory(o, target.parent);
  if (target.parent.kid(target.name) instanceof Whiteout) setOriginalAside(o, target.parent, target.name);
  const fromDir = o.dirFd(source.parent);
  const toDir = o.dirFd(target.parent);
  if (fromDir < 0) return -fromDir;
  if (toDir < 0) return -toDir;
  const replaced = target.node;
  if (replaced) {
    keepOpen(o, replaced);
    if (replaced.isDirectory && replaced.lookups > 0) o.dirFd(replaced);
    if (!replaced.inUpper) o.written.keepEarlier(o, replaced);
  }
  const fromPath = o.path(source.parent, source.name);
  // A file that stuck to the upper covers what the lower has here, and goes with the replacement.
  const lowerFlags = replaced?.inUpper ? flags & ~RENAME_NOREPLACE : flags;
  const error = callRename(fromDir, source.name, toDir, target.name, lowerFlags);
  if (error) return error === EEXIST ? ESTALE : error;
  if (replaced) forgetReplaced(o, replaced, target);
  nameIsReal(o, target.parent, target.name);
  node.removeLink(source.parent, source.name);
  node.addLink(target.parent, target.name);
  o.written.moved(node, fromPath, o.path(target.parent, target.name));
  if (node.isDirectory) directoryMoved(o, fromPath, o.path(target.parent, target.name));
  if (o.window === 0) judgeTree(o, node);
  settleRename(o, source, target);
  return 0;
}

/** While no window is open names change their class freely: the next one is to find them judged. */
function judgeTree(o: Overlay, node: Node): void {
  o.judge(node);
  for (const kid of node.kids?.values() ?? []) if (!(kid instanceof Whiteout)) judgeTree(o, kid);
}

function settleRename(o: Overlay, source: Side, target: Side): void {
  o.settle(source.node!);
  o.settle(source.parent);
  if (target.parent !== source.parent) o.settle(target.parent);
}

function callRename(fromDir: number, name: string, toDir: number, newName: string, flags: number): number {
  const result = renameat2(fromDir, scratchCstring(name, 0), toDir, scratchCstring(newName, 1), flags);
  return result < 0 ? errno() : 0;
}

function forgetReplaced(o: Overlay, replaced: Node, target: Side): void {
  if (!replaced.inUpper && !replaced.isDirectory && targetStat.nlink <= 1) o.table.noteGone(replaced);
  if (replaced.isDirectory) replaced.dropKids();
  replaced.removeLink(target.parent, target.name);
  o.dropIdle(replaced);
}

/** What RENAME_WHITEOUT leaves: the mark of an overlayfs that has this view for its own upper. */
const WHITEOUT_DEVICE = { mode: S_IFCHR, rdev: 0, target: '' };

/** At least one side is the overlay's business: names move in memory, content moves up if it is below. */
function moveInView(o: Overlay, source: Side, target: Side, flags: number, caller: Caller): number {
  const node = source.node!;
  const outcome = copyUp(o, node);
  if (outcome) return outcome;
  const left = flags & RENAME_WHITEOUT ? makeObject(o, source.parent, WHITEOUT_DEVICE, caller) : undefined;
  if (typeof left === 'number') return left;
  if (target.node) {
    const error = takeName(o, target.node, target.parent, target.name);
    if (error) return error;
    o.dropIdle(target.node);
  }
  const fromPath = o.path(source.parent, source.name) ?? source.name;
  node.removeLink(source.parent, source.name);
  const error = leaveName(o, node, source);
  if (error) return error;
  if (left) {
    left.protected = true;
    left.addLink(source.parent, source.name);
  }
  node.addLink(target.parent, target.name);
  node.protected = true;
  node.held = false;
  touchDirectory(o, source.parent);
  if (target.parent !== source.parent) touchDirectory(o, target.parent);
  touchChangeTime(o, node);
  noteRename(o, node, fromPath, target, caller);
  return 0;
}

/** What stays at the old name: nothing, or a whiteout over what the lower has. */
function leaveName(o: Overlay, node: Node, source: Side): number {
  const error = vacate(o, node, source.parent, source.name);
  if (error) return error;
  if (!hidesLower(o, source.parent, source.name)) {
    dropBase(source.parent, source.name);
    return 0;
  }
  source.parent.kids ??= new Map();
  source.parent.kids.set(source.name, new Whiteout());
  return 0;
}

function noteRename(o: Overlay, node: Node, fromPath: string, target: Side, caller: Caller): void {
  const path = o.path(target.parent, target.name) ?? target.name;
  const record = o.ledger.noteRename(path, caller.pid, fromPath);
  o.ledger.inherit(path, fromPath);
  if (node.lowerIno === 0 || node.born) record.created = true;
}

function renameDirectory(o: Overlay, source: Side, target: Side, flags: number, caller: Caller): number {
  const node = source.node!;
  if (target.node) {
    if (!target.node.isDirectory) return ENOTDIR;
    if (!isEmptyInView(o, target.node)) return ENOTEMPTY;
  }
  if (source.protected !== target.protected) return EXDEV;
  if (source.protected) {
    // What an outer window has below it would change its path without being this window's.
    if (node.hasLower || o.nested) {
      const error = copyUpTree(o, node);
      if (error) return error;
    }
    return moveInView(o, source, target, flags, caller);
  }
  if (o.window === 0) return renameInLower(o, source, target, flags);
  if (!node.hasLower) return EXDEV;
  const fromPath = o.path(source.parent, source.name);
  const toPath = o.path(target.parent, target.name);
  if (fromPath === undefined || toPath === undefined) return ENOENT;
  if (o.rules.moveMayChangeClass(fromPath, toPath)) return EXDEV;
  if (target.parent.kid(target.name) instanceof Whiteout) return EXDEV;
  // The lower's rename would take protected files along under other names.
  if (protectedInLowerBelow(o, node, fromPath)) return EXDEV;
  const error = renameInLower(o, source, target, flags);
  // Empty in the view, but something is hidden in it. Where nothing is, somebody outside has just put something there.
  const hides = error === ENOTEMPTY && target.node !== undefined && hidesSomething(o, target.node);
  return hides && isEmptyInView(o, target.node!) ? EXDEV : error;
}

/** Copies up what is exchanged; a directory of the lower with all below it. */
function moveUp(o: Overlay, node: Node): number {
  return node.isDirectory && (node.hasLower || o.nested) ? copyUpTree(o, node) : copyUp(o, node);
}

/** RENAME_EXCHANGE: in the lower if both are there for good, otherwise in the view. */
function exchange(o: Overlay, source: Side, target: Side, caller: Caller): number {
  const a = source.node!;
  const b = target.node!;
  if (!source.protected && !target.protected) {
    // One that sticks to the upper cannot change places with a real one, which must stay real under its new name.
    const sticks = ({ node }: Side) => (node!.inUpper && !node!.held) || o.isProtected(node!);
    if (sticks(source) !== sticks(target)) return EXDEV;
    for (const side of [source, target]) {
      if (!side.node!.held) continue;
      const error = moveToLower(o, side.node!);
      if (error) return error;
    }
  }
  const inView = [source, target].some(
    (side) => side.protected || side.node!.inUpper || o.isProtected(side.node!),
  );
  if (!inView) {
    for (const side of [source, target]) {
      if (!side.node!.isDirectory || o.window === 0) continue;
      const other = side === source ? target : source;
      const path = o.path(side.parent, side.name) ?? '';
      if (o.rules.moveMayChangeClass(path, o.path(other.parent, other.name) ?? '')) return EXDEV;
      if (protectedInLowerBelow(o, side.node!, path)) return EXDEV;
    }
    const fromDir = o.dirFd(source.parent);
    const toDir = o.dirFd(target.parent);
    if (fromDir < 0) return -fromDir;
    if (toDir < 0) return -toDir;
    const error = callRename(fromDir, source.name, toDir, target.name, RENAME_EXCHANGE);
    if (error) return error;
    const paths = [source, target].map((side) => o.path(side.parent, side.name));
    o.written.moved(a, paths[0], paths[1]);
    o.written.moved(b, paths[1], paths[0]);
    settleRename(o, source, target);
    o.settle(b);
    for (const side of [source, target]) nameIsReal(o, side.parent, side.name);
  } else {
    // Before anything is copied up: a directory must not change its class by it.
    const staysProtected = source.protected && target.protected;
    if (!staysProtected && (a.isDirectory || b.isDirectory)) return EXDEV;
    for (const node of [a, b]) {
      const outcome = moveUp(o, node);
      if (outcome) return outcome;
    }
    const fromPath = o.path(source.parent, source.name) ?? source.name;
    const toPath = o.path(target.parent, target.name) ?? target.name;
    for (const { node, parent, name } of [source, target] as Required<Side>[]) {
      const error = vacate(o, node!, parent, name);
      if (error) return error;
      hidesLower(o, parent, name);
      node!.protected = true;
      node!.held = false;
      touchChangeTime(o, node!);
    }
    touchDirectory(o, source.parent);
    if (target.parent !== source.parent) touchDirectory(o, target.parent);
    noteRename(o, a, fromPath, target, caller);
    noteRename(o, b, toPath, source, caller);
  }
  a.removeLink(source.parent, source.name);
  b.removeLink(target.parent, target.name);
  a.addLink(target.parent, target.name);
  b.addLink(source.parent, source.name);
  for (const node of o.window === 0 ? [a, b] : []) judgeTree(o, node);
  return 0;
}
