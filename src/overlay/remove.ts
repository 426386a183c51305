/** UNLINK and RMDIR: for real in the lower, or as a whiteout in the view. */
import type { Caller } from '../fuse/handler.ts';
import { scratchCstring } from '../sys/bytes.ts';
import { AT_REMOVEDIR, S_IFDIR, S_IFMT } from '../sys/constants.ts';
import { EISDIR, ENOTDIR, ENOTEMPTY, EROFS, ESTALE } from '../sys/errno.ts';
import { errno, unlinkat } from '../sys/libc.ts';
import { touchChangeTime, touchDirectory } from './attributes.ts';
import { dropBase, noteBase } from './bases.ts';
import { pathsOf } from './copy-up.ts';
import { isEmptyInView } from './listing.ts';
import { findChild } from './lookup.ts';
import { type Node, Whiteout } from './node.ts';
import type { Overlay } from './overlay.ts';

export function unlink(o: Overlay, parentId: number, name: string, caller: Caller): number {
  const parent = o.node(parentId);
  if (!parent) return ESTALE;
  const node = findChild(o, parent, name, o.stat);
  if (typeof node === 'number') return node;
  if (node.isDirectory) return EISDIR;
  const inView = node.inUpper || o.isProtectedName(parent, name);
  const refused = refuseRemoval(o, parent, name, inView);
  if (refused) return refused;
  if (!inView) return unlinkInLower(o, node, parent, name);
  if (!node.held) o.ledger.note(o.path(parent, name) ?? name, caller.pid, 'delete');
  const error = takeName(o, node, parent, name);
  if (error) return error;
  o.dropIdle(node);
  touchDirectory(o, parent);
  return 0;
}

function refuseRemoval(o: Overlay, parent: Node, name: string, inView: boolean): number {
  if (o.isFixedName(parent, name)) return EROFS;
  return inView && o.readonly ? EROFS : 0;
}

function unlinkInLower(o: Overlay, node: Node, parent: Node, name: string): number {
  const dir = o.dirFd(parent);
  if (dir < 0) return -dir;
  keepOpen(o, node);
  o.written.keepEarlier(o, node);
  if (unlinkat(dir, scratchCstring(name), 0) < 0) return errno();
  if (o.stat.nlink <= 1) o.table.noteGone(node);
  else o.settle(node);
  o.settle(parent);
  node.removeLink(parent, name);
  o.dropIdle(node);
  return 0;
}

/**
 * Before a lower file loses a name: somebody may have it open, and nobody told us (no_open). From then on its
 * descriptor is the one way to it.
 */
export function keepOpen(o: Overlay, node: Node): void {
  if (!node.inUpper && node.lookups > 0 && node.linkCount <= 1) o.pathFd(node);
}

/**
 * Takes a name out of the view without touching the lower: a whiteout stands there afterwards if the lower has
 * something of that name. Returns 0 or an errno.
 */
export function takeName(o: Overlay, node: Node, parent: Node, name: string): number {
  if (node.isRegular || !node.inUpper) keepOpen(o, node);
  if (node.inUpper) o.pages.ending(o, node);
  const error = vacate(o, node, parent, name);
  if (error) return error;
  const covers = hidesLower(o, parent, name);
  if (!covers) dropBase(parent, name);
  else if (!node.inUpper) {
    noteBase(parent, name, o.otherStat);
    node.origin = pathsOf(o, node);
  }
  const hidden = node.isDirectory ? whiteoutsOf(node) : null;
  const { bases } = node;
  if (node.isDirectory) {
    node.dropKids();
    node.dead = true;
  }
  node.removeLink(parent, name);
  if (covers) {
    node.hidden = !node.inUpper && o.otherStat.nlink === 1;
    parent.kids ??= new Map();
    parent.kids.set(name, new Whiteout(o.isProtectedName(parent, name) ? null : hidden, bases));
  }
  touchChangeTime(o, node);
  return 0;
}

/** Whether the lower has something of this name, which the view does not show from now on. */
export function hidesLower(o: Overlay, parent: Node, name: string): boolean {
  const st = o.otherStat;
  if (!o.lowerHas(parent, name, st)) return false;
  if ((st.mode & S_IFMT) === S_IFDIR) {
    parent.hiddenSubdirectories ??= new Set();
    parent.hiddenSubdirectories.add(name);
  } else o.table.noteHidden(st, parent, name);
  return true;
}

/**
 * A file that was born in the window under an unprotected name, and is in the upper by now: what the lower still has of
 * it under this name goes. Returns 0 or an errno.
 */
export function vacate(o: Overlay, node: Node, parent: Node, name: string): number {
  if (!node.born || !node.inUpper || node.isDirectory) return 0;
  const st = o.otherStat;
  if (!o.lowerHas(parent, name, st) || !o.table.isSame(node, st) || o.isProtectedName(parent, name)) return 0;
  const last = st.nlink <= 1;
  if (unlinkat(o.dirFd(parent), scratchCstring(name), 0) < 0) return errno();
  if (last) o.table.noteGone(node);
  o.settle(parent);
  return 0;
}

/** Whether the lower of a directory may have something that the view does not show. */
export function hidesSomething(o: Overlay, node: Node): boolean {
  return o.hide || whiteoutsOf(node).size > 0;
}

/** A directory that is empty in the view holds nothing but whiteouts, and what the kernel once looked up. */
function whiteoutsOf(node: Node): Map<string, Whiteout> {
  const out = new Map<string, Whiteout>();
  for (const [name, kid] of node.kids ?? []) if (kid instanceof Whiteout) out.set(name, kid);
  return out;
}

export function rmdir(o: Overlay, parentId: number, name: string, caller: Caller): number {
  const parent = o.node(parentId);
  if (!parent) return ESTALE;
  const node = findChild(o, parent, name, o.stat);
  if (typeof node === 'number') return node;
  if (!node.isDirectory) return ENOTDIR;
  const inView = node.inUpper || o.isProtectedName(parent, name);
  const refused = refuseRemoval(o, parent, name, inView);
  if (refused) return refused;
  if (!isEmptyInView(o, node)) return ENOTEMPTY;
  if (!inView) {
    const error = removeLowerDirectory(o, node, parent, name);
    if (error !== ENOTEMPTY) return error;
    // Protected files are hidden in it: it goes from the view, and stays in the lower with them. Or somebody outside has
    // just put something there, which must not be hidden.
    if (!hidesSomething(o, node) || !isEmptyInView(o, node)) return ENOTEMPTY;
  } else {
    o.ledger.note(o.path(parent, name) ?? name, caller.pid, 'delete');
  }
  const error = takeName(o, node, parent, name);
  if (error) return error;
  o.dropIdle(node);
  touchDirectory(o, parent);
  return 0;
}

function removeLowerDirectory(o: Overlay, node: Node, parent: Node, name: string): number {
  const dir = o.dirFd(parent);
  if (dir < 0) return -dir;
  if (node.lookups > 0) o.dirFd(node);
  if (unlinkat(dir, scratchCstring(name), AT_REMOVEDIR) < 0) return errno();
  o.settle(parent);
  node.dropKids();
  node.removeLink(parent, name);
  o.dropIdle(node);
  return 0;
}
