/** GETATTR, STATX, SETATTR, READLINK, STATFS. */
import { Fattr } from '../fuse/abi.ts';
import type { Caller, SetAttr } from '../fuse/handler.ts';
import type { Reply } from '../fuse/reply.ts';
import { scratchCstring } from '../sys/bytes.ts';
import { wallMs } from '../sys/clock.ts';
import {
  AT_EMPTY_PATH,
  AT_FDCWD,
  AT_SYMLINK_NOFOLLOW,
  S_IFLNK,
  S_IFMT,
  S_ISGID,
  S_ISUID,
  S_IXGRP,
  UTIME_NOW,
  UTIME_OMIT,
} from '../sys/constants.ts';
import { EINVAL, ENOENT, ESTALE } from '../sys/errno.ts';
import { errno, fchmodat, fchownat, fstatfs, ftruncate, readlinkat, utimensat } from '../sys/libc.ts';
import type { Stat } from '../sys/stat.ts';
import { copyUp, prepareChange } from './copy-up.ts';
import { attrValidity } from './lookup.ts';
import type { Node } from './node.ts';
import type { Overlay } from './overlay.ts';
import { guardLink } from './protected-links.ts';

const TWO_32 = 2 ** 32;
const UNCHANGED = 0xffffffff;
const EMPTY = Buffer.from([0]);
const times = Buffer.alloc(32);
const link = Buffer.alloc(4096);
const statfsBuffer = Buffer.alloc(120);

export function getattr(o: Overlay, id: number, reply: Reply, statx: boolean): number {
  const node = o.node(id);
  if (!node) return ESTALE;
  const error = o.statNode(node, o.stat);
  if (error) return error === ENOENT ? ESTALE : error;
  const valid = attrValidity(o, node, o.stat);
  if (statx) reply.putStatxOut(valid, o.stat);
  else reply.putAttrOut(valid, o.stat);
  return 0;
}

/**
 * Where a `*at` call finds the node in its layer: a directory descriptor and a name, or a descriptor and the
 * empty name. Returned in one object that the next call overwrites.
 */
const place = { dir: -1, name: EMPTY as Buffer, flags: 0 };

export function placeOf(o: Overlay, node: Node): number {
  if (node.inUpper) {
    place.dir = o.upper.fd;
    place.name = o.upper.name(node.upper);
    place.flags = AT_SYMLINK_NOFOLLOW;
    return 0;
  }
  const fd = o.pathFd(node);
  if (fd < 0) return -fd;
  place.dir = fd;
  place.name = EMPTY;
  place.flags = AT_EMPTY_PATH;
  return 0;
}

/**
 * A path that reaches exactly this inode in its layer, for calls that take no descriptor: through the magic
 * link of a descriptor, never by the lower's own path. Throws nothing; returns an errno instead of a path.
 */
export function magicPath(o: Overlay, node: Node, slot: 0 | 1 = 0): Buffer | number {
  if (node.inUpper) return scratchCstring(`/proc/self/fd/${o.upper.fd}/${node.upper}`, slot);
  const fd = o.pathFd(node);
  return fd < 0 ? -fd : scratchCstring(`/proc/self/fd/${fd}`, slot);
}

export function setattr(o: Overlay, id: number, args: SetAttr, caller: Caller, reply: Reply): number {
  const node = o.node(id);
  if (!node) return ESTALE;
  const outcome = prepareChange(o, node, args.valid & Fattr.SIZE ? args.size : undefined);
  if (outcome) return outcome;
  const st = o.stat;
  let error = 0;
  // The answer makes the kernel's times new, and with them it would take what it has of an older content for new too.
  o.tellOutsideChange(node);
  if (args.valid & Fattr.SIZE) {
    if (node.inUpper) o.pages.ending(o, node);
    else o.written.cutting(o, node, caller.pid);
    error = truncate(o, node, args);
  }
  // Nothing at all is what the kernel makes of a chown to -1 and -1, which moves the ctime and takes setuid away, and of a
  // write by who may not keep them. It does not say which, so that whoever may write may do the first as well.
  if (!error && (args.valid === 0 || args.valid & (Fattr.UID | Fattr.GID))) error = chown(o, node, args);
  if (!error && args.valid & Fattr.MODE) {
    // Whoever has the file open goes on writing it, which the new mode may bar this server from.
    if (node.isRegular && !(args.mode & 0o200)) o.fileFd(node, true);
    error = chmod(o, node, args.mode & 0o7777);
  }
  if (!error && args.valid & (Fattr.ATIME | Fattr.MTIME)) error = utimens(o, node, args);
  if (error) return error;
  error = o.statNode(node, st);
  if (error) return error;
  o.settle(node);
  if (node.inUpper && !node.held && node.link) o.ledger.note(o.pathOf(node), caller.pid, 'change');
  reply.putAttrOut(attrValidity(o, node, st), st);
  return 0;
}

function truncate(o: Overlay, node: Node, args: SetAttr): number {
  const fd = o.fileFd(node, true);
  if (fd < 0) return -fd;
  if (ftruncate(fd, args.size) < 0) return errno();
  return args.valid & Fattr.KILL_SUIDGID ? clearSetuid(o, node) : 0;
}

function chown(o: Overlay, node: Node, args: SetAttr): number {
  const uid = args.valid & Fattr.UID ? args.uid : UNCHANGED;
  const gid = args.valid & Fattr.GID ? args.gid : UNCHANGED;
  const error = placeOf(o, node);
  if (error) return error;
  return fchownat(place.dir, place.name, uid, gid, place.flags) < 0 ? errno() : 0;
}

function chmod(o: Overlay, node: Node, mode: number): number {
  const path = magicPath(o, node);
  if (typeof path === 'number') return path;
  return fchmodat(AT_FDCWD, path, mode, 0) < 0 ? errno() : 0;
}

/**
 * A write or a truncation by somebody who may not keep them clears setuid and setgid. The kernel of the lower does it by
 * itself where this server has no capability that keeps them, and leaves it to the server otherwise.
 */
export function clearSetuid(o: Overlay, node: Node): number {
  if (!node.setid) return 0;
  const st: Stat = o.otherStat;
  let error = o.statNode(node, st);
  if (error) return error;
  const mode = st.mode;
  const setgid = mode & S_ISGID && mode & S_IXGRP ? S_ISGID : 0;
  const clear = mode & (S_ISUID | setgid);
  if (clear) error = chmod(o, node, mode & 0o7777 & ~clear);
  // The kernel asked for it, and yet keeps the mode it knows.
  o.notifier.attributesNow(node.id);
  return error;
}

function utimens(o: Overlay, node: Node, args: SetAttr): number {
  putTime(0, args.valid & Fattr.ATIME, args.valid & Fattr.ATIME_NOW, args.atime, args.atimeNsec);
  putTime(16, args.valid & Fattr.MTIME, args.valid & Fattr.MTIME_NOW, args.mtime, args.mtimeNsec);
  const error = placeOf(o, node);
  if (error) return error;
  if (node.isDirectory && args.valid & Fattr.MTIME) node.overlayChange = 0;
  if (place.flags === AT_EMPTY_PATH) {
    // utimensat takes the empty path since 5.8; the magic link works everywhere, but not for symlinks.
    if (utimensat(place.dir, EMPTY, times, AT_EMPTY_PATH) === 0) return 0;
    const path = magicPath(o, node);
    if (errno() !== EINVAL || typeof path === 'number' || node.type === S_IFLNK) return errno();
    return utimensat(AT_FDCWD, path, times, 0) < 0 ? errno() : 0;
  }
  return utimensat(place.dir, place.name, times, AT_SYMLINK_NOFOLLOW) < 0 ? errno() : 0;
}

function putTime(at: number, given: number, now: number, sec: number, nsec: number): void {
  putI64(at, sec);
  putI64(at + 8, !given ? UTIME_OMIT : now ? UTIME_NOW : nsec);
}

function putI64(at: number, value: number): void {
  const high = Math.floor(value / TWO_32);
  times.writeUInt32LE(value - high * TWO_32, at);
  times.writeInt32LE(high, at + 4);
}

/** Both times of a record as utimensat takes them, to the nanosecond; in a Buffer that the next call overwrites. */
export function timesOf(st: Stat): Buffer {
  const w = st.words;
  for (const [at, from] of [
    [0, 16],
    [16, 28],
  ] as const) {
    times.writeUInt32LE(w[from]!, at);
    times.writeUInt32LE(w[from + 1]!, at + 4);
    times.writeUInt32LE(w[from + 2]!, at + 8);
    times.writeUInt32LE(0, at + 12);
  }
  return times;
}

/** Sets both times of an object of the upper to those of a record. */
export function copyTimes(o: Overlay, object: number, st: Stat): number {
  return utimensat(o.upper.fd, o.upper.name(object), timesOf(st), AT_SYMLINK_NOFOLLOW) < 0 ? errno() : 0;
}

/** A directory of the view changed: its times show it, without the lower's being touched. */
export function touchDirectory(o: Overlay, dir: Node): void {
  // Without room for a copy of its own, the times that the outer window gave it stay.
  if (dir.inUpper && copyUp(o, dir) === 0) {
    putI64(0, 0);
    putI64(8, UTIME_OMIT);
    putI64(16, 0);
    putI64(24, UTIME_NOW);
    utimensat(o.upper.fd, o.upper.name(dir.upper), times, AT_SYMLINK_NOFOLLOW);
  } else if (!dir.inUpper) {
    dir.overlayChange = wallMs();
  }
}

/**
 * A change that leaves no other trace on an upper object (a link, a rename) moves its ctime. A chown that changes
 * nothing would do it for every type, but takes setuid and setgid away.
 */
export function touchChangeTime(o: Overlay, node: Node): void {
  if (!o.owns(node)) return;
  const st = o.otherStat;
  const name = o.upper.name(node.upper);
  if (node.type === S_IFLNK) fchownat(o.upper.fd, name, UNCHANGED, UNCHANGED, AT_SYMLINK_NOFOLLOW);
  else if (st.at(o.upper.fd, name) === 0) fchmodat(o.upper.fd, name, st.mode & 0o7777, 0);
}

export function readlink(o: Overlay, id: number, reply: Reply): number {
  const node = o.node(id);
  if (!node) return ESTALE;
  const target = readTarget(o, node);
  if (typeof target === 'number') return target;
  reply.putBytes(target);
  if (o.isProtected(node) && !node.inUpper) return guardLink(o, node, target.latin1Slice(0, target.length));
  return 0;
}

/** A symlink's target, in a Buffer that the next call overwrites; or an errno. */
export function readTarget(o: Overlay, node: Node): Buffer | number {
  if ((node.type & S_IFMT) !== S_IFLNK) return EINVAL;
  const error = placeOf(o, node);
  if (error) return error;
  const n = readlinkat(place.dir, place.name, link, link.length);
  return n < 0 ? errno() : link.subarray(0, n);
}

export function statfs(o: Overlay, id: number, reply: Reply): number {
  const node = o.node(id);
  // What a program asks for is the room for what it writes here: the upper's where its writes go there.
  const fd = node && (node.inUpper || o.isProtected(node)) ? o.upper.fd : o.lowerFd;
  o.descriptors.endAll();
  if (fstatfs(fd, statfsBuffer) < 0) return errno();
  const s = statfsBuffer;
  const bsize = s.readUInt32LE(8);
  for (const at of [16, 24, 32, 40, 48]) reply.putBytes(s.subarray(at, at + 8));
  reply.putU32(bsize);
  reply.putU32(s.readUInt32LE(64) || 255);
  reply.putU32(s.readUInt32LE(72) || bsize);
  reply.putU32(0);
  for (let i = 0; i < 6; i++) reply.putU32(0);
  return 0;
}
