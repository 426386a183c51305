/**
 * From libfuse's callbacks, which name files by path, to the handler's methods, which know them by node id. State: the
 * open files, by the number that libfuse was given for each.
 *
 * What is asked of an open file goes to the node that was opened, whatever its path leads to by now. A file that is
 * removed while open, libfuse renames to a name of its own and removes at its last close; here it is unlinked at once,
 * and only known by that name, so that nothing hidden comes to be in either layer.
 */
import { bytesOf } from '../../sys/bytes.ts';
import { EILSEQ } from '../../sys/errno.ts';
import { Fattr, MAX_IO, OUT_HEADER_SIZE, WRITE_CACHE } from '../abi.ts';
import { type Caller, DEFERRED, type Handler, type SetAttr } from '../handler.ts';
import { Reply } from '../reply.ts';
import type { Addon, Callbacks, Operation, PlainOperation } from './addon.ts';
import { emptyStatfs, entriesOf, newStat, putStat, statfsWords } from './decode.ts';
import { entryId, Paths } from './paths.ts';
import { atimeOf, isWriteback, mtimeOf, openFlagsOf } from './record.ts';

/** The result of an attempt that the handler put aside: to be made again from its beginning. */
export const PUT_ASIDE = Number.NEGATIVE_INFINITY;

/**
 * Runs `attempt`, which returns 0, a count, a negative errno or PUT_ASIDE, and gives its result, once it has one, to
 * `send`. Where nothing is served any more, or `attempt` throws, it gives an errno.
 */
export type Serve = (operation: Operation, attempt: () => number, send: (result: number) => void) => void;

const TWO_32 = 2 ** 32;
const UNCHANGED = 0xffffffff;
const LAST_HANDLE = 0x7fffffff;

interface OpenFile {
  node: number;
}

export function callbacksOf(
  addon: Addon,
  handler: Handler,
  serve: Serve,
): { callbacks: Callbacks; trim(): void } {
  const paths = new Paths(handler);
  const reply = new Reply();
  const files = new Map<number, OpenFile>();
  let lastHandle = 0;
  // libfuse knows who asks, and the addon does not pass it on: everything is done as the server's own user.
  const caller: Caller = { uid: process.geteuid!(), gid: process.getegid!(), pid: 0, umask: 0 };
  const change: SetAttr = {
    valid: 0,
    size: 0,
    mode: 0,
    uid: 0,
    gid: 0,
    atime: 0,
    atimeNsec: 0,
    mtime: 0,
    mtimeNsec: 0,
  };

  const result = (outcome: number): number => (outcome === DEFERRED ? PUT_ASIDE : 0 - outcome);
  /** Does something with the node of a path, or with that of an open file. */
  const with_ = (node: number, action: (node: number) => number): number => {
    if (node < 0) return node;
    reply.begin();
    return result(action(node));
  };
  const at = (path: string, action: (node: number) => number) => with_(paths.node(path), action);
  const of = (handle: number, path: string, action: (node: number) => number) =>
    with_(files.get(handle)?.node ?? paths.node(path), action);
  /** Makes something under a path; the handler answers with an entry. */
  const make = (path: string, action: (parent: number, name: string) => number): number => {
    const place = paths.place(path);
    if (typeof place === 'number') return place;
    reply.begin();
    const outcome = result(action(place.parent, place.name));
    if (outcome === 0) paths.keep(entryId(reply));
    return outcome;
  };
  const remove = (path: string, action: (parent: number, name: string) => number): number => {
    const node = paths.node(path);
    if (node < 0) return node;
    const place = paths.place(path);
    if (typeof place === 'number') return place;
    const outcome = result(action(place.parent, place.name));
    if (outcome === 0) paths.release(node);
    return outcome;
  };
  const setattr = (node: number, valid: number) => {
    change.valid = valid;
    return handler.setattr(node, change, caller, reply);
  };
  const truncate = (size: number) => (node: number) => {
    change.size = size;
    return setattr(node, Fattr.SIZE);
  };
  const stat = newStat();
  const attributes = (node: number) => {
    const error = handler.getattr(node, reply);
    if (!error) putStat(reply, stat);
    return error;
  };
  const data = () => reply.bytes.subarray(OUT_HEADER_SIZE, OUT_HEADER_SIZE + reply.size);
  /** What a getxattr or listxattr gives: into the caller's memory, of which none asks for the size alone. */
  const give = (node: number, into: Buffer, action: (node: number, size: number) => number): number => {
    const outcome = with_(node, (id) => action(id, into.length));
    if (outcome < 0) return outcome;
    return into.length === 0 ? data().readUInt32LE(0) : data().copy(into);
  };

  const rename = (from: string, to: string): number => {
    const source = paths.node(from);
    if (source < 0) return source;
    const old = paths.place(from);
    const place = paths.place(to);
    if (typeof old === 'number') return old;
    if (typeof place === 'number') return place;
    if (old.parent === place.parent && paths.isHiding(source, place.name)) {
      const outcome = result(handler.unlink(old.parent, old.name, caller));
      if (outcome === 0) paths.hide(place.name, source);
      return outcome;
    }
    const replaced = paths.child(place.parent, place.name);
    const outcome = result(handler.rename(old.parent, old.name, place.parent, place.name, 0, caller));
    if (outcome === 0 && replaced >= 0 && replaced !== source) paths.release(replaced);
    return outcome;
  };

  let names: string[] = [];
  let stats: Uint32Array[] = [];
  const list = (node: number): number => {
    names = [];
    stats = [];
    const seen = new Set<string>();
    for (let cookie = 0; ; ) {
      reply.begin();
      const error = handler.readdir(node, cookie, MAX_IO, false, reply);
      if (error) return error;
      if (reply.size === 0) return 0;
      for (const entry of entriesOf(reply)) {
        cookie = entry.cookie;
        // Names that are not UTF-8 show, so that nobody takes the directory for empty, and lead to EILSEQ.
        const shown = Buffer.from(entry.name, 'latin1').toString('utf8');
        if (seen.has(shown)) continue;
        seen.add(shown);
        names.push(shown);
        stats.push(entry.stat);
      }
    }
  };

  const target = { text: '' };
  const readlink = (node: number): number => {
    const error = handler.readlink(node, reply);
    if (error) return error;
    target.text = data().toString('utf8');
    return Buffer.from(target.text, 'utf8').equals(data()) ? 0 : EILSEQ;
  };

  const open = (path: string): number =>
    at(path, (node) => {
      do lastHandle = lastHandle === LAST_HANDLE ? 1 : lastHandle + 1;
      while (files.has(lastHandle));
      files.set(lastHandle, { node });
      paths.open(node);
      return 0;
    });
  const release = (handle: number): number => {
    const file = files.get(handle);
    if (!file) return 0;
    files.delete(handle);
    paths.close(file.node);
    return 0;
  };

  const offset = (low: number, high: number) => low + high * TWO_32;
  const write = (record: Buffer, node: number, bytes: Buffer, size: number, position: number): number => {
    const flags = isWriteback(record) ? WRITE_CACHE : 0;
    return handler.write(node, position, bytes, 0, size, flags, openFlagsOf(record), caller, reply);
  };

  /** For what is answered by a result alone. */
  const plain =
    <A extends unknown[]>(operation: PlainOperation, attempt: (...args: A) => number) =>
    (record: Buffer, _operation: number, ...args: A) => {
      serve(
        operation,
        () => attempt(...args),
        (r) => addon[`fuse_native_signal_${operation}`](record, r),
      );
    };

  const callbacks: Callbacks = {
    init: plain('init', () => 0),
    statfs: (record, _, path) => {
      let words = emptyStatfs();
      const attempt = () =>
        at(path, (node) => {
          const error = handler.statfs(node, reply);
          if (!error) words = statfsWords(reply);
          return error;
        });
      serve('statfs', attempt, (r) => addon.fuse_native_signal_statfs(record, r, words));
    },
    getattr: (record, _, path) =>
      serve(
        'getattr',
        () => at(path, attributes),
        (r) => addon.fuse_native_signal_getattr(record, r, stat),
      ),
    fgetattr: (record, _, path, handle) =>
      serve(
        'fgetattr',
        () => of(handle, path, attributes),
        (r) => addon.fuse_native_signal_fgetattr(record, r, stat),
      ),
    readdir: (record, _, path) =>
      serve(
        'readdir',
        () => at(path, list),
        (r) => addon.fuse_native_signal_readdir(record, r, r < 0 ? [] : names, r < 0 ? [] : stats),
      ),
    readlink: (record, _, path) =>
      serve(
        'readlink',
        () => at(path, readlink),
        (r) => addon.fuse_native_signal_readlink(record, r, r < 0 ? '' : target.text),
      ),
    open: (record, _, path) =>
      serve(
        'open',
        () => open(path),
        (r) => addon.fuse_native_signal_open(record, r, r < 0 ? 0 : lastHandle),
      ),
    read: (record, _, path, handle, bytes, size, low, high) => {
      const attempt = () => {
        const outcome = of(handle, path, (node) => handler.read(node, offset(low, high), size, reply));
        return outcome < 0 ? outcome : data().copy(bytes);
      };
      serve('read', attempt, (r) => addon.fuse_native_signal_read(record, r, 0, bytes.buffer));
    },
    write: (record, _, path, handle, bytes, size, low, high) => {
      const attempt = () => {
        const outcome = of(handle, path, (node) => write(record, node, bytes, size, offset(low, high)));
        return outcome < 0 ? outcome : data().readUInt32LE(0);
      };
      serve('write', attempt, (r) => addon.fuse_native_signal_write(record, r, 0, bytes.buffer));
    },
    setxattr: (record, _, path, name, value, __, flags) => {
      const attempt = () => at(path, (node) => handler.setxattr(node, bytesOf(name), value, flags, caller));
      serve('setxattr', attempt, (r) => addon.fuse_native_signal_setxattr(record, r, value.buffer));
    },
    getxattr: (record, _, path, name, value) => {
      const attempt = () =>
        give(paths.node(path), value, (node, size) => handler.getxattr(node, bytesOf(name), size, reply));
      serve('getxattr', attempt, (r) => addon.fuse_native_signal_getxattr(record, r, value.buffer));
    },
    listxattr: (record, _, path, into) => {
      const attempt = () =>
        give(paths.node(path), into, (node, size) => handler.listxattr(node, size, reply));
      serve('listxattr', attempt, (r) => addon.fuse_native_signal_listxattr(record, r, into.buffer));
    },
    utimens: (record, _, path) => {
      const attempt = () =>
        at(path, (node) => {
          change.atime = Math.floor(atimeOf(record) / 1000);
          change.atimeNsec = (atimeOf(record) - change.atime * 1000) * 1e6;
          change.mtime = Math.floor(mtimeOf(record) / 1000);
          change.mtimeNsec = (mtimeOf(record) - change.mtime * 1000) * 1e6;
          return setattr(node, Fattr.ATIME | Fattr.MTIME);
        });
      serve('utimens', attempt, (r) => addon.fuse_native_signal_utimens(record, r));
    },
    removexattr: plain('removexattr', (path, name: string) =>
      at(path, (node) => handler.removexattr(node, bytesOf(name), caller)),
    ),
    fsync: plain('fsync', (path, dataOnly: number, handle: number) =>
      of(handle, path, (node) => handler.fsync(node, dataOnly !== 0)),
    ),
    fsyncdir: plain('fsyncdir', (path, dataOnly: number) =>
      at(path, (node) => handler.fsync(node, dataOnly !== 0)),
    ),
    truncate: plain('truncate', (path, low: number, high: number) => at(path, truncate(offset(low, high)))),
    ftruncate: plain('ftruncate', (path, handle: number, low: number, high: number) =>
      of(handle, path, truncate(offset(low, high))),
    ),
    chown: plain('chown', (path, uid: number, gid: number) =>
      at(path, (node) => {
        change.uid = uid;
        change.gid = gid;
        return setattr(node, (uid === UNCHANGED ? 0 : Fattr.UID) | (gid === UNCHANGED ? 0 : Fattr.GID));
      }),
    ),
    chmod: plain('chmod', (path, mode: number) =>
      at(path, (node) => {
        change.mode = mode;
        return setattr(node, Fattr.MODE);
      }),
    ),
    mknod: plain('mknod', (path, mode: number, device: number) =>
      make(path, (parent, name) => handler.mknod(parent, name, mode, device, caller, reply)),
    ),
    mkdir: plain('mkdir', (path, mode: number) =>
      make(path, (parent, name) => handler.mkdir(parent, name, mode, caller, reply)),
    ),
    symlink: plain('symlink', (to, path: string) =>
      to.includes('\ufffd')
        ? 0 - EILSEQ
        : make(path, (parent, name) => handler.symlink(parent, name, bytesOf(to), caller, reply)),
    ),
    link: plain('link', (from, to: string) => {
      const node = paths.node(from);
      return node < 0 ? node : make(to, (parent, name) => handler.link(node, parent, name, caller, reply));
    }),
    unlink: plain('unlink', (path) =>
      paths.unhide(path) ? 0 : remove(path, (parent, name) => handler.unlink(parent, name, caller)),
    ),
    rmdir: plain('rmdir', (path) => remove(path, (parent, name) => handler.rmdir(parent, name, caller))),
    rename: plain('rename', rename),
    release: plain('release', (_path, handle: number) => release(handle)),
  };
  return { callbacks, trim: () => paths.trim() };
}
