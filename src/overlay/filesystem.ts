/** The merged view as the engine's handler: each request goes to the file that is named after it. */
import type { Handler } from '../fuse/handler.ts';
import { getattr, readlink, setattr, statfs } from './attributes.ts';
import { copyFileRange, fallocate, fsync, lseek, write } from './content.ts';
import { mkdir, mknod, symlink, tmpfile } from './create.ts';
import { link } from './link.ts';
import { readdir } from './listing.ts';
import { forget, lookup } from './lookup.ts';
import type { Overlay } from './overlay.ts';
import { read } from './read.ts';
import { rmdir, unlink } from './remove.ts';
import { rename } from './rename.ts';
import { getxattr, listxattr, removexattr, setxattr } from './xattrs.ts';

export function handlerOf(o: Overlay): Handler {
  return {
    lookup: (parent, name, reply) => lookup(o, parent, name, reply),
    forget: (node, count) => forget(o, node, count),
    getattr: (node, reply) => getattr(o, node, reply, false),
    statx: (node, reply) => getattr(o, node, reply, true),
    setattr: (node, args, caller, reply) => setattr(o, node, args, caller, reply),
    readlink: (node, reply) => readlink(o, node, reply),
    symlink: (parent, name, target, caller, reply) => symlink(o, parent, name, target, caller, reply),
    mknod: (parent, name, mode, rdev, caller, reply) => mknod(o, parent, name, mode, rdev, caller, reply),
    mkdir: (parent, name, mode, caller, reply) => mkdir(o, parent, name, mode, caller, reply),
    tmpfile: (parent, mode, caller, reply) => tmpfile(o, parent, mode, caller, reply),
    unlink: (parent, name, caller) => unlink(o, parent, name, caller),
    rmdir: (parent, name, caller) => rmdir(o, parent, name, caller),
    rename: (from, name, to, newName, flags, caller) => rename(o, from, name, to, newName, flags, caller),
    link: (node, parent, name, caller, reply) => link(o, node, parent, name, caller, reply),
    read: (node, offset, size, openFlags, caller, reply) =>
      read(o, node, offset, size, openFlags, caller, reply),
    write: (node, offset, bytes, start, size, writeFlags, openFlags, caller, reply) =>
      write(o, node, offset, bytes, start, size, writeFlags, openFlags, caller, reply),
    lseek: (node, offset, whence, reply) => lseek(o, node, offset, whence, reply),
    fallocate: (node, offset, length, mode, caller) => fallocate(o, node, offset, length, mode, caller),
    copyFileRange: (source, sourceOffset, target, targetOffset, length, caller, reply) =>
      copyFileRange(o, source, sourceOffset, target, targetOffset, length, caller, reply),
    fsync: (node, dataOnly) => fsync(o, node, dataOnly),
    statfs: (node, reply) => statfs(o, node, reply),
    setxattr: (node, name, value, flags, caller) => setxattr(o, node, name, value, flags, caller.pid),
    getxattr: (node, name, size, reply) => getxattr(o, node, name, size, reply),
    listxattr: (node, size, caller, reply) => listxattr(o, node, size, caller.uid, reply),
    removexattr: (node, name, caller) => removexattr(o, node, name, caller.pid),
    readdir: (node, cookie, size, plus, reply) => readdir(o, node, cookie, size, plus, reply),
  };
}
