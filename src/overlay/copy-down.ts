/**
 * From the upper to the lower: a file, directory, symlink or special file is made under a name in a lower directory, with
 * data, owner, mode, xattrs and times, and is on the disk when it is done. The upper's own stays as it is.
 */
import { encodeDevice } from '../fuse/reply.ts';
import { cstring, scratchCstring } from '../sys/bytes.ts';
import {
  AT_FDCWD,
  AT_SYMLINK_NOFOLLOW,
  O_CLOEXEC,
  O_CREAT,
  O_DIRECTORY,
  O_EXCL,
  O_NOFOLLOW,
  O_RDONLY,
  O_RDWR,
  S_IFLNK,
} from '../sys/constants.ts';
import { EINVAL, EPERM } from '../sys/errno.ts';
import {
  close,
  errno,
  fchmodat,
  fchownat,
  fsync,
  ftruncate,
  mkdirat,
  mknodat,
  openat,
  removexattr,
  setxattr,
  symlinkat,
  utimensat,
} from '../sys/libc.ts';
import { slowly } from '../sys/pool.ts';
import { Stat } from '../sys/stat.ts';
import { timesOf } from './attributes.ts';
import { upperTarget } from './changes.ts';
import { copySlice, copyStrides, INLINE_BYTES, type Position } from './copy-up.ts';
import { ownDescriptor } from './elsewhere.ts';
import type { Node } from './node.ts';
import type { Overlay } from './overlay.ts';
import { copyXattrs } from './xattrs.ts';

const ACLS = [cstring('system.posix_acl_access'), cstring('system.posix_acl_default')];

/** A regular file that has its data, and not yet its attributes. */
export interface Copied {
  fd: number;
  /** What the upper's own was like when it was copied. */
  st: Stat;
}

/**
 * Makes the file, and copies the data of the node as it is now: nobody may change it until then. Resolves to what
 * `finishFile` takes, or to -errno with nothing left behind but perhaps the name.
 */
export async function copyFileDown(
  o: Overlay,
  node: Node,
  dir: number,
  name: string,
): Promise<Copied | number> {
  const st = new Stat();
  const unread = st.at(o.upper.fd, o.upper.name(node.upper));
  if (unread) return -unread;
  const open = o.fileFd(node, false);
  if (open < 0) return open;
  o.identity.actAsServer();
  const flags = O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC;
  const fd = openat(dir, scratchCstring(name), flags, 0o600);
  if (fd < 0) return -errno();
  let error = ftruncate(fd, st.size) < 0 ? errno() : 0;
  if (!error && st.size <= INLINE_BYTES) {
    const position: Position = { at: 0 };
    while (!error && position.at < st.size) error = copySlice(open, fd, position, st.size);
  } else if (!error) {
    const source = ownDescriptor(open);
    if (source < 0) error = -source;
    else {
      error = await new Promise((resolve) => copyStrides(source, fd, st.size, resolve));
      close(source);
    }
  }
  if (!error) return { fd, st };
  close(fd);
  return -error;
}

/** Attributes, and then to the disk; closes the file. Returns 0 or an errno. */
export async function finishFile(o: Overlay, node: Node, { fd, st }: Copied): Promise<number> {
  const error = giveAttributes(o, node, fd, st) || (await synced(fd));
  close(fd);
  return error;
}

async function synced(fd: number): Promise<number> {
  const { result, error } = await slowly(fsync, [fd]);
  return result < 0 ? error : 0;
}

/** Makes anything but a regular file; a directory without its attributes, which what is put in it would change. */
export function makeDown(o: Overlay, node: Node, dir: number, name: string): number {
  const st = new Stat();
  let error = st.at(o.upper.fd, o.upper.name(node.upper));
  if (error) return error;
  o.identity.actAsServer();
  const at = cstring(name);
  if (node.isDirectory) return mkdirat(dir, at, 0o700) < 0 ? errno() : 0;
  if (node.type === S_IFLNK) {
    const target = upperTarget(o, node);
    if (typeof target === 'number') return -target;
    if (symlinkat(cstring(target), dir, at) < 0) return errno();
  } else if (mknodat(dir, at, st.mode, encodeDevice(st.rdevMajor, st.rdevMinor)) < 0) return errno();
  error = giveOwner(dir, at, st);
  if (!error && node.type !== S_IFLNK && fchmodat(dir, at, st.mode & 0o7777, 0) < 0) error = errno();
  if (!error && utimensat(dir, at, timesOf(st), AT_SYMLINK_NOFOLLOW) < 0) error = errno();
  return error;
}

/** Gives a directory of the lower the attributes of the node, and to the disk. Returns 0 or an errno. */
export async function finishDirectory(o: Overlay, node: Node, dir: number, name: string): Promise<number> {
  const st = new Stat();
  let error = st.at(o.upper.fd, o.upper.name(node.upper));
  if (error) return error;
  o.identity.actAsServer();
  const fd = openat(dir, scratchCstring(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
  if (fd < 0) return errno();
  error = giveAttributes(o, node, fd, st) || (await synced(fd));
  close(fd);
  return error;
}

function giveAttributes(o: Overlay, node: Node, fd: number, st: Stat): number {
  o.identity.actAsServer();
  const path = cstring(`/proc/self/fd/${fd}`);
  const unowned = giveOwner(AT_FDCWD, path, st, 0);
  if (unowned) return unowned;
  // What the directory in the lower handed down to it.
  for (const acl of ACLS) removexattr(path, acl);
  const error = copyXattrs(scratchCstring(`/proc/self/fd/${o.upper.fd}/${node.upper}`, 1), path, setxattr);
  if (error) return error;
  if (fchmodat(AT_FDCWD, path, st.mode & 0o7777, 0) < 0) return errno();
  return utimensat(AT_FDCWD, path, timesOf(st), 0) < 0 ? errno() : 0;
}

/** An owner that this server cannot give stays the server's own, as when an editor of this user saves the file. */
function giveOwner(dir: number, name: Buffer, st: Stat, flags = AT_SYMLINK_NOFOLLOW): number {
  if (fchownat(dir, name, st.uid, st.gid, flags) === 0) return 0;
  const error = errno();
  return error === EPERM || error === EINVAL ? 0 : error;
}
