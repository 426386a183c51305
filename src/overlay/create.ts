/** MKNOD (which is also how regular files are created), MKDIR, SYMLINK, O_TMPFILE. */
import type { Caller } from '../fuse/handler.ts';
import type { Reply } from '../fuse/reply.ts';
import { cstring, scratchCstring } from '../sys/bytes.ts';
import {
  O_CLOEXEC,
  O_CREAT,
  O_DIRECTORY,
  O_EXCL,
  O_NOFOLLOW,
  O_PATH,
  O_RDWR,
  O_TMPFILE,
  RENAME_NOREPLACE,
  S_IFDIR,
  S_IFLNK,
  S_IFMT,
  S_IFREG,
  S_ISGID,
} from '../sys/constants.ts';
import { EEXIST, ENAMETOOLONG, ENOSPC, ENOTDIR, ESTALE, errnoName, SysError } from '../sys/errno.ts';
import { errno, fchmodat, getxattr, mkdirat, mknodat, openat, renameat2, symlinkat } from '../sys/libc.ts';
import { magicPath, touchDirectory } from './attributes.ts';
import { dropBase, noteBase } from './bases.ts';
import { NAME_MAX, replyEntry } from './lookup.ts';
import { ensureLowerDirectory } from './lower-directory.ts';
import { type Node, PATH_FD, Whiteout, WRITE_FD } from './node.ts';
import type { Overlay, Place } from './overlay.ts';
import { protectedInLowerBelow } from './protected-below.ts';
import { DEFAULT_ACL } from './upper.ts';
import { nameIsReal } from './window-real.ts';

const FOPEN_KEEP_CACHE = 1 << 1;

/** What is to be made: the mode with its type, the device number of a device, the target of a symlink. */
interface Making {
  mode: number;
  rdev: number;
  target: string;
}

export function mknod(
  o: Overlay,
  parentId: number,
  name: string,
  mode: number,
  rdev: number,
  caller: Caller,
  reply: Reply,
): number {
  const typed = mode & S_IFMT ? mode : mode | S_IFREG;
  return make(o, parentId, name, { mode: typed, rdev, target: '' }, caller, reply);
}

export function mkdir(
  o: Overlay,
  parentId: number,
  name: string,
  mode: number,
  caller: Caller,
  reply: Reply,
): number {
  return make(o, parentId, name, { mode: (mode & 0o7777) | S_IFDIR, rdev: 0, target: '' }, caller, reply);
}

export function symlink(
  o: Overlay,
  parentId: number,
  name: string,
  target: string,
  caller: Caller,
  reply: Reply,
): number {
  return make(o, parentId, name, { mode: S_IFLNK | 0o777, rdev: 0, target }, caller, reply);
}

function make(
  o: Overlay,
  parentId: number,
  name: string,
  what: Making,
  caller: Caller,
  reply: Reply,
): number {
  const parent = o.node(parentId);
  if (!parent) return ESTALE;
  if (!parent.isDirectory) return ENOTDIR;
  if (name.length > NAME_MAX) return ENAMETOOLONG;
  let place = o.placeFor(parent, name);
  if (place === 'held' && (what.mode & S_IFMT) !== S_IFREG) place = 'lower';
  const kid = parent.kid(name);
  // The kernel believes that the name is free; if it is not, it is to look again (ESTALE makes it) and decide
  // by itself between EEXIST and opening what it finds.
  if (kid && !(kid instanceof Whiteout)) return ESTALE;
  if (place === 'lower') return makeInLower(o, parent, name, kid, what, caller, reply);
  if (!kid && lowerShows(o, parent, name)) return ESTALE;
  return makeInUpper(o, parent, name, place, what, caller, reply);
}

/** Whether the lower has something of this name that the view shows; the overlay has nothing there. */
export function lowerShows(o: Overlay, parent: Node, name: string): boolean {
  if (o.hide && o.isProtectedName(parent, name)) return false;
  return o.lowerHas(parent, name, o.stat);
}

function makeInLower(
  o: Overlay,
  parent: Node,
  name: string,
  whiteout: Whiteout | undefined,
  what: Making,
  caller: Caller,
  reply: Reply,
): number {
  ensureLowerDirectory(o, parent);
  const dir = o.dirFd(parent);
  if (dir < 0) return -dir;
  const type = what.mode & S_IFMT;
  if (whiteout) {
    if (whiteout.hidden && type === S_IFDIR) {
      return restoreDirectory(o, parent, name, whiteout, what.mode, caller, reply);
    }
    if (coversProtected(o, parent, name, whiteout)) {
      return makeInUpper(o, parent, name, 'upper', what, caller, reply);
    }
    setOriginalAside(o, parent, name);
  }
  o.identity.actAs(caller);
  const cname = scratchCstring(name);
  const permissions = what.mode & 0o7777;
  let fd = -1;
  let result: number;
  if (type === S_IFREG) {
    fd = openat(dir, cname, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, permissions);
    result = fd;
  } else if (type === S_IFDIR) result = mkdirat(dir, cname, permissions);
  else if (type === S_IFLNK) result = symlinkat(cstring(what.target), dir, cname);
  else result = mknodat(dir, cname, what.mode, what.rdev);
  if (result < 0) return errno() === EEXIST ? ESTALE : errno();
  const st = o.stat;
  const error = fd >= 0 ? st.of(fd) : st.at(dir, cname);
  if (error) return error;
  // Somebody outside has replaced it already: the kernel would take another type for a broken answer (EIO).
  if ((st.mode & S_IFMT) !== type) return ESTALE;
  const node = o.table.adopt(st);
  node.addLink(parent, name);
  o.table.noteBorn(node);
  node.noCapability = type === S_IFREG;
  if (o.window === 0) o.judge(node);
  nameIsReal(o, parent, name);
  if (fd >= 0) o.descriptors.set(node, fd, WRITE_FD);
  o.settle(parent);
  o.present(node, st);
  return replyEntry(o, parent, node, st, reply);
}

/**
 * Whether the whiteout hides a lower directory with protected files in it, which keep their names: nothing else can
 * have this one in the lower.
 */
export function coversProtected(o: Overlay, parent: Node, name: string, whiteout: Whiteout): boolean {
  const path = o.path(parent, name);
  const st = o.otherStat;
  if (!whiteout.hidden || path === undefined || !o.lowerHas(parent, name, st)) return false;
  const node = o.table.find(st) ?? o.table.adopt(st);
  const fd = openat(o.dirFd(parent), scratchCstring(name), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
  if (fd < 0) return true;
  o.descriptors.set(node, fd, PATH_FD);
  try {
    return protectedInLowerBelow(o, node, path);
  } finally {
    o.dropIdle(node);
  }
}

/**
 * A file older than the window was moved from this name into a protected one, and now a new file takes the
 * name. Both must survive the window, so the original, which the view hides, gets another name in the lower. So does a
 * directory that was removed in the view and has nothing but such files in it.
 */
export function setOriginalAside(o: Overlay, parent: Node, name: string): void {
  const dir = o.dirFd(parent);
  if (dir >= 0 && o.lowerHas(parent, name, o.stat)) {
    for (let n = 1; ; n++) {
      const aside = `${name.slice(0, NAME_MAX - 24)}.before-forget-${n}`;
      if (renameat2(dir, scratchCstring(name, 0), dir, scratchCstring(aside, 1), RENAME_NOREPLACE) === 0) {
        parent.kids!.set(aside, new Whiteout());
        if (parent.hiddenSubdirectories?.delete(name)) parent.hiddenSubdirectories.add(aside);
        dropBase(parent, name);
        if (o.lowerHas(parent, aside, o.stat)) noteBase(parent, aside, o.stat);
        const path = o.path(parent, aside) ?? aside;
        moveOriginal(o, o.path(parent, name) ?? name, path);
        o.ledger.noteMoved(
          path,
          `the original of ${name}, which was moved to a protected path and then made anew`,
        );
        break;
      }
      if (errno() !== EEXIST) throw new SysError(errno(), 'keeping the original of a moved file');
    }
  }
  parent.kids!.delete(name);
}

/** What is known of the original by its old name, for when it shows again. */
function moveOriginal(o: Overlay, from: string, to: string): void {
  const origin = o.table.find(o.stat)?.origin;
  const at = origin?.indexOf(from) ?? -1;
  if (at >= 0) origin![at] = to;
  for (const { entries } of o.frozen)
    if (entries.get(from) instanceof Whiteout) entries.set(to, new Whiteout());
}

function restoreDirectory(
  o: Overlay,
  parent: Node,
  name: string,
  whiteout: Whiteout,
  mode: number,
  caller: Caller,
  reply: Reply,
): number {
  const st = o.stat;
  const dir = o.dirFd(parent);
  let error = st.at(dir, scratchCstring(name));
  if (error) return error;
  const node = o.table.find(st) ?? o.table.adopt(st);
  fchmodat(dir, scratchCstring(name), mode & 0o7777 & ~caller.umask, 0);
  node.kids = new Map(whiteout.hidden);
  node.bases = whiteout.bases;
  parent.kids!.delete(name);
  parent.hiddenSubdirectories?.delete(name);
  node.addLink(parent, name);
  o.settle(node);
  error = o.statNode(node, st);
  return error || replyEntry(o, parent, node, st, reply);
}

function makeInUpper(
  o: Overlay,
  parent: Node,
  name: string,
  place: Place,
  what: Making,
  caller: Caller,
  reply: Reply,
): number {
  const node = makeObject(o, parent, what, caller);
  if (typeof node === 'number') {
    if (node === ENOSPC && o.engine.lastTry)
      o.ledger.error(o.path(parent, name) ?? name, `create failed: ${errnoName(node)}`);
    return node;
  }
  node.protected = place === 'upper';
  node.held = place === 'held';
  node.addLink(parent, name);
  touchDirectory(o, parent);
  if (!node.held) o.ledger.note(o.pathOf(node), caller.pid, 'create');
  const error = o.statNode(node, o.stat);
  return error || replyEntry(o, parent, node, o.stat, reply);
}

/** A new node in the upper without a name; or an errno. */
export function makeObject(o: Overlay, parent: Node, what: Making, caller: Caller): Node | number {
  const error = o.statNode(parent, o.stat);
  if (error) return error;
  const setgid = (o.stat.mode & S_ISGID) !== 0;
  const gid = o.stat.gid;
  // The store is flat, so what a directory hands down by its setgid bit is done by hand. The group comes with the
  // making: a chown afterwards would take setuid and setgid from the new file.
  o.identity.actAs(setgid ? { ...caller, gid } : caller);
  const acl = defaultAclOf(o, parent);
  const object = acl
    ? o.upper.makeUnder(acl, what.mode, what.rdev, what.target)
    : o.upper.make(what.mode, what.rdev, what.target);
  if (object < 0) return -object;
  const node = o.table.create(what.mode & S_IFMT);
  node.upper = object;
  node.owner = o.window;
  if (setgid && node.isDirectory) {
    const made = o.upper.name(object);
    const unread = o.stat.at(o.upper.fd, made);
    if (unread) return unread;
    fchmodat(o.upper.fd, made, (o.stat.mode & 0o7777) | S_ISGID, 0);
  }
  return node;
}

const aclBuffer = Buffer.alloc(4096);

/** What the store, being flat, must be told: the default ACL of the directory in the view. */
function defaultAclOf(o: Overlay, parent: Node): Buffer | undefined {
  const path = magicPath(o, parent);
  if (typeof path === 'number') return undefined;
  const length = getxattr(path, DEFAULT_ACL, aclBuffer, aclBuffer.length);
  return length > 0 ? aclBuffer.subarray(0, length) : undefined;
}

export function tmpfile(o: Overlay, parentId: number, mode: number, caller: Caller, reply: Reply): number {
  const parent = o.node(parentId);
  if (!parent) return ESTALE;
  const what = { mode: (mode & 0o7777) | S_IFREG, rdev: 0, target: '' };
  let node: Node | number;
  // It has no name to judge by: the directory's is the next best. A link gives it one, and is judged then.
  if (parent.inUpper || o.isProtected(parent)) {
    node = makeObject(o, parent, what, caller);
    if (typeof node !== 'number') node.protected = true;
  } else node = tmpfileInLower(o, parent, what.mode, caller);
  if (typeof node === 'number') return node;
  const error = o.statNode(node, o.stat);
  if (error) return error;
  replyEntry(o, parent, node, o.stat, reply);
  reply.putOpen(0, FOPEN_KEEP_CACHE);
  return 0;
}

function tmpfileInLower(o: Overlay, parent: Node, mode: number, caller: Caller): Node | number {
  const dir = o.dirFd(parent);
  if (dir < 0) return -dir;
  o.identity.actAs(caller);
  const fd = openat(dir, scratchCstring('.'), O_TMPFILE | O_RDWR | O_CLOEXEC, mode & 0o7777);
  if (fd < 0) return errno();
  const error = o.stat.of(fd);
  if (error) return error;
  const node = o.table.adopt(o.stat);
  o.table.noteBorn(node);
  o.descriptors.set(node, fd, WRITE_FD);
  return node;
}
