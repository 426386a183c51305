/**
 * Changes of the lower that others make, seen by inotify, one watch a directory that the kernel knows names of.
 * Each is checked against what forget itself last saw or did, since its own writes come back as events too, and
 * what is no longer so is taken back from the kernel.
 *
 * A directory that cannot be watched (no watches left, a network or FUSE filesystem below) has short validity
 * instead (lookup.ts).
 */
import { release } from 'node:os';
import { scratchCstring } from '../sys/bytes.ts';
import {
  CIFS_SUPER_MAGIC,
  FUSE_SUPER_MAGIC,
  IN_ATTRIB,
  IN_CREATE,
  IN_DELETE,
  IN_EXCL_UNLINK,
  IN_IGNORED,
  IN_MODIFY,
  IN_MOVED_FROM,
  IN_MOVED_TO,
  IN_ONLYDIR,
  IN_Q_OVERFLOW,
  NFS_SUPER_MAGIC,
  O_CLOEXEC,
  O_NONBLOCK,
  SMB2_SUPER_MAGIC,
  V9FS_MAGIC,
} from '../sys/constants.ts';
import { SysError } from '../sys/errno.ts';
import { close, errno, fstatfs, inotifyAddWatch, inotifyInit1, inotifyRmWatch, read } from '../sys/libc.ts';
import { Stat } from '../sys/stat.ts';
import { Node, Whiteout } from './node.ts';
import type { Overlay } from './overlay.ts';

const MASK =
  IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_ONLYDIR | IN_EXCL_UNLINK;
const NAMES_CHANGED = IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE;
/** Filesystems whose changes by other machines, or below another mount, inotify never sees. */
const BLIND = new Set([FUSE_SUPER_MAGIC, NFS_SUPER_MAGIC, SMB2_SUPER_MAGIC, CIFS_SUPER_MAGIC, V9FS_MAGIC]);
/** ext4, XFS, btrfs, tmpfs: multigrain timestamps (FS_MGTIME). */
const FINE_TIMES = new Set([0xef53, 0x58465342, 0x9123683e, 0x01021994]);
const UNWATCHABLE = -1;
/**
 * A window shorter than this watches nothing: taking the watches away at the end of a process costs it 8 ms. What the
 * kernel has learned by then is watched then, and asked for again.
 */
const WATCH_FROM_MS = 50;

export class LowerWatch {
  readonly fd: number;
  private readonly o: Overlay;
  private readonly byWatch = new Map<number, Node>();
  private readonly buffer = Buffer.alloc(64 << 10);
  private readonly st = new Stat();
  private readonly blind: boolean;
  private readonly fineTimes: boolean;
  private timer: NodeJS.Timeout | undefined;
  private begun = false;
  /** Nodes whose attributes and pages the kernel is to drop, at the end of this round. */
  private readonly changed = new Set<Node>();

  constructor(o: Overlay) {
    this.o = o;
    this.fd = inotifyInit1(O_NONBLOCK | O_CLOEXEC);
    if (this.fd < 0) throw new SysError(errno(), 'watching the workspace (fs.inotify.max_user_instances)');
    const statfs = Buffer.alloc(120);
    const known = fstatfs(o.lowerFd, statfs) === 0;
    this.blind = !known || BLIND.has(statfs.readUInt32LE(0));
    this.fineTimes = known && FINE_TIMES.has(statfs.readUInt32LE(0)) && kernelHasFineTimes();
  }

  /**
   * When somebody has been in the view. A new mount's root is uid 0's to the kernel until the first answer to a GETATTR
   * is taken, which a notification on its way has the kernel throw away: an ordinary user would be refused (EACCES).
   */
  start(): void {
    this.timer ??= setTimeout(() => this.begin(), WATCH_FROM_MS);
  }

  /** Watches the lower directory of a node, if it is not watched yet. False: it cannot be. */
  add(node: Node): boolean {
    if (node.watch > 0) return true;
    if (node.watch === UNWATCHABLE || this.blind || !this.begun) return false;
    const dir = this.o.dirFd(node);
    if (dir < 0) return false;
    const watch = inotifyAddWatch(this.fd, scratchCstring(`/proc/self/fd/${dir}`), MASK);
    if (watch < 0) {
      node.watch = UNWATCHABLE;
      return false;
    }
    // One inode has one watch: a directory that came back as another node brings its old one along.
    const before = this.byWatch.get(watch);
    if (before) before.watch = 0;
    node.watch = watch;
    this.byWatch.set(watch, node);
    return true;
  }

  private begin(): void {
    this.begun = true;
    for (const node of this.o.table.all()) if (node.isDirectory && node.hasLower) this.add(node);
    this.everythingChanged();
    this.tell();
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  /** After `stop`. */
  close(): void {
    close(this.fd);
  }

  /** The node is gone. */
  remove(node: Node): void {
    if (node.watch <= 0) return;
    this.byWatch.delete(node.watch);
    inotifyRmWatch(this.fd, node.watch);
    node.watch = 0;
  }

  /** Reads all events there are, and sends what follows from them in one go. */
  drain(): void {
    for (;;) {
      const n = read(this.fd, this.buffer, this.buffer.length);
      if (n <= 0) break;
      for (let at = 0; at < n; ) {
        const length = this.buffer.readUInt32LE(at + 12);
        this.event(
          this.buffer.readInt32LE(at),
          this.buffer.readUInt32LE(at + 4),
          this.nameAt(at + 16, length),
        );
        at += 16 + length;
      }
    }
    this.tell();
  }

  private tell(): void {
    const { notifier } = this.o;
    for (const node of this.changed) notifier.inode(node.id);
    this.changed.clear();
    notifier.flush();
  }

  private nameAt(start: number, length: number): string {
    if (length === 0) return '';
    const end = this.buffer.indexOf(0, start);
    return this.buffer.latin1Slice(start, end < 0 ? start + length : Math.min(end, start + length));
  }

  private event(watch: number, mask: number, name: string): void {
    if (mask & IN_Q_OVERFLOW) {
      this.everythingChanged();
      return;
    }
    const dir = this.byWatch.get(watch);
    if (!dir) return;
    if (mask & IN_IGNORED) {
      this.byWatch.delete(watch);
      dir.watch = 0;
      return;
    }
    if (name === '') this.changed.add(dir);
    else if (mask & NAMES_CHANGED) this.nameChanged(dir, name);
    else this.contentChanged(dir, name);
  }

  /**
   * A name was made, removed or replaced. If it leads where forget says it does, that was forget itself, or it is
   * the same again.
   */
  private nameChanged(dir: Node, name: string): void {
    const { o, st } = this;
    const kid = dir.kid(name);
    if (kid instanceof Whiteout || kid?.inUpper) return; // the lower does not show here
    const exists = o.lowerHas(dir, name, st);
    if (kid && exists && o.table.isSame(kid, st)) return;
    // The kernel may hold that there is no such name; where it is gone it may hold that there is one, in a name of
    // its own or in a listing.
    if (kid || exists) o.notifier.entry(dir.id, name);
    this.changed.add(dir);
  }

  private contentChanged(dir: Node, name: string): void {
    const { o, st } = this;
    const node = dir.kid(name);
    if (!(node instanceof Node) || node.inUpper || node.lookups === 0) return;
    if (!o.lowerHas(dir, name, st) || !o.table.isSame(node, st)) return;
    if (this.fineTimes && node.seenChange === st.change) return;
    node.seenChange = st.change;
    this.changed.add(node);
  }

  /** The kernel's queue overflowed, and nobody knows what was lost. */
  private everythingChanged(): void {
    for (const node of this.o.table.all()) {
      if (node.inUpper && !node.hasLower) continue;
      for (const { parent, name } of node.links()) this.o.notifier.entry(parent.id, name);
      this.changed.add(node);
    }
  }
}

/**
 * From 6.13 on the kernel gives a file a new ctime for each change that comes after somebody looked at the last
 * one. Before, all changes within a tick of 1-10 ms share one, and equal ctimes prove nothing.
 */
function kernelHasFineTimes(): boolean {
  const [major, minor] = release().split('.').map(Number) as [number, number];
  return major > 6 || (major === 6 && minor >= 13);
}
