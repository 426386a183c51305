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

/**
 * Runs `attempt`, again if it is put aside, and gives its result to `send`. Where nothing is served any more, or
 * `attempt` throws, it gives an errno.
 */
export type Serve = (operation: Operation, attempt: () => number, send: (result: number) => void) => void;

const TWO_32 = 2 ** 32;
const wide = (low: number, high: number) => low + high * TWO_32;

const known = (bytes: string | undefined): string => {
  if (bytes === undefined) throw new SysError(ENAMETOOLONG, 'reading a path');
  return bytes;
};
const path = (record: Buffer, text: string) => known(pathIn(record, text));
const secondPath = (record: Buffer, text: string) => known(secondPathIn(record, text));
const xattrName = (record: Buffer, text: string) => known(xattrNameIn(record, text));

export function callbacksOf(addon: Addon, operations: Operations, serve: Serve): Callbacks {
  const { reply } = operations;
  const stat = newStat();
  const statvfs = newStatvfs();
  const entry = newStat();

  /** For what the addon's own answer would spoil, or adds nothing to. */
  const plain =
    <A extends unknown[]>(operation: Operation, attempt: (record: Buffer, ...args: A) => number) =>
    (record: Buffer, _: number, ...args: A) => {
      serve(
        operation,
        () => attempt(record, ...args),
        (result) => addon.fuse_native_signal_init(record, result),
      );
    };
  const withStat = (record: Buffer, result: number): number => {
    if (result !== 0) return result;
    attrToStat(reply, stat);
    putStat(record, stat);
    return 0;
  };

  return {
    init: plain('init', () => 0),
    getattr: plain('getattr', (record, name) => withStat(record, operations.getattr(path(record, name)))),
    fgetattr: plain('fgetattr', (record, name, handle: number) =>
      withStat(record, operations.fgetattr(path(record, name), handle)),
    ),
    statfs: plain('statfs', (record, name) => {
      const result = operations.statfs(path(record, name));
      if (result !== 0) return result;
      kstatfsToStatvfs(reply, statvfs);
      putStatvfs(record, statvfs);
      return 0;
    }),
    readlink: plain('readlink', (record, name) => {
      const result = operations.readlink(path(record, name));
      if (result === 0) putTarget(record, operations.data);
      return result;
    }),
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
      serve(
        'open',
        () => operations.open(path(record, name)),
        (result) => addon.fuse_native_signal_open(record, Math.min(result, 0), Math.max(result, 0)),
      ),
    read: (record, _, name, handle, data, _size, low, high) =>
      serve(
        'read',
        () => operations.read(path(record, name), handle, data, wide(low, high)),
        (result) => addon.fuse_native_signal_read(record, result, 0, data.buffer),
      ),
    write: (record, _, name, handle, data, _size, low, high) => {
      const attempt = () =>
        operations.write(
          path(record, name),
          handle,
          data,
          wide(low, high),
          openFlagsIn(record),
          isWriteback(record),
        );
      serve('write', attempt, (result) => addon.fuse_native_signal_write(record, result, 0, data.buffer));
    },
    setxattr: (record, _, name, attribute, value, _position, flags) => {
      const attempt = () =>
        operations.setxattr(path(record, name), xattrName(record, attribute), value, flags);
      serve('setxattr', attempt, (result) => addon.fuse_native_signal_setxattr(record, result, value.buffer));
    },
    getxattr: (record, _, name, attribute, value) => {
      const attempt = () => operations.getxattr(path(record, name), xattrName(record, attribute), value);
      serve('getxattr', attempt, (result) => addon.fuse_native_signal_getxattr(record, result, value.buffer));
    },
    listxattr: (record, _, name, list) =>
      serve(
        'listxattr',
        () => operations.listxattr(path(record, name), list),
        (result) => addon.fuse_native_signal_listxattr(record, result, list.buffer),
      ),
  };
}
