/** From the addon's callbacks to the operations, and their results back to the libfuse threads that wait. */
import { ENAMETOOLONG, SysError } from '../../sys/errno.ts';
import type { Addon, Callbacks, Operation } from './addon.ts';
import type { Operations } from './operations.ts';
import {
  atimeIn,
  isWriteback,
  mtimeIn,
  openFlagsIn,
  pathIn,
  putEntry,
  putStat,
  putStatvfs,
  putTarget,
  secondPathIn,
  xattrNameIn,
} from './record.ts';
import { attrToStat, kstatfsToStatvfs, newStat, newStatvfs } from './structs.ts';

/** One request of a libfuse thread, which waits until it is sent a result: 0, a count, or a negative errno. */
export interface Call {
  operation: Operation;
  /** Asks the handler. Returns such a result, or PUT_ASIDE; may throw. */
  attempt: () => number;
  /** After a success: what it gave, out of the reply. Returns the result. */
  take: () => number;
  send: (result: number) => void;
}

const TWO_32 = 2 ** 32;
const wide = (low: number, high: number) => low + high * TWO_32;

const known = (bytes: string | undefined): string => {
  if (bytes === undefined) throw new SysError(ENAMETOOLONG, 'reading a path');
  return bytes;
};
const path = (record: Buffer, text: string) => known(pathIn(record, text));
const secondPath = (record: Buffer, text: string) => known(secondPathIn(record, text));
const xattrName = (record: Buffer, text: string) => known(xattrNameIn(record, text));

export function callbacksOf(addon: Addon, operations: Operations, serve: (call: Call) => void): Callbacks {
  const { reply } = operations;
  const stat = newStat();
  const statvfs = newStatvfs();
  const entry = newStat();

  const nothing = () => 0;
  /** For what the addon's own answer would spoil, or adds nothing to. */
  const plain =
    <A extends unknown[]>(
      operation: Operation,
      attempt: (record: Buffer, name: string, ...args: A) => number,
      take: (record: Buffer, name: string) => number = nothing,
    ) =>
    (record: Buffer, _: number, name: string, ...args: A) => {
      serve({
        operation,
        attempt: () => attempt(record, name, ...args),
        take: () => take(record, name),
        send: (result) => addon.fuse_native_signal_init(record, result),
      });
    };
  const takeStat = (record: Buffer, name: string): number => {
    // libfuse takes one link off for its own name of a removed file, which the view does not have.
    attrToStat(reply, stat, operations.isRemoved(path(record, name)) ? 1 : 0);
    putStat(record, stat);
    return 0;
  };
  const takeStatvfs = (record: Buffer): number => {
    kstatfsToStatvfs(reply, statvfs);
    putStatvfs(record, statvfs);
    return 0;
  };
  const takeTarget = (record: Buffer): number => {
    putTarget(record, operations.data);
    return 0;
  };
  const takeCount = () => operations.data.readUInt32LE(0);
  const takeXattr = (into: Buffer) => (into.length === 0 ? takeCount() : operations.data.copy(into));

  return {
    init: (record) =>
      serve({
        operation: 'init',
        attempt: nothing,
        take: nothing,
        send: (result) => addon.fuse_native_signal_init(record, result),
      }),
    getattr: plain('getattr', (record, name) => operations.getattr(path(record, name)), takeStat),
    fgetattr: plain(
      'fgetattr',
      (record, name, handle: number) => operations.fgetattr(path(record, name), handle),
      takeStat,
    ),
    statfs: plain('statfs', (record, name) => operations.statfs(path(record, name)), takeStatvfs),
    readlink: plain('readlink', (record, name) => operations.readlink(path(record, name)), takeTarget),
    readdir: plain('readdir', (record, name) =>
      operations.readdir(path(record, name), entry, (one) => putEntry(record, one, entry)),
    ),
    truncate: plain('truncate', (record, name, low: number, high: number) =>
      operations.truncate(path(record, name), wide(low, high)),
    ),
    ftruncate: plain('ftruncate', (record, name, handle: number, low: number, high: number) =>
      operations.ftruncate(path(record, name), handle, wide(low, high)),
    ),
    utimens: plain('utimens', (record, name) =>
      operations.utimens(path(record, name), atimeIn(record), mtimeIn(record)),
    ),
    chown: plain('chown', (record, name, uid: number, gid: number) =>
      operations.chown(path(record, name), uid, gid),
    ),
    chmod: plain('chmod', (record, name, mode: number) => operations.chmod(path(record, name), mode)),
    fsync: plain('fsync', (record, name, dataOnly: number, handle: number) =>
      operations.fsync(path(record, name), handle, dataOnly !== 0),
    ),
    fsyncdir: plain('fsyncdir', (record, name, dataOnly: number) =>
      operations.fsyncdir(path(record, name), dataOnly !== 0),
    ),
    mknod: plain('mknod', (record, name, mode: number, device: number) =>
      operations.mknod(path(record, name), mode, device),
    ),
    mkdir: plain('mkdir', (record, name, mode: number) => operations.mkdir(path(record, name), mode)),
    symlink: plain('symlink', (record, target, name: string) =>
      operations.symlink(path(record, target), secondPath(record, name)),
    ),
    link: plain('link', (record, from, to: string) =>
      operations.link(path(record, from), secondPath(record, to)),
    ),
    rename: plain('rename', (record, from, to: string) =>
      operations.rename(path(record, from), secondPath(record, to)),
    ),
    unlink: plain('unlink', (record, name) => operations.unlink(path(record, name))),
    rmdir: plain('rmdir', (record, name) => operations.rmdir(path(record, name))),
    removexattr: plain('removexattr', (record, name, attribute: string) =>
      operations.removexattr(path(record, name), xattrName(record, attribute)),
    ),
    release: plain('release', (_record, _name, handle: number) => operations.release(handle)),
    open: (record, _, name) =>
      serve({
        operation: 'open',
        attempt: () => operations.open(path(record, name)),
        take: nothing,
        send: (result) => addon.fuse_native_signal_open(record, Math.min(result, 0), Math.max(result, 0)),
      }),
    read: (record, _, name, handle, data, _size, low, high) =>
      serve({
        operation: 'read',
        attempt: () =>
          operations.read(path(record, name), handle, wide(low, high), data.length, openFlagsIn(record)),
        take: () => operations.data.copy(data),
        send: (result) => addon.fuse_native_signal_read(record, result, 0, data.buffer),
      }),
    write: (record, _, name, handle, data, _size, low, high) => {
      const at = wide(low, high);
      serve({
        operation: 'write',
        attempt: () =>
          operations.write(path(record, name), handle, data, at, openFlagsIn(record), isWriteback(record)),
        take: takeCount,
        send: (result) => addon.fuse_native_signal_write(record, result, 0, data.buffer),
      });
    },
    setxattr: (record, _, name, attribute, value, _position, flags) =>
      serve({
        operation: 'setxattr',
        attempt: () => operations.setxattr(path(record, name), xattrName(record, attribute), value, flags),
        take: nothing,
        send: (result) => addon.fuse_native_signal_setxattr(record, result, value.buffer),
      }),
    getxattr: (record, _, name, attribute, value) =>
      serve({
        operation: 'getxattr',
        attempt: () => operations.getxattr(path(record, name), xattrName(record, attribute), value.length),
        take: () => takeXattr(value),
        send: (result) => addon.fuse_native_signal_getxattr(record, result, value.buffer),
      }),
    listxattr: (record, _, name, list) =>
      serve({
        operation: 'listxattr',
        attempt: () => operations.listxattr(path(record, name), list.length),
        take: () => takeXattr(list),
        send: (result) => addon.fuse_native_signal_listxattr(record, result, list.buffer),
      }),
  };
}
