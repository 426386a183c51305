/**
 * libfuse's operations, which name files by path, on a handler, which knows them by node id. Each returns 0, a negative
 * errno, or PUT_ASIDE; what it has to say beyond that stands in `reply`. State: the open files, by the number that
 * libfuse was given for each.
 *
 * What is asked of an open file goes to the node that was opened, whatever its path leads to by now. A file that is
 * removed while open, libfuse renames to a name of its own and removes at its last close; here it is unlinked at once,
 * and only known by that name, so that nothing hidden comes to be in either layer.
 */
import { Fattr, MAX_IO, OUT_HEADER_SIZE, WRITE_CACHE } from '../abi.ts';
import { type Caller, DEFERRED, emptySetAttr, type Handler } from '../handler.ts';
import { Reply } from '../reply.ts';
import { entryId, Paths } from './paths.ts';
import { eachEntry } from './structs.ts';

/** The handler put the request aside: it is to be made again from its beginning, or answered later. */
export const PUT_ASIDE = Number.NEGATIVE_INFINITY;

const UNCHANGED = 0xffffffff;
const LAST_HANDLE = 0x7fffffff;

/** DEFERRED and errno as a result. */
const resultOf = (outcome: number): number => (outcome === DEFERRED ? PUT_ASIDE : 0 - outcome);

/** All paths are byte strings that begin with a slash. */
export class Operations {
  readonly reply = new Reply();
  private readonly handler: Handler;
  private readonly paths: Paths;
  /** The node of each open file. */
  private readonly files = new Map<number, number>();
  private lastHandle = 0;
  // libfuse knows who asks, and the addon does not pass it on: everything is done as the server's own user. The kernel
  // has applied the umask.
  private readonly caller: Caller = { uid: process.geteuid!(), gid: process.getegid!(), pid: 0, umask: 0 };
  private readonly change = emptySetAttr();

  constructor(handler: Handler) {
    this.handler = handler;
    this.paths = new Paths(handler);
  }

  /** Between two requests: forgets what was not used for long. */
  trim(): void {
    this.paths.trim();
  }

  /** The data of the reply. */
  get data(): Buffer {
    return this.reply.bytes.subarray(OUT_HEADER_SIZE, OUT_HEADER_SIZE + this.reply.size);
  }

  // Attributes

  /** Whether a path is libfuse's own for a file that was removed while open. */
  isRemoved(path: string): boolean {
    return this.paths.isRemoved(path);
  }

  getattr(path: string): number {
    return this.at(path, (node) => this.handler.getattr(node, this.reply));
  }

  fgetattr(path: string, handle: number): number {
    return this.of(handle, path, (node) => this.handler.getattr(node, this.reply));
  }

  truncate(path: string, size: number): number {
    return this.at(path, (node) => this.resize(node, size));
  }

  ftruncate(path: string, handle: number, size: number): number {
    return this.of(handle, path, (node) => this.resize(node, size));
  }

  private resize(node: number, size: number): number {
    this.change.size = size;
    return this.setattr(node, Fattr.SIZE);
  }

  chmod(path: string, mode: number): number {
    this.change.mode = mode;
    return this.at(path, (node) => this.setattr(node, Fattr.MODE));
  }

  chown(path: string, uid: number, gid: number): number {
    this.change.uid = uid;
    this.change.gid = gid;
    const valid = (uid === UNCHANGED ? 0 : Fattr.UID) | (gid === UNCHANGED ? 0 : Fattr.GID);
    return this.at(path, (node) => this.setattr(node, valid));
  }

  /** Times in ms since 1970. */
  utimens(path: string, atime: number, mtime: number): number {
    const { change } = this;
    change.atime = Math.floor(atime / 1000);
    change.atimeNsec = (atime - change.atime * 1000) * 1e6;
    change.mtime = Math.floor(mtime / 1000);
    change.mtimeNsec = (mtime - change.mtime * 1000) * 1e6;
    return this.at(path, (node) => this.setattr(node, Fattr.ATIME | Fattr.MTIME));
  }

  private setattr(node: number, valid: number): number {
    this.change.valid = valid;
    return this.handler.setattr(node, this.change, this.caller, this.reply);
  }

  statfs(path: string): number {
    return this.at(path, (node) => this.handler.statfs(node, this.reply));
  }

  readlink(path: string): number {
    return this.at(path, (node) => this.handler.readlink(node, this.reply));
  }

  setxattr(path: string, name: string, value: Buffer, flags: number): number {
    return this.at(path, (node) => this.handler.setxattr(node, name, value, flags, this.caller));
  }

  removexattr(path: string, name: string): number {
    return this.at(path, (node) => this.handler.removexattr(node, name, this.caller));
  }

  /** A size of 0 asks how much there is: a number in the reply. */
  getxattr(path: string, name: string, size: number): number {
    return this.at(path, (node) => this.handler.getxattr(node, name, size, this.reply));
  }

  listxattr(path: string, size: number): number {
    return this.at(path, (node) => this.handler.listxattr(node, size, this.caller, this.reply));
  }

  // Files

  /** Returns the number of the open file, which is above 0. */
  open(path: string): number {
    const node = this.paths.node(path);
    if (node < 0) return node;
    do this.lastHandle = this.lastHandle === LAST_HANDLE ? 1 : this.lastHandle + 1;
    while (this.files.has(this.lastHandle));
    this.files.set(this.lastHandle, node);
    this.paths.open(node);
    return this.lastHandle;
  }

  release(handle: number): number {
    const node = this.files.get(handle);
    if (node !== undefined) this.paths.close(node);
    this.files.delete(handle);
    return 0;
  }

  read(path: string, handle: number, offset: number, size: number, openFlags: number): number {
    return this.of(handle, path, (node) =>
      this.handler.read(node, offset, size, openFlags, this.caller, this.reply),
    );
  }

  /** The reply says how much was written. */
  write(
    path: string,
    handle: number,
    bytes: Buffer,
    offset: number,
    openFlags: number,
    writeback: boolean,
  ): number {
    const { handler, caller, reply } = this;
    const flags = writeback ? WRITE_CACHE : 0;
    return this.of(handle, path, (node) =>
      handler.write(node, offset, bytes, 0, bytes.length, flags, openFlags, caller, reply),
    );
  }

  fsync(path: string, handle: number, dataOnly: boolean): number {
    return this.of(handle, path, (node) => this.handler.fsync(node, dataOnly));
  }

  fsyncdir(path: string, dataOnly: boolean): number {
    return this.at(path, (node) => this.handler.fsync(node, dataOnly));
  }

  /** Calls back for each entry, as `eachEntry` does. */
  readdir(path: string, stat: Buffer, put: (name: Buffer) => boolean): number {
    return this.at(path, (node) => {
      for (let cookie = 0; ; ) {
        this.reply.begin();
        const error = this.handler.readdir(node, cookie, MAX_IO, false, this.reply);
        if (error || this.reply.size === 0) return error;
        cookie = eachEntry(this.reply, stat, put);
      }
    });
  }

  // Names

  mknod(path: string, mode: number, device: number): number {
    return this.make(path, (parent, name) =>
      this.handler.mknod(parent, name, mode, device, this.caller, this.reply),
    );
  }

  mkdir(path: string, mode: number): number {
    return this.make(path, (parent, name) => this.handler.mkdir(parent, name, mode, this.caller, this.reply));
  }

  symlink(target: string, path: string): number {
    return this.make(path, (parent, name) =>
      this.handler.symlink(parent, name, target, this.caller, this.reply),
    );
  }

  link(from: string, to: string): number {
    const node = this.paths.node(from);
    if (node < 0) return node;
    return this.make(to, (parent, name) => this.handler.link(node, parent, name, this.caller, this.reply));
  }

  unlink(path: string): number {
    if (this.paths.unhide(path)) return 0;
    return this.remove(path, (parent, name) => this.handler.unlink(parent, name, this.caller));
  }

  rmdir(path: string): number {
    return this.remove(path, (parent, name) => this.handler.rmdir(parent, name, this.caller));
  }

  rename(from: string, to: string): number {
    const { handler, paths, caller } = this;
    const node = paths.node(from);
    if (node < 0) return node;
    const old = paths.place(from);
    const place = paths.place(to);
    if (typeof old === 'number') return old;
    if (typeof place === 'number') return place;
    if (old.parent === place.parent && paths.isHiding(node, place.name)) {
      const outcome = resultOf(handler.unlink(old.parent, old.name, caller));
      if (outcome === 0) paths.hide(place.name, node);
      return outcome;
    }
    const replaced = paths.child(place.parent, place.name);
    const outcome = resultOf(handler.rename(old.parent, old.name, place.parent, place.name, 0, caller));
    if (outcome === 0 && replaced > 0 && replaced !== node) paths.release(replaced);
    return outcome;
  }

  // From paths to nodes

  private at(path: string, action: (node: number) => number): number {
    return this.on(this.paths.node(path), action);
  }

  /** The path serves where libfuse has no open file. */
  private of(handle: number, path: string, action: (node: number) => number): number {
    return this.on(this.files.get(handle) ?? this.paths.node(path), action);
  }

  private on(node: number, action: (node: number) => number): number {
    if (node < 0) return node;
    this.reply.begin();
    return resultOf(action(node));
  }

  /** The handler answers with an entry, and counts the new node as looked up. */
  private make(path: string, action: (parent: number, name: string) => number): number {
    const place = this.paths.place(path);
    if (typeof place === 'number') return place;
    this.reply.begin();
    const outcome = resultOf(action(place.parent, place.name));
    if (outcome === 0) this.paths.keep(entryId(this.reply));
    return outcome;
  }

  private remove(path: string, action: (parent: number, name: string) => number): number {
    const node = this.paths.node(path);
    if (node < 0) return node;
    const place = this.paths.place(path);
    if (typeof place === 'number') return place;
    const outcome = resultOf(action(place.parent, place.name));
    if (outcome === 0) this.paths.release(node);
    return outcome;
  }
}
