/**
 * The state of one merged view, and the few things every operation needs: where a node is, its descriptor,
 * its attributes, the class of a path. The operations themselves stand in files of their own and take this.
 */
import type { Driver } from '../fuse/handler.ts';
import { cstring, scratchCstring } from '../sys/bytes.ts';
import {
  O_CLOEXEC,
  O_DIRECTORY,
  O_NOATIME,
  O_NOFOLLOW,
  O_NONBLOCK,
  O_PATH,
  O_RDONLY,
  O_RDWR,
  O_WRONLY,
  S_IFDIR,
  S_IFMT,
  S_ISGID,
  S_ISUID,
} from '../sys/constants.ts';
import { EACCES, EINVAL, EISDIR, ENOENT, ENOTDIR, EPERM, EROFS, ESTALE, SysError } from '../sys/errno.ts';
import { close, errno, fchmodat, openat } from '../sys/libc.ts';
import { Stat } from '../sys/stat.ts';
import { Descriptors } from './descriptors.ts';
import type { Identity } from './identity.ts';
import { Ledger } from './ledger.ts';
import { dropListing } from './listing.ts';
import { type Link, NO_FD, Node, PATH_FD, pathIn, pathOf, READ_FD, WRITE_FD } from './node.ts';
import { NodeTable } from './node-table.ts';
import { PageHistory } from './page-history.ts';
import type { Rules } from './rules.ts';
import type { Upper } from './upper.ts';
import { objectsOf, type State } from './window-state.ts';
import { WrittenFiles } from './written-files.ts';

export interface OverlayOptions {
  /** Where the view's root stands: a byte string, absolute. */
  rootPath: string;
  /** The lower: an `O_PATH` descriptor of its root directory. */
  lower: number;
  upper: Upper;
  rules: Rules;
  /** Protected paths of the lower read as absent. */
  hide: boolean;
  /** Writes to protected paths fail with EROFS. */
  readonly: boolean;
  /** Paths, relative to the root, that cannot be changed inside: the window's own configuration. */
  fixed: ReadonlySet<string>;
  /** The thread's, which all overlays of a process share. */
  identity: Identity;
  /** Absolute: what protected symlinks lead to outside the root, where another root of the window protects it. */
  reached?: ReadonlySet<string>;
  /** The share of this process's descriptors that the overlay may have; 1 if not given. */
  share?: number;
  /** A path of the root as people are to read it. */
  shown?: (path: string) => string;
}

/** Which layer a new name belongs in. */
export type Place = 'lower' | 'upper' | 'held';

/** Tells the kernel that something it keeps is no longer so. Sent by a thread that is not the request loop. */
export interface Notifier {
  /** Attributes and all cached pages of a node; of a directory, its cached listing. */
  inode(id: number): void;
  /** The attributes alone. */
  attributes(id: number): void;
  /** The attributes alone, at once: before the request in hand is answered. */
  attributesNow(id: number): void;
  /**
   * What a name in a directory leads to, or that it leads to nothing. `stillSomewhere`: it led to a directory that may
   * have another name by now, and processes in it.
   */
  entry(parent: number, name: string, stillSomewhere: boolean): void;
  /** Sends what was said since the last time. */
  flush(): void;
}

const NONE: ReadonlySet<string> = new Set();

export class Overlay {
  readonly rules: Rules;
  readonly rootPath: string;
  /** Paths that protected symlinks lead to; what is below them is protected as well. */
  private readonly linked: string[] = [];
  readonly upper: Upper;
  private readonly options: OverlayOptions;
  /** The window on top, by its number: a view is made with one. 0 while none is open: then nothing is protected. */
  window = 1;
  /** One window is open over another, and the states that they were opened over. */
  nested = false;
  frozen: readonly State[] = [];
  /** Stores through shared mappings of these may hold a closed window's bytes, and are taken and thrown away (window/live-windows.ts). */
  discarding: ReadonlySet<Node> | null = null;
  readonly table: NodeTable;
  readonly descriptors: Descriptors;
  /** The account of the window on top. */
  ledger: Ledger;
  readonly identity: Identity;
  readonly reached: ReadonlySet<string>;
  written = new WrittenFiles();
  pages = new PageHistory();
  readonly stat = new Stat();
  readonly otherStat = new Stat();
  private readonly linkStat = new Stat();
  readonly lowerFd: number;
  /**
   * Devices whose filesystem cannot say whether a read would have to wait (RWF_NOWAIT), and whether it is RAM, which
   * never does. Seen on 6.18: ext4 can; tmpfs, overlayfs and FUSE cannot.
   */
  readonly mute = new Map<number, { ram: boolean }>();
  /** Until when writes to the lower are left to pool threads: ms of the monotonic clock. */
  slowUntil = 0;
  /** Processes whose reads leave the access times of files: those that read ahead. */
  readonly quietReaders = new Set<number>();
  engine!: Driver;
  notifier!: Notifier;
  /** Tries to watch the lower directory of a node, so that what the kernel keeps of it can be taken back. */
  watchDirectory: (node: Node) => boolean = () => false;
  unwatchDirectory: (node: Node) => void = () => {};

  constructor(options: OverlayOptions) {
    this.rules = options.rules;
    this.rootPath = options.rootPath;
    this.upper = options.upper;
    this.options = options;
    this.identity = options.identity;
    this.descriptors = new Descriptors(options.share);
    this.descriptors.openPath = (node) => this.openAgain(node, O_PATH | O_CLOEXEC, PATH_FD);
    this.reached = options.reached ?? new Set();
    this.ledger = new Ledger(options.shown);
    this.lowerFd = options.lower;
    const error = this.stat.of(options.lower);
    if (error) throw new SysError(error, 'reading the workspace');
    this.table = new NodeTable(this.stat);
    this.table.root.fd = options.lower;
    this.table.root.fdKind = PATH_FD;
  }

  get root(): Node {
    return this.table.root;
  }

  /** Protected paths of the lower read as absent, for now. */
  get hide(): boolean {
    return this.window !== 0 && this.options.hide;
  }

  /** Writes to protected paths fail with EROFS, for now. */
  get readonly(): boolean {
    return this.window !== 0 && this.options.readonly;
  }

  /** Paths that cannot be changed inside, for now. */
  get fixed(): ReadonlySet<string> {
    return this.window === 0 ? NONE : this.options.fixed;
  }

  /** A name of it is protected, and a window is open. */
  isProtected(node: Node): boolean {
    return node.protected && this.window !== 0;
  }

  /** It is in the upper, and the window on top may change it there. */
  owns(node: Node): boolean {
    return node.upper !== 0 && node.owner === this.window;
  }

  /** The node of an id; undefined for one that the kernel should no longer know. */
  node(id: number): Node | undefined {
    return this.table.get(id);
  }

  /** Takes a file of the upper out of the root, as if it had never been there. */
  dropFromRoot(name: string): void {
    const kid = this.root.kid(name);
    if (!(kid instanceof Node) || !kid.inUpper) return;
    kid.removeLink(this.root, name);
    this.root.overlayChange = 0;
    this.dropIdle(kid);
    this.notifier.entry(this.root.id, name, false);
    this.notifier.inode(this.root.id);
    this.notifier.flush();
  }

  path(parent: Node, name: string): string | undefined {
    return pathIn(parent, name, this.root);
  }

  pathOf(node: Node): string {
    return pathOf(node, this.root) ?? '(unlinked)';
  }

  /** Whether the rules protect the path, and a window is open. */
  protects(path: string): boolean {
    return this.window !== 0 && this.wouldProtect(path);
  }

  /** Whether the path is protected while a window is open. */
  wouldProtect(path: string): boolean {
    if (this.rules.protects(path)) return true;
    return (
      this.linked.length > 0 &&
      this.linked.some((root) => path === root || (path.startsWith(root) && path[root.length] === '/'))
    );
  }

  protectBelow(path: string): void {
    this.linked.push(path);
  }

  /**
   * No window was open, or none is any more: what was found out and kept for the sake of one is not so for the next.
   */
  beginAnew(): void {
    this.linked.length = 0;
    this.written = new WrittenFiles();
    this.pages = new PageHistory();
    for (const node of this.table.all()) node.recorded = false;
  }

  isProtectedName(parent: Node, name: string): boolean {
    const path = this.path(parent, name);
    return path !== undefined && this.protects(path);
  }

  /** As isProtectedName, whether a window is open or not: for a node's `protected`. */
  wouldProtectName(parent: Node, name: string): boolean {
    const path = this.path(parent, name);
    return path !== undefined && this.wouldProtect(path);
  }

  /** Judges a node by its names alone. */
  judge(node: Node): void {
    node.protected = false;
    for (const { parent, name } of node.links())
      if (this.wouldProtectName(parent, name)) node.protected = true;
  }

  /**
   * Where a new file of this name goes. Throws SysError: ENOENT in a directory that is gone, EROFS for a name
   * that may not be changed.
   */
  placeFor(parent: Node, name: string): Place {
    const path = this.path(parent, name);
    if (path === undefined) throw new SysError(ENOENT, 'creating in a removed directory');
    const { fixed } = this;
    if (fixed.size > 0 && fixed.has(path)) throw new SysError(EROFS, path);
    if (this.protects(path)) {
      if (this.readonly) throw new SysError(EROFS, path);
      return 'upper';
    }
    return this.window !== 0 && !this.readonly && this.rules.holds(path) ? 'held' : 'lower';
  }

  /** The name cannot be changed, for now. */
  isFixedName(parent: Node, name: string): boolean {
    if (this.fixed.size === 0) return false;
    const path = this.path(parent, name);
    return path !== undefined && this.fixed.has(path);
  }

  /** EROFS where the node may not be changed by any of its names, or 0. */
  refuseChange(node: Node): number {
    if (this.readonly && node.protected) return EROFS;
    if (this.fixed.size > 0) {
      const path = pathOf(node, this.root);
      if (path !== undefined && this.fixed.has(path)) return EROFS;
    }
    return 0;
  }

  /** An O_PATH descriptor of the lower directory that shows through this node, or -errno. */
  dirFd(node: Node): number {
    if (node.fd >= 0 && node.isDirectory) {
      node.fdUsed = true;
      return node.fd;
    }
    if (!node.isDirectory) return -ENOTDIR;
    if (!node.hasLower || !node.link) return -ENOENT;
    return this.openNamed(node, node.link, O_PATH | O_DIRECTORY | O_CLOEXEC, PATH_FD);
  }

  /**
   * A descriptor of a regular file in its current layer, good for reading, and for writing if `write`; or
   * -errno. ESTALE: another file stands in the lower under its name.
   */
  fileFd(node: Node, write: boolean): number {
    const kind = write ? WRITE_FD : READ_FD;
    if (node.fdKind >= kind) {
      node.fdUsed = true;
      return node.fd;
    }
    if (!node.isRegular) return node.isDirectory ? -EISDIR : -EINVAL;
    if (node.inUpper) {
      const fd = this.openUpper(node.upper);
      if (fd >= 0) this.descriptors.set(node, fd, WRITE_FD);
      return fd;
    }
    const fd = this.openLower(node, write ? O_RDWR : O_RDONLY, kind);
    // A file that this user may write and not read, where the server has no capabilities.
    return fd === -EACCES && write ? this.openLower(node, O_WRONLY, kind) : fd;
  }

  private openLower(node: Node, access: number, kind: number): number {
    // O_NONBLOCK: were a fifo put under this name, the loop must not wait for its other end.
    const flags = access | O_NONBLOCK | O_CLOEXEC;
    // A protected file of the lower is to keep its access time too.
    const atime = this.isProtected(node) ? O_NOATIME : 0;
    const fd = this.openAgain(node, flags | atime, kind);
    return fd === -EPERM && atime ? this.openAgain(node, flags, kind) : fd;
  }

  /** By its name, which takes 3 us, or by the descriptor that it has, which takes 6: somebody else may have that name by now. */
  private openAgain(node: Node, flags: number, kind: number): number {
    const named = node.link ? this.openNamed(node, node.link, flags, kind) : -ESTALE;
    if (named >= 0 || node.fd < 0) return named;
    const fd = openat(-1, scratchCstring(`/proc/self/fd/${node.fd}`), flags, 0);
    if (fd < 0) return -errno();
    this.descriptors.set(node, fd, kind);
    return fd;
  }

  /** A descriptor of an upper file for reading and writing, whatever its mode; or -errno. */
  private openUpper(object: number): number {
    const barred = this.upper.open(object);
    if (barred !== -EACCES) return barred;
    // A server without capabilities is held to the mode. It made every object, and nobody sees it change in between.
    const st = this.otherStat;
    const error = st.at(this.upper.fd, this.upper.name(object));
    if (error) return -error;
    if (fchmodat(this.upper.fd, this.upper.name(object), 0o600, 0) < 0) return -errno();
    const fd = this.upper.open(object);
    fchmodat(this.upper.fd, this.upper.name(object), st.mode & 0o7777, 0);
    return fd;
  }

  /** An O_PATH descriptor of a lower node of any type, for what works on descriptors alone; or -errno. */
  pathFd(node: Node): number {
    if (node.isDirectory) return this.dirFd(node);
    if (node.fdKind !== NO_FD) return node.fd;
    return node.link ? this.openNamed(node, node.link, O_PATH | O_CLOEXEC, PATH_FD) : -ESTALE;
  }

  /** ESTALE where the name leads to another file. */
  private openNamed(node: Node, { parent, name }: Link, flags: number, kind: number): number {
    const dir = this.dirFd(parent);
    if (dir < 0) return dir;
    const fd = openat(dir, scratchCstring(name), flags | O_NOFOLLOW, 0);
    if (fd < 0) return -errno();
    const st = this.otherStat;
    const error = st.of(fd);
    if (error || !this.table.isSame(node, st)) {
      close(fd);
      return -(error || ESTALE);
    }
    this.descriptors.set(node, fd, kind);
    return fd;
  }

  /** The node's attributes as the view shows them. Returns 0 or an errno. */
  statNode(node: Node, st: Stat): number {
    let error: number;
    if (node.inUpper) error = st.at(this.upper.fd, this.upper.name(node.upper));
    else if (node.fd >= 0) error = st.of(node.fd);
    else {
      const link = node.link;
      if (!link) return ESTALE;
      const parent = this.dirFd(link.parent);
      if (parent < 0) return -parent;
      error = st.at(parent, scratchCstring(link.name));
      if (!error && !this.table.isSame(node, st)) error = ESTALE;
    }
    if (!error) this.present(node, st);
    return error;
  }

  /** From the attributes of the layer to those of the view. */
  present(node: Node, st: Stat): void {
    node.setid = (st.mode & (S_ISUID | S_ISGID)) !== 0;
    st.ino = node.ino;
    if (node.copiedBirth) st.birthWords = node.copiedBirth;
    st.gid = this.identity.shownGroup(st.gid);
    if (node.isDirectory) {
      if (node.overlayChange !== 0) this.presentChange(node, st);
      this.presentLinks(node, st);
    } else if (node.inUpper) {
      st.nlink = node.linkCount + node.unseenNames;
    } else {
      st.nlink = Math.max(node.link ? 1 : 0, node.hidden ? 0 : this.table.shownNames(st));
    }
  }

  private presentLinks(node: Node, st: Stat): void {
    if (!node.link && node !== this.root) st.nlink = 0;
    else if (!node.hasLower) st.nlink = 2 + node.subdirectories;
    else {
      const lower = this.linkStat;
      const dir = node.inUpper ? this.dirFd(node) : -1;
      if (dir >= 0 && lower.of(dir) === 0) st.nlink = lower.nlink;
      // Some filesystems do not count subdirectories, and say 1.
      const hidden = node.hiddenSubdirectories?.size ?? 0;
      if (st.nlink > 1) st.nlink = Math.max(2, st.nlink - hidden + node.upperSubdirectories);
    }
  }

  private presentChange(node: Node, st: Stat): void {
    const sec = Math.floor(node.overlayChange / 1000);
    const nsec = Math.round((node.overlayChange - sec * 1000) * 1e6);
    if (sec > st.mtimeSec || (sec === st.mtimeSec && nsec > st.mtimeNsec)) {
      st.setMtime(sec, nsec);
      // A chmod or chown of the lower directory since then moved its ctime alone.
      if (sec > st.ctimeSec || (sec === st.ctimeSec && nsec > st.ctimeNsec)) st.setCtime(sec, nsec);
    }
  }

  /**
   * After forget itself changed a lower node: the event that follows is its own. The kernel knows of the change, since
   * it asked for it.
   */
  settle(node: Node): void {
    if (node.inUpper && !node.isDirectory) return;
    const st = this.linkStat;
    const fd = node.isDirectory ? this.dirFd(node) : node.fd;
    if (fd >= 0 && st.of(fd) === 0) node.settledChange = st.change;
  }

  /** Takes a file's content back from the kernel at once if somebody outside changed it, and the event is still to come. */
  tellOutsideChange(node: Node): void {
    if (node.inUpper || !node.isRegular) return;
    const st = this.linkStat;
    if (this.statNode(node, st) !== 0 || st.change === node.settledChange) return;
    node.settledChange = st.change;
    this.notifier.inode(node.id);
    this.notifier.flush();
  }

  /**
   * Whether the lower has a name that would show if the overlay had nothing there. `st` then describes it.
   */
  lowerHas(parent: Node, name: string, st: Stat): boolean {
    if (!parent.hasLower) return false;
    const dir = this.dirFd(parent);
    return dir >= 0 && st.at(dir, scratchCstring(name)) === 0;
  }

  /** Whether there is a lower directory at this path, and the window made it. */
  madeDirectory(path: string): boolean {
    const st = this.linkStat;
    return (
      st.at(this.lowerFd, cstring(path)) === 0 && (st.mode & S_IFMT) === S_IFDIR && this.table.wasBorn(st)
    );
  }

  /** Gives back every descriptor but those of the lower's root and of the upper, which are the caller's. Nothing works afterwards. */
  close(): void {
    this.watchDirectory = () => false;
    this.unwatchDirectory = () => {};
    for (const node of this.table.all()) {
      if (node !== this.root) this.descriptors.release(node);
      if (node.isDirectory) dropListing(node);
    }
    this.descriptors.endAll();
  }

  /** Closes and removes what an idle node, or one that just lost its last name, no longer needs. */
  dropIdle(node: Node): void {
    for (const gone of this.table.drop(node)) {
      this.descriptors.releaseLater(gone);
      if (gone.isDirectory) {
        this.unwatchDirectory(gone);
        dropListing(gone);
      }
      if (gone.inUpper && !this.isFrozen(gone)) this.upper.remove(gone.upper, gone.isDirectory);
    }
  }

  /** The node's object is an outer window's too, which may know another node by it. */
  private isFrozen(node: Node): boolean {
    return this.nested && !this.owns(node) && this.frozen.some((state) => objectsOf(state).has(node.upper));
  }
}
