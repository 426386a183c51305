/** From a name in a directory of the view to its node. */
import type { Reply, Validity } from '../fuse/reply.ts';
import { scratchCstring } from '../sys/bytes.ts';
import { O_CLOEXEC, O_NOFOLLOW, O_PATH, S_IFLNK } from '../sys/constants.ts';
import { EMFILE, ENAMETOOLONG, ENFILE, ENOENT, ENOTDIR, ESTALE } from '../sys/errno.ts';
import { close, errno, openat } from '../sys/libc.ts';
import type { Stat } from '../sys/stat.ts';
import { noteBase } from './bases.ts';
import { type Node, PATH_FD, Whiteout } from './node.ts';
import type { Overlay } from './overlay.ts';
import { directoryMoved } from './window-real.ts';

/** NAME_MAX of every filesystem that a lower can be. */
export const NAME_MAX = 255;
/** How long the kernel may keep what nobody outside can change, or what is watched: an hour. */
const LONG = 3600;
/** How long it may keep what an outside change would make wrong unseen. */
const SHORT = 1;
const BY_PATH = O_PATH | O_NOFOLLOW | O_CLOEXEC;
const validity: Validity = { entry: 0, attr: 0 };

/**
 * The node that `name` leads to in the view, with its attributes in `st`; or an errno. The lower is asked each
 * time, since it may have changed; what the overlay itself holds is not.
 */
export function findChild(o: Overlay, parent: Node, name: string, st: Stat): Node | number {
  return find(o, parent, name, st, false);
}

function find(o: Overlay, parent: Node, name: string, st: Stat, opening: boolean): Node | number {
  if (!parent.isDirectory) return ENOTDIR;
  if (name.length > NAME_MAX) return ENAMETOOLONG;
  const kid = parent.kid(name);
  if (kid instanceof Whiteout) return ENOENT;
  if (kid?.inUpper) return o.statNode(kid, st) || kid;
  if (!parent.hasLower) return ENOENT;
  // Watched before it is read: a change in between would be missed for as long as the kernel keeps the answer.
  o.watchDirectory(parent);
  const dir = o.dirFd(parent);
  if (dir < 0) return -dir;
  let fd = -1;
  let error = 0;
  if (opening && !(kid && kid.fd >= 0)) {
    fd = openat(dir, scratchCstring(name), BY_PATH, 0);
    if (fd < 0) error = errno();
  }
  if (fd >= 0) error = st.of(fd);
  // For want of a descriptor it can still be described.
  else if (error === 0 || error === EMFILE || error === ENFILE) error = st.at(dir, scratchCstring(name));
  if (error) {
    if (fd >= 0) close(fd);
    if (kid) loseName(o, kid, parent, name);
    return error;
  }
  if (o.hide && o.isProtectedName(parent, name)) {
    if (fd >= 0) close(fd);
    return ENOENT;
  }
  const node = kid && o.table.isSame(kid, st) ? kid : adopt(o, parent, name, st, kid);
  if (fd >= 0) keepOpen(o, node, fd);
  if (node.inUpper) return o.statNode(node, st) || node;
  o.present(node, st);
  return node;
}

function keepOpen(o: Overlay, node: Node, fd: number): void {
  const holds = node.isRegular || node.isDirectory || node.type === S_IFLNK;
  if (holds && node.fd < 0 && !node.inUpper) o.descriptors.set(node, fd, PATH_FD);
  else close(fd);
}

/** Makes the lower file that `st` describes known under this name, in place of what was. */
export function adopt(o: Overlay, parent: Node, name: string, st: Stat, before: Node | undefined): Node {
  if (before) loseName(o, before, parent, name);
  const known = o.table.find(st);
  const node = known ?? o.table.adopt(st);
  // A directory has one name: it was renamed outside, and its old name is gone.
  const from = node.isDirectory && node.link ? o.path(node.link.parent, node.link.name) : undefined;
  if (node.isDirectory && node.link) node.removeLink(node.link.parent, node.link.name);
  if (node.unseenNames > 0) node.unseenNames--;
  if (node.inUpper) noteBase(parent, name, st);
  node.addLink(parent, name);
  if (!node.protected && o.wouldProtectName(parent, name)) node.protected = true;
  if (known?.isDirectory) classifyBelow(o, node);
  if (from !== undefined) directoryMoved(o, from, o.path(parent, name));
  return node;
}

/** A directory that came from elsewhere brings files along that were judged by their old paths. */
function classifyBelow(o: Overlay, dir: Node): void {
  for (const [name, kid] of dir.kids ?? []) {
    if (kid instanceof Whiteout) continue;
    if (o.wouldProtectName(dir, name)) kid.protected = true;
    if (kid.isDirectory) classifyBelow(o, kid);
  }
}

/** The lower no longer has the node under this name: somebody outside renamed or removed it. */
export function loseName(o: Overlay, node: Node, parent: Node, name: string): void {
  node.removeLink(parent, name);
  o.dropIdle(node);
}

/**
 * How long the kernel may keep this name and these attributes. A directory's own attributes and listing change without
 * an event in its parent, so it is watched itself; `st` is read again if that began only now.
 */
export function validityOf(o: Overlay, parent: Node, node: Node | null, st: Stat | null): Validity {
  const watched = !parent.hasLower || o.watchDirectory(parent);
  validity.entry = watched || node?.inUpper ? LONG : SHORT;
  validity.attr = node && st ? attrValidity(o, node, st) : validity.entry;
  return validity;
}

/** How long the kernel may keep the attributes of a node. */
export function attrValidity(o: Overlay, node: Node, st: Stat): number {
  if (node.isDirectory && node.hasLower) {
    const before = node.watch;
    if (!o.watchDirectory(node)) return SHORT;
    if (node.watch !== before) o.statNode(node, st);
    return LONG;
  }
  if (node.inUpper) return LONG;
  // A file with more names may be changed by one of them in a directory that nobody watches.
  if (st.nlink > 1) return SHORT;
  const parent = node.link?.parent;
  return !parent || o.watchDirectory(parent) ? LONG : SHORT;
}

/** Replies with an entry, and counts that the kernel knows the node once more. */
export function replyEntry(o: Overlay, parent: Node, node: Node, st: Stat, reply: Reply): number {
  node.lookups++;
  reply.putEntry(node.id, validityOf(o, parent, node, st), st);
  return 0;
}

/**
 * As findChild, with the attributes in `o.stat`. Who looks a file up is about to open it, and will not say so (no_open),
 * and who looks a symlink up is about to read it: should it be replaced or removed outside meanwhile, the one that was
 * looked up is still to be had by its descriptor.
 */
function findOpened(o: Overlay, parent: Node, name: string): Node | number {
  return find(o, parent, name, o.stat, true);
}

export function lookup(o: Overlay, parentId: number, name: string, reply: Reply): number {
  const parent = o.node(parentId);
  if (!parent) return ESTALE;
  const found = findOpened(o, parent, name);
  if (found === ENOENT) {
    // The kernel may keep that there is nothing, too: where somebody would see it appear.
    if (parent.hasLower && !o.watchDirectory(parent)) return ENOENT;
    parent.absences = true;
    reply.putEntry(0, validityOf(o, parent, null, null), null);
    return 0;
  }
  if (typeof found === 'number') return found;
  return replyEntry(o, parent, found, o.stat, reply);
}

export function forget(o: Overlay, id: number, count: number): void {
  const node = o.node(id);
  if (!node || node === o.root) return;
  node.lookups = Math.max(0, node.lookups - count);
  if (node.lookups === 0) o.dropIdle(node);
}
