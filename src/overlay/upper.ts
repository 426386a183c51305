/**
 * The upper: one window's RAM. A tmpfs that stands in no mount table and has no path; it is reached by the
 * descriptor of its root alone, and is gone when that is closed.
 *
 * It is a flat store: each object is one entry of the root directory, named by a number. Names, directories and
 * whiteouts are nodes in memory (node.ts); the tmpfs holds contents and attributes, with the kernel's own
 * semantics for modes, times, xattrs and ACLs.
 */

import { cstring, scratchCstring } from '../sys/bytes.ts';
import {
  AT_REMOVEDIR,
  FSCONFIG_CMD_CREATE,
  FSCONFIG_SET_FLAG,
  FSCONFIG_SET_STRING,
  FSMOUNT_CLOEXEC,
  FSOPEN_CLOEXEC,
  O_CLOEXEC,
  O_CREAT,
  O_EXCL,
  O_NOFOLLOW,
  O_RDWR,
  S_IFDIR,
  S_IFLNK,
  S_IFMT,
  S_IFREG,
} from '../sys/constants.ts';
import { EEXIST, SysError } from '../sys/errno.ts';
import {
  close,
  errno,
  fsconfig,
  fsmount,
  fsopen,
  fstatfs,
  mkdirat,
  mknodat,
  openat,
  renameat2,
  setxattr,
  symlinkat,
  unlinkat,
} from '../sys/libc.ts';

/** The size does not count inodes, about 1 KiB of kernel memory each, so they are limited along with it. */
const BYTES_PER_INODE = 1024;

/** The xattr that holds a directory's default ACL. */
export const DEFAULT_ACL = cstring('system.posix_acl_default');

export interface UpperFs {
  fd: number;
  /** Whether the kernel promised to keep it out of swap: root on 6.4 and later; not in a user namespace. */
  noswap: boolean;
}

/** Makes the tmpfs. Throws SysError where this process may not (no CAP_SYS_ADMIN in its user namespace). */
export function makeUpper(sizeBytes: number): UpperFs {
  const withNoswap = tryMakeUpper(sizeBytes, true);
  return withNoswap ?? tryMakeUpper(sizeBytes, false)!;
}

function tryMakeUpper(sizeBytes: number, noswap: boolean): UpperFs | undefined {
  const context = fsopen(cstring('tmpfs'), FSOPEN_CLOEXEC);
  if (context < 0) throw new SysError(errno(), 'making the upper (fsopen tmpfs)');
  try {
    const set = (key: string, value: string) =>
      fsconfig(context, FSCONFIG_SET_STRING, cstring(key), cstring(value), 0);
    if (set('size', String(sizeBytes)) < 0)
      throw new SysError(errno(), `making the upper (size ${sizeBytes})`);
    if (set('mode', '0700') < 0) throw new SysError(errno(), 'making the upper (mode)');
    const inodes = Math.max(4096, Math.floor(sizeBytes / BYTES_PER_INODE));
    if (set('nr_inodes', String(inodes)) < 0) throw new SysError(errno(), 'making the upper (nr_inodes)');
    if (noswap && fsconfig(context, FSCONFIG_SET_FLAG, cstring('noswap'), null, 0) < 0) return undefined;
    if (fsconfig(context, FSCONFIG_CMD_CREATE, null, null, 0) < 0) {
      if (noswap) return undefined;
      throw new SysError(errno(), 'making the upper (fsconfig create)');
    }
    const tree = fsmount(context, FSMOUNT_CLOEXEC, 0);
    if (tree < 0) throw new SysError(errno(), 'making the upper (fsmount)');
    // fsmount's own descriptor is what keeps the detached mount alive: closing it dissolves the mount.
    return { fd: tree, noswap };
  } finally {
    close(context);
  }
}

export class Upper {
  readonly fd: number;
  readonly noswap: boolean;
  private next = 1;
  private readonly statfsBuffer = Buffer.alloc(120);

  constructor(fs: UpperFs) {
    this.fd = fs.fd;
    this.noswap = fs.noswap;
  }

  /** The object's name in the store, as a C string that the next call with the same slot overwrites. */
  name(object: number, slot: 0 | 1 = 0): Buffer {
    return scratchCstring(String(object), slot);
  }

  /** Opens a regular file for reading and writing; returns a descriptor or -errno. */
  open(object: number): number {
    const fd = openat(this.fd, this.name(object), O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
    return fd < 0 ? -errno() : fd;
  }

  /**
   * Makes an object of the mode's type; a symlink with its target. Returns its number or -errno. The owner is
   * the thread's fsuid and fsgid, and the thread's umask applies.
   */
  make(mode: number, rdev: number, target = ''): number {
    const object = this.next++;
    const error = this.makeAs(this.name(object), mode, rdev, target);
    return error ? -error : object;
  }

  /**
   * As `make`, with what a directory of this default ACL (the xattr's value) hands down to what is made in it: made in
   * such a one, and moved into the store from there. The umask does not apply then.
   */
  makeUnder(acl: Buffer, mode: number, rdev: number, target = ''): number {
    const nest = this.next++;
    const object = this.next++;
    if (mkdirat(this.fd, this.name(nest), 0o700) < 0) return -errno();
    const path = cstring(`/proc/self/fd/${this.fd}/${nest}`);
    const nested = cstring(`${nest}/${object}`);
    let error = setxattr(path, DEFAULT_ACL, acl, acl.length, 0) < 0 ? errno() : 0;
    error ||= this.makeAs(nested, mode, rdev, target);
    if (!error && renameat2(this.fd, nested, this.fd, this.name(object), 0) < 0) error = errno();
    unlinkat(this.fd, this.name(nest), AT_REMOVEDIR);
    return error ? -error : object;
  }

  private makeAs(name: Buffer, mode: number, rdev: number, target: string): number {
    let result: number;
    switch (mode & S_IFMT) {
      case S_IFREG: {
        result = openat(this.fd, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode & 0o7777);
        if (result >= 0) close(result);
        break;
      }
      case S_IFDIR:
        result = mkdirat(this.fd, name, mode & 0o7777);
        break;
      case S_IFLNK:
        result = symlinkat(cstring(target), this.fd, name);
        break;
      default:
        result = mknodat(this.fd, name, mode, rdev);
    }
    return result < 0 ? errno() : 0;
  }

  remove(object: number, isDirectory: boolean): void {
    if (unlinkat(this.fd, this.name(object), isDirectory ? AT_REMOVEDIR : 0) < 0) {
      const error = errno();
      if (error !== EEXIST) throw new SysError(error, 'removing an object of the upper');
    }
  }

  /** Bytes used and the limit. */
  usage(): { used: number; limit: number } {
    if (fstatfs(this.fd, this.statfsBuffer) < 0) throw new SysError(errno(), 'statfs of the upper');
    const block = Number(this.statfsBuffer.readBigInt64LE(8));
    const blocks = Number(this.statfsBuffer.readBigInt64LE(16));
    const free = Number(this.statfsBuffer.readBigInt64LE(24));
    return { used: (blocks - free) * block, limit: blocks * block };
  }

  close(): void {
    close(this.fd);
  }
}
