/** From a decoded request to the handler's method: the one place that knows where each argument stands. */
import { EINVAL, ENOSYS } from '../sys/errno.ts';
import { FSYNC_FDATASYNC, Op } from './abi.ts';
import { type Caller, emptySetAttr, type Handler } from './handler.ts';
import type { Reply } from './reply.ts';
import type { Request } from './request.ts';

const setAttr = emptySetAttr();

/** Bytes of fixed arguments that must stand in front of names and data. */
const FIXED: Partial<Record<number, number>> = {
  [Op.GETATTR]: 16,
  [Op.SETATTR]: 88,
  [Op.MKNOD]: 16,
  [Op.MKDIR]: 8,
  [Op.RENAME]: 8,
  [Op.RENAME2]: 16,
  [Op.LINK]: 8,
  [Op.READ]: 40,
  [Op.WRITE]: 40,
  [Op.FSYNC]: 16,
  [Op.FSYNCDIR]: 16,
  [Op.SETXATTR]: 8,
  [Op.GETXATTR]: 8,
  [Op.LISTXATTR]: 8,
  [Op.READDIR]: 40,
  [Op.READDIRPLUS]: 40,
  [Op.CREATE]: 16,
  [Op.TMPFILE]: 16,
  [Op.FALLOCATE]: 32,
  [Op.LSEEK]: 24,
  [Op.COPY_FILE_RANGE]: 56,
  [Op.COPY_FILE_RANGE_64]: 56,
  [Op.STATX]: 24,
};

/**
 * Calls the handler for the request and returns its outcome: 0, an errno or DEFERRED. INIT,
 * FORGET, BATCH_FORGET, INTERRUPT and DESTROY are the engine's own and do not come here. A request that is too
 * short, or whose name has no end, is EINVAL; one that this engine does not implement is ENOSYS.
 * `extendedSetxattr`: SETXATTR's arguments are 16 bytes (7.33), not 8.
 */
export function dispatch(
  request: Request,
  caller: Caller,
  reply: Reply,
  handler: Handler,
  extendedSetxattr: boolean,
): number {
  const opcode = request.opcode;
  if (request.argLength < (FIXED[opcode] ?? 0)) return EINVAL;
  const node = request.nodeid;
  caller.uid = request.uid;
  caller.gid = request.gid;
  caller.pid = request.pid;
  caller.umask = 0;
  switch (opcode) {
    case Op.LOOKUP: {
      const name = request.cstring(0);
      return name ? handler.lookup(node, name, reply) : EINVAL;
    }
    case Op.GETATTR:
      return handler.getattr(node, reply);
    case Op.STATX:
      return handler.statx(node, reply);
    case Op.SETATTR:
      setAttr.valid = request.u32(0);
      setAttr.size = request.u64(4);
      setAttr.atime = request.i64(8);
      setAttr.mtime = request.i64(10);
      setAttr.atimeNsec = request.u32(14);
      setAttr.mtimeNsec = request.u32(15);
      setAttr.mode = request.u32(17);
      setAttr.uid = request.u32(19);
      setAttr.gid = request.u32(20);
      return handler.setattr(node, setAttr, caller, reply);
    case Op.READLINK:
      return handler.readlink(node, reply);
    case Op.SYMLINK: {
      const name = request.cstring(0);
      const target = name ? request.cstring(name.length + 1) : undefined;
      return name && target !== undefined ? handler.symlink(node, name, target, caller, reply) : EINVAL;
    }
    case Op.MKNOD: {
      const name = request.cstring(16);
      caller.umask = request.u32(2);
      return name ? handler.mknod(node, name, request.u32(0), request.u32(1), caller, reply) : EINVAL;
    }
    case Op.MKDIR: {
      const name = request.cstring(8);
      caller.umask = request.u32(1);
      return name ? handler.mkdir(node, name, request.u32(0), caller, reply) : EINVAL;
    }
    case Op.TMPFILE:
      caller.umask = request.u32(2);
      return handler.tmpfile(node, request.u32(1), caller, reply);
    case Op.UNLINK: {
      const name = request.cstring(0);
      return name ? handler.unlink(node, name, caller) : EINVAL;
    }
    case Op.RMDIR: {
      const name = request.cstring(0);
      return name ? handler.rmdir(node, name, caller) : EINVAL;
    }
    case Op.RENAME:
      return rename(request, 8, 0, caller, handler);
    case Op.RENAME2:
      return rename(request, 16, request.u32(2), caller, handler);
    case Op.LINK: {
      const name = request.cstring(8);
      return name ? handler.link(request.u64(0), node, name, caller, reply) : EINVAL;
    }
    case Op.READ:
      return handler.read(node, request.u64(2), request.u32(4), request.u32(8), caller, reply);
    case Op.WRITE: {
      const size = request.u32(4);
      if (request.argLength < 40 + size) return EINVAL;
      return handler.write(
        node,
        request.u64(2),
        request.bytes,
        request.dataStart(40),
        size,
        request.u32(5),
        request.u32(8),
        caller,
        reply,
      );
    }
    case Op.LSEEK:
      return handler.lseek(node, request.u64(2), request.u32(4), reply);
    case Op.FALLOCATE:
      return handler.fallocate(node, request.u64(2), request.u64(4), request.u32(6), caller);
    case Op.COPY_FILE_RANGE:
    case Op.COPY_FILE_RANGE_64:
      return copyFileRange(request, caller, reply, handler);
    case Op.FSYNC:
    case Op.FSYNCDIR:
      return handler.fsync(node, (request.u32(2) & FSYNC_FDATASYNC) !== 0);
    case Op.STATFS:
      return handler.statfs(node, reply);
    case Op.SETXATTR: {
      const fixed = extendedSetxattr ? 16 : 8;
      const name = request.cstring(fixed);
      const size = request.u32(0);
      if (!name || request.argLength < fixed + name.length + 1 + size) return EINVAL;
      return handler.setxattr(
        node,
        name,
        request.data(fixed + name.length + 1, size),
        request.u32(1),
        caller,
      );
    }
    case Op.GETXATTR: {
      const name = request.cstring(8);
      return name ? handler.getxattr(node, name, request.u32(0), reply) : EINVAL;
    }
    case Op.LISTXATTR:
      return handler.listxattr(node, request.u32(0), caller, reply);
    case Op.REMOVEXATTR: {
      const name = request.cstring(0);
      return name ? handler.removexattr(node, name, caller) : EINVAL;
    }
    case Op.READDIR:
      return handler.readdir(node, request.u64(2), request.u32(4), false, reply);
    case Op.READDIRPLUS:
      return handler.readdir(node, request.u64(2), request.u32(4), true, reply);
    case Op.RELEASE:
    case Op.RELEASEDIR:
      return 0;
    default:
      // OPEN, OPENDIR, CREATE and FLUSH are among these on purpose: ENOSYS once, and the kernel does them
      // itself from then on (DESIGN 6.2, 6.4).
      return ENOSYS;
  }
}

function rename(request: Request, fixed: number, flags: number, caller: Caller, handler: Handler): number {
  const name = request.cstring(fixed);
  const newName = name ? request.cstring(fixed + name.length + 1) : undefined;
  if (!name || !newName) return EINVAL;
  return handler.rename(request.nodeid, name, request.u64(0), newName, flags, caller);
}

/** COPY_FILE_RANGE replies with a 32-bit count, its 64-bit sibling (7.45) with a 64-bit one. */
function copyFileRange(request: Request, caller: Caller, reply: Reply, handler: Handler): number {
  const limit = request.opcode === Op.COPY_FILE_RANGE ? 0x7ffff000 : Number.MAX_SAFE_INTEGER;
  const length = Math.min(request.u64(10), limit);
  return handler.copyFileRange(
    request.nodeid,
    request.u64(2),
    request.u64(4),
    request.u64(8),
    length,
    caller,
    reply,
  );
}
