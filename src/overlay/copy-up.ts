/**
 * Copy-up: a lower file becomes an upper one, with mode, owner, times and xattrs, and stays the same node with
 * the same `st_ino`. Up to `INLINE_BYTES` at once; a larger one by a pool thread, while whoever needs it waits and
 * everybody else is served.
 */
import type { Deferred } from '../fuse/handler.ts';
import { encodeDevice } from '../fuse/reply.ts';
import { scratchCstring } from '../sys/bytes.ts';
import {
  AT_EMPTY_PATH,
  AT_SYMLINK_NOFOLLOW,
  O_CLOEXEC,
  O_CREAT,
  O_EXCL,
  O_NOFOLLOW,
  O_RDWR,
  S_IFLNK,
  SEEK_DATA,
  SEEK_HOLE,
  SEEK_SET,
} from '../sys/constants.ts';
import { EINVAL, ENOENT, ENXIO, EPERM, EROFS, errnoName, isOutOfSpace } from '../sys/errno.ts';
import {
  close,
  errno,
  fchmod,
  fchmodat,
  fchownat,
  ftruncate,
  linkat,
  lseek,
  lsetxattr,
  openat,
  pread,
  pwrite,
  sendfile,
  setxattr,
  unlinkat,
} from '../sys/libc.ts';
import { slowInPool } from '../sys/pool.ts';
import { Stat } from '../sys/stat.ts';
import { copyTimes, magicPath, readTarget } from './attributes.ts';
import { noteBase } from './bases.ts';
import { ownDescriptor } from './elsewhere.ts';
import { findChild } from './lookup.ts';
import { type Link, Node, WRITE_FD } from './node.ts';
import type { Overlay } from './overlay.ts';
import { copyXattrs } from './xattrs.ts';

/** 0.2 ms, where the lower's page cache has it: what another request may have to wait behind. */
export const INLINE_BYTES = 256 << 10;
const SLICE_BYTES = 1 << 20;
/** What a pool thread copies at a time. */
const STRIDE = 64 << 20;
const EMPTY = Buffer.from([0]);
const slice = Buffer.alloc(SLICE_BYTES);

/**
 * Makes sure that the node is in the upper, and there the window's own: what an outer window has is copied as the lower
 * is. `keep` is how many bytes of content are needed, where the caller
 * will cut the rest off anyway. Returns 0, an errno, or DEFERRED when the request was put aside until the copy
 * is done.
 */
export function copyUp(o: Overlay, node: Node, keep = Number.POSITIVE_INFINITY): number {
  if (o.owns(node)) return 0;
  if (o.readonly) return EROFS;
  if (node.waiting) return o.engine.defer(node.waiting);
  const outcome = node.isRegular ? copyUpDatabase(o, node) : 0;
  return outcome || copyUpAlone(o, node, keep);
}

/**
 * Before any change of the node's bytes or attributes: refuses it, waits for a copy-up that is under way, or brings the
 * node to where the change belongs. Returns 0, an errno, or DEFERRED; `keep` as for `copyUp`.
 */
export function prepareChange(o: Overlay, node: Node, keep?: number): number {
  const refused = o.refuseChange(node);
  if (refused) return refused;
  if (node.waiting) return o.engine.defer(node.waiting);
  return node.inUpper || o.isProtected(node) ? copyUp(o, node, keep) : 0;
}

function copyUpAlone(o: Overlay, node: Node, keep: number): number {
  const st = new Stat();
  let error = o.statNode(node, st);
  if (error) return error;
  const source = node.isRegular ? o.fileFd(node, false) : node.inUpper ? 0 : o.pathFd(node);
  if (source < 0) return -source;
  let target = '';
  if (node.type === S_IFLNK) {
    const read = readTarget(o, node);
    if (typeof read === 'number') return read;
    target = read.latin1Slice(0, read.length);
  }
  o.identity.actAsServer();
  const rdev = encodeDevice(st.rdevMajor, st.rdevMinor);
  const object = o.upper.make(node.type | 0o600, rdev, target);
  if (object < 0) return upperError(o, node, -object);
  if (node.isRegular) {
    const bytes = Math.min(st.size, keep);
    if (bytes > INLINE_BYTES) return copyElsewhere(o, node, object, source, bytes, st);
    error = copyData(o, object, source, bytes);
  }
  error ||= finish(o, node, object, st);
  if (error) {
    o.upper.remove(object, node.isDirectory);
    return upperError(o, node, error);
  }
  return 0;
}

/** ENOSPC and EDQUOT of the upper are news for the report: the program may not say. */
function upperError(o: Overlay, node: Node, error: number, last = o.engine.lastTry): number {
  if (!isOutOfSpace(error) || last) o.ledger.error(o.pathOf(node), `copy-up failed: ${errnoName(error)}`);
  return error;
}

/** Attributes, and then the change of layer. From here on every operation goes to the copy. */
function finish(o: Overlay, node: Node, object: number, st: Stat): number {
  const name = () => o.upper.name(object);
  // In a user namespace an owner that is not mapped there cannot be given (EINVAL), nor by a server without
  // capabilities one that is not its own user (EPERM); the copy then is the caller's.
  if (fchownat(o.upper.fd, name(), st.uid, st.gid, AT_SYMLINK_NOFOLLOW) < 0) {
    if (errno() !== EINVAL && errno() !== EPERM) return errno();
  }
  const source = magicPath(o, node, 0);
  if (typeof source === 'number') return source;
  const target = scratchCstring(`/proc/self/fd/${o.upper.fd}/${object}`, 1);
  const failed = copyXattrs(source, target, lsetxattr, node.inUpper);
  if (failed) return failed;
  // After the attributes, which a read-only mode would bar.
  if (node.type !== S_IFLNK && fchmodat(o.upper.fd, name(), st.mode & 0o7777, 0) < 0) return errno();
  const untimed = copyTimes(o, object, st);
  if (untimed) return untimed;
  if (!node.inUpper) {
    for (const { parent, name } of node.links()) noteBase(parent, name, st, node.lowerIno);
    node.origin = pathsOf(o, node);
  }
  node.upper = object;
  node.owner = o.window;
  if (!node.isDirectory) node.unseenNames = Math.max(0, st.nlink - node.linkCount);
  node.copiedBirth = st.birth === 0 ? null : st.birthWords;
  // A directory keeps the descriptor of the lower one that shows through it.
  if (!node.isDirectory) o.descriptors.release(node);
  return 0;
}

/** Every path that the node is known by. */
export function pathsOf(o: Overlay, node: Node): string[] {
  return [...node.links()].flatMap(({ parent, name }) => o.path(parent, name) ?? []);
}

function copyData(o: Overlay, object: number, source: number, bytes: number): number {
  const fd = o.upper.open(object);
  if (fd < 0) return -fd;
  const position: Position = { at: 0 };
  let error = ftruncate(fd, bytes) < 0 ? errno() : 0;
  while (!error && position.at < bytes) error = copySlice(source, fd, position, bytes);
  close(fd);
  return error;
}

export interface Position {
  at: number;
}

/** Copies the next slice of data, leaving holes as they are. Returns 0 or an errno. */
export function copySlice(source: number, target: number, position: Position, end: number): number {
  const data = lseek(source, position.at, SEEK_DATA);
  if (data < 0) {
    if (errno() === ENXIO) {
      position.at = end;
      return 0;
    }
  } else position.at = data;
  const hole = data < 0 ? end : lseek(source, position.at, SEEK_HOLE);
  const want = Math.min(SLICE_BYTES, Math.min(hole < 0 ? end : hole, end) - position.at);
  if (want <= 0) return 0;
  const n = pread(source, slice, want, position.at);
  if (n < 0) return errno();
  if (n === 0) {
    position.at = end; // it was cut short outside, meanwhile
    return 0;
  }
  for (let done = 0; done < n; ) {
    const part = pwrite(target, done === 0 ? slice : slice.subarray(done), n - done, position.at + done);
    if (part < 0) return errno();
    done += part;
  }
  position.at += n;
  return 0;
}

function copyElsewhere(
  o: Overlay,
  node: Node,
  object: number,
  source: number,
  bytes: number,
  st: Stat,
): number {
  const target = o.upper.open(object);
  const from = ownDescriptor(source);
  if (target < 0 || from < 0 || ftruncate(target, bytes) < 0) {
    const error = target < 0 ? -target : from < 0 ? -from : errno();
    if (target >= 0) close(target);
    if (from >= 0) close(from);
    o.upper.remove(object, false);
    return upperError(o, node, error);
  }
  const waiting: Deferred[] = [];
  node.waiting = waiting;
  const outcome = o.engine.defer(waiting);
  const last = o.engine.lastTry;
  const { window } = o;
  const frozen = node.upper;
  copyStrides(from, target, bytes, (copyError) => {
    close(from);
    close(target);
    node.waiting = null;
    if (o.window !== window || node.upper !== frozen) {
      // Windows opened or closed meanwhile: whoever waits is to be judged anew.
      o.upper.remove(object, false);
      o.engine.replay(waiting);
      o.dropIdle(node);
      return;
    }
    const error =
      copyError || (node.lookups > 0 || node.linkCount > 0 ? finish(o, node, object, st) : ENOENT);
    if (error) {
      o.upper.remove(object, false);
      upperError(o, node, error, last);
      if (isOutOfSpace(error) && !last) o.engine.retry(waiting);
      else o.engine.fail(waiting, error);
    } else o.engine.replay(waiting);
    o.dropIdle(node);
  });
  return outcome;
}

/**
 * Copies all data up to `end`, a stride at a time, and calls back with 0 or an errno. Looking for holes may have to wait
 * for the disk as much as reading.
 */
export function copyStrides(
  source: number,
  target: number,
  end: number,
  done: (error: number) => void,
): void {
  let at = 0;
  const offset = Buffer.alloc(8);
  const seekData = () => {
    if (at >= end) return done(0);
    slowInPool(lseek, [source, at, SEEK_DATA], (data, error) => {
      if (data < 0 && error === ENXIO) return done(0);
      // A filesystem that knows no holes: all of it is data.
      if (data < 0) return copyUntil(end);
      at = data;
      slowInPool(lseek, [source, at, SEEK_HOLE], (hole) => copyUntil(hole < 0 ? end : Math.min(hole, end)));
    });
  };
  const copyUntil = (hole: number) => {
    if (at >= hole) return seekData();
    if (lseek(target, at, SEEK_SET) < 0) return done(errno());
    offset.writeBigInt64LE(BigInt(at));
    slowInPool(sendfile, [target, source, offset, Math.min(STRIDE, hole - at)], (n, error) => {
      if (n <= 0) return done(n < 0 ? error : 0); // 0: it was cut short outside, meanwhile
      at += n;
      copyUntil(hole);
    });
  };
  seekData();
}

/** A database and its side files are one thing: half of it in each layer would be a torn one. */
const SIDES = ['', '-wal', '-shm', '-journal'];

function copyUpDatabase(o: Overlay, node: Node): number {
  const link = node.link;
  if (!link) return 0;
  const side = SIDES.find((suffix) => suffix && link.name.endsWith(suffix)) ?? '';
  const base = link.name.slice(0, link.name.length - side.length);
  for (const suffix of SIDES) {
    if (suffix === side) continue;
    const other = findChild(o, link.parent, base + suffix, o.otherStat);
    if (!(other instanceof Node) || o.owns(other) || !other.isRegular || !other.protected) continue;
    if (other.waiting) return o.engine.defer(other.waiting);
    const outcome = copyUpAlone(o, other, Number.POSITIVE_INFINITY);
    if (outcome) return outcome;
  }
  return 0;
}

/**
 * Moves a regular file of the upper, that stands under unprotected names alone, to the lower: a held file whose target turned out to be unprotected. Returns 0 or an errno; on failure it stays.
 */
export function moveToLower(o: Overlay, node: Node): number {
  const [{ parent, name }, ...others] = [...node.links()] as [Link, ...Link[]];
  const st = new Stat();
  let error = o.statNode(node, st);
  if (error) return error;
  const dir = o.dirFd(parent);
  if (dir < 0) return -dir;
  const source = o.fileFd(node, false);
  if (source < 0) return -source;
  o.identity.actAsServer();
  const fd = openat(dir, scratchCstring(name), O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0o600);
  if (fd < 0) return errno();
  const position: Position = { at: 0 };
  error = ftruncate(fd, st.size) < 0 ? errno() : 0;
  while (!error && position.at < st.size) error = copySlice(source, fd, position, st.size);
  if (!error && fchownat(fd, EMPTY, st.uid, st.gid, AT_EMPTY_PATH) < 0) error = errno();
  error ||= copyXattrs(
    scratchCstring(`/proc/self/fd/${o.upper.fd}/${node.upper}`, 0),
    scratchCstring(`/proc/self/fd/${fd}`, 1),
    setxattr,
  );
  if (!error && fchmod(fd, st.mode & 0o7777) < 0) error = errno();
  for (const other of others) error ||= linkBeside(o, dir, name, other);
  error ||= o.otherStat.of(fd);
  if (error) {
    close(fd);
    unlinkat(dir, scratchCstring(name), 0);
    return error;
  }
  o.upper.remove(node.upper, false);
  node.upper = 0;
  node.owner = 0;
  node.unseenNames = 0;
  node.copiedBirth = null;
  node.held = false;
  node.protected = false;
  o.table.identify(node, o.otherStat);
  o.table.noteBorn(node);
  o.descriptors.set(node, fd, WRITE_FD);
  o.settle(parent);
  o.written.note(o, node, 0);
  return 0;
}

function linkBeside(o: Overlay, dir: number, name: string, other: Link): number {
  const otherDir = o.dirFd(other.parent);
  if (otherDir < 0) return -otherDir;
  return linkat(dir, scratchCstring(name, 0), otherDir, scratchCstring(other.name, 1), 0) < 0 ? errno() : 0;
}
