/** Extended attributes: passed through to the layer a node is in. ACLs travel this way too. */
import type { Reply } from '../fuse/reply.ts';
import { cstring } from '../sys/bytes.ts';
import { XATTR_CREATE, XATTR_REPLACE } from '../sys/constants.ts';
import { E2BIG, EEXIST, ENODATA, EOPNOTSUPP, EPERM, ERANGE, ESTALE } from '../sys/errno.ts';
import {
  errno,
  fgetxattr,
  lgetxattr,
  llistxattr,
  lremovexattr,
  lsetxattr,
  getxattr as sysGet,
  listxattr as sysList,
  removexattr as sysRemove,
  setxattr as sysSet,
} from '../sys/libc.ts';
import { magicPath } from './attributes.ts';
import { prepareChange } from './copy-up.ts';
import { type Node, READ_FD } from './node.ts';
import type { Overlay } from './overlay.ts';

/** XATTR_SIZE_MAX and XATTR_LIST_MAX (include/uapi/linux/limits.h). */
const MAX = 65536;
const CAPABILITY = 'security.capability';
const value = Buffer.alloc(MAX);
const list = Buffer.alloc(MAX);

/**
 * In the upper a path leads to the object itself and must not be followed if that is a symlink; in the lower
 * the path is the magic link of a descriptor and must be.
 */
export function getxattr(o: Overlay, id: number, name: string, size: number, reply: Reply): number {
  const node = o.node(id);
  if (!node) return ESTALE;
  if (name === CAPABILITY && hasNoCapability(node)) return ENODATA;
  const n = readAttribute(o, node, name, Math.min(size, MAX));
  return n < 0 ? -n : replyWith(value, n, size, reply);
}

/** Without asking: nobody inside has set it, and what others do is seen. */
function hasNoCapability(node: Node): boolean {
  return node.noCapability && !node.inUpper && node.link !== null && node.link.parent.watch > 0;
}

/**
 * Puts the attribute into `value`. Returns its length, or -errno. The kernel gives a buffer of `size` to each call, so
 * that asking for no more than is wanted counts: 35 us with 64 KiB and a path, 3 us with a descriptor and none.
 */
function readAttribute(o: Overlay, node: Node, name: string, size: number): number {
  const into = size === 0 ? null : value;
  let n: number;
  if (node.fdKind >= READ_FD) n = fgetxattr(node.fd, cstring(name), into, size);
  else {
    const path = magicPath(o, node);
    if (typeof path === 'number') return -path;
    n = (node.inUpper ? lgetxattr : sysGet)(path, cstring(name), into, size);
  }
  return n < 0 ? -errno() : n;
}

export function listxattr(o: Overlay, id: number, size: number, uid: number, reply: Reply): number {
  const node = o.node(id);
  if (!node) return ESTALE;
  const path = magicPath(o, node);
  if (typeof path === 'number') return path;
  const n = (node.inUpper ? llistxattr : sysList)(path, list, MAX);
  if (n < 0) return errno();
  return replyWith(list, uid === 0 ? n : withoutTrusted(n), size, reply);
}

const TRUSTED = Buffer.from('trusted.');

/**
 * The kernel of the lower shows `trusted.*` to who has CAP_SYS_ADMIN, which this server may have and its caller not.
 * Moves the other names of the list together, and returns their length.
 */
function withoutTrusted(length: number): number {
  let kept = 0;
  for (let start = 0; start < length; ) {
    const end = list.indexOf(0, start) + 1;
    if (!list.subarray(start, end).subarray(0, TRUSTED.length).equals(TRUSTED)) {
      list.copyWithin(kept, start, end);
      kept += end - start;
    }
    start = end;
  }
  return kept;
}

/** A size of 0 asks how much there is. */
function replyWith(data: Buffer, length: number, size: number, reply: Reply): number {
  if (size === 0) {
    reply.putU32(length);
    reply.putU32(0);
    return 0;
  }
  if (length > size) return ERANGE;
  reply.putBytes(data.subarray(0, length));
  return 0;
}

export function setxattr(
  o: Overlay,
  id: number,
  name: string,
  data: Buffer,
  flags: number,
  pid: number,
): number {
  const node = o.node(id);
  if (!node) return ESTALE;
  if (data.length > MAX) return E2BIG;
  const vain = failsAnyway(o, node, name, flags);
  if (vain) return vain;
  const outcome = prepare(o, node, pid);
  if (outcome) return outcome;
  const path = magicPath(o, node);
  if (typeof path === 'number') return path;
  node.noCapability = false;
  const set = node.inUpper ? lsetxattr : sysSet;
  if (set(path, cstring(name), data, data.length, flags) < 0) return errno();
  o.settle(node);
  return 0;
}

export function removexattr(o: Overlay, id: number, name: string, pid: number): number {
  const node = o.node(id);
  if (!node) return ESTALE;
  const vain = failsAnyway(o, node, name, XATTR_REPLACE);
  if (vain) return vain;
  const outcome = prepare(o, node, pid);
  if (outcome) return outcome;
  const path = magicPath(o, node);
  if (typeof path === 'number') return path;
  const remove = node.inUpper ? lremovexattr : sysRemove;
  if (remove(path, cstring(name)) < 0) return errno();
  o.settle(node);
  return 0;
}

/** A change that cannot succeed is no reason for a copy-up: the errno that it would end with, or 0. */
function failsAnyway(o: Overlay, node: Node, name: string, flags: number): number {
  if (!o.isProtected(node) || node.inUpper || flags === 0) return 0;
  const n = readAttribute(o, node, name, 0);
  if (n >= 0) return flags & XATTR_CREATE ? EEXIST : 0;
  return flags & XATTR_REPLACE && n === -ENODATA ? ENODATA : 0;
}

function prepare(o: Overlay, node: Node, pid: number): number {
  const outcome = prepareChange(o, node);
  if (outcome) return outcome;
  o.tellOutsideChange(node);
  if (node.inUpper && !node.held) o.ledger.note(o.pathOf(node), pid, 'change');
  return 0;
}

/**
 * Copies every extended attribute from one path to another. Those that the target's filesystem or this user
 * cannot have (`trusted.*`, `security.*` without the capability, `user.*` on a tmpfs before 6.6) stay behind.
 * `set` is `lsetxattr`, or `setxattr` where `to` is the magic link of a descriptor; `direct` where `from` is none.
 * Returns 0 or an errno.
 */
export function copyXattrs(from: Buffer, to: Buffer, set: typeof lsetxattr, direct = false): number {
  const get = direct ? lgetxattr : sysGet;
  const n = (direct ? llistxattr : sysList)(from, list, MAX);
  if (n < 0) return errno() === EOPNOTSUPP ? 0 : errno();
  for (let start = 0; start < n; ) {
    const end = list.indexOf(0, start);
    const name = list.subarray(start, end + 1);
    start = end + 1;
    const size = get(from, name, value, MAX);
    if (size < 0) {
      if (errno() === ENODATA || errno() === EPERM || errno() === EOPNOTSUPP) continue;
      return errno();
    }
    if (set(to, name, value, size, 0) < 0) {
      const error = errno();
      if (error !== EOPNOTSUPP && error !== EPERM) return error;
    }
  }
  return 0;
}
