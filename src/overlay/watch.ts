/**
 * Changes of the lower that others make, seen by inotify, one watch a directory that the kernel knows names of. What
 * follows from an event is decided in outside-changes.ts. State: the watches by number, and how far a recheck is.
 *
 * A directory that cannot be watched (no watches left, a network or FUSE filesystem below) has short validity
 * instead (lookup.ts).
 */
import { nulAt, scratchCstring } from '../sys/bytes.ts';
import { monotonicMs } from '../sys/clock.ts';
import {
  CIFS_SUPER_MAGIC,
  FUSE_SUPER_MAGIC,
  IN_ATTRIB,
  IN_CLOSE_WRITE,
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
import { ENOSPC, SysError } from '../sys/errno.ts';
import { close, errno, inotifyAddWatch, inotifyInit1, inotifyRmWatch, read } from '../sys/libc.ts';
import { filesystemType } from '../sys/statfs.ts';
import { eachLowerEntry } from './listing.ts';
import type { Node } from './node.ts';
import { OutsideChanges } from './outside-changes.ts';
import type { Overlay } from './overlay.ts';

const MASK =
  IN_MODIFY |
  IN_CLOSE_WRITE |
  IN_ATTRIB |
  IN_MOVED_FROM |
  IN_MOVED_TO |
  IN_CREATE |
  IN_DELETE |
  IN_ONLYDIR |
  IN_EXCL_UNLINK;
const NAMES_CHANGED = IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE;
/** Filesystems whose changes by other machines, or below another mount, inotify never sees. */
const BLIND = new Set([FUSE_SUPER_MAGIC, NFS_SUPER_MAGIC, SMB2_SUPER_MAGIC, CIFS_SUPER_MAGIC, V9FS_MAGIC]);
/**
 * A window shorter than this watches nothing: taking the watches away at the end of a process costs it 8 ms. What the
 * kernel has learned by then is watched then, and compared again.
 */
const WATCH_FROM_MS = 50;
/** After the kernel had no watch left (fs.inotify.max_user_watches), until it is asked again. */
const FULL_MS = 1000;
/** Requests wait no longer than this behind events. */
const ROUND_MS = 4;
/** Each watch that is taken away puts an event into the queue, which holds 16,384. */
const MOST_REMOVED = 4096;

export class LowerWatch {
  readonly fd: number;
  private readonly o: Overlay;
  private readonly changes: OutsideChanges;
  private readonly byWatch = new Map<number, Node>();
  private readonly buffer = Buffer.alloc(64 << 10);
  /** The same in words: the kernel fills up each name to a multiple of an event's size, which is 16. */
  private readonly words = new Uint32Array(
    this.buffer.buffer,
    this.buffer.byteOffset,
    this.buffer.length / 4,
  );
  private readonly blind: boolean;
  private timer: NodeJS.Timeout | undefined;
  private begun = false;
  private fullUntil = 0;
  private removed = 0;
  private draining = false;
  private stopped = false;
  /** The recheck takes every file's content for changed. */
  private surely = false;
  /** What a recheck has still to look at; null while there is none. */
  private unchecked: Iterator<Node> | null = null;
  /** Names (`nameKey`) of files that forget closed for writing, until their events are read: they may be other files' by then. */
  private readonly ownCloses = new Set<string>();

  constructor(o: Overlay) {
    this.o = o;
    this.fd = inotifyInit1(O_NONBLOCK | O_CLOEXEC);
    if (this.fd < 0) throw new SysError(errno(), 'watching the workspace (fs.inotify.max_user_instances)');
    const magic = filesystemType(o.lowerFd) ?? FUSE_SUPER_MAGIC;
    this.blind = BLIND.has(magic);
    this.changes = new OutsideChanges(o, magic);
  }

  /**
   * The mount is tested, and the kernel has the root's attributes. Not before: an invalidation of the root makes the
   * kernel drop the answer to a GETATTR that is on its way, and until it has one the root belongs to nobody.
   */
  start(): void {
    this.timer = setTimeout(() => this.begin(), WATCH_FROM_MS);
  }

  /** Whether inotify sees all that changes on this filesystem. */
  get seesAll(): boolean {
    return !this.blind;
  }

  /** Watches the lower directory of a node, if it is not watched yet. False: it cannot be. */
  add(node: Node): boolean {
    if (node.watch > 0) return true;
    if (this.blind || !this.begun || monotonicMs() < this.fullUntil) return false;
    const dir = this.o.dirFd(node);
    if (dir < 0) return false;
    const watch = inotifyAddWatch(this.fd, scratchCstring(`/proc/self/fd/${dir}`), MASK);
    if (watch < 0) {
      if (errno() === ENOSPC) this.fullUntil = monotonicMs() + FULL_MS;
      return false;
    }
    // One inode has one watch: a directory that came back as another node brings its old one along.
    const before = this.byWatch.get(watch);
    if (before) before.watch = 0;
    node.watch = watch;
    this.byWatch.set(watch, node);
    return true;
  }

  stop(): void {
    this.stopped = true;
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
    if (++this.removed >= MOST_REMOVED) this.drain();
  }

  /** A descriptor with which forget could write to the node's lower file is about to be closed. */
  closing(node: Node): void {
    // Nothing tells of it where nobody watches, or where the name is gone.
    const { link } = node;
    if (link && link.parent.watch > 0) this.ownCloses.add(nameKey(link.parent.watch, link.name));
  }

  /** Reads the events there are, for a while, and sends what follows from them in one go. */
  drain(): void {
    if (this.draining) return;
    this.draining = true;
    const until = monotonicMs() + ROUND_MS;
    do {
      const n = read(this.fd, this.buffer, this.buffer.length);
      if (n <= 0) {
        this.ownCloses.clear();
        this.removed = 0;
        break;
      }
      this.changes.nextEvents();
      this.events(n);
    } while (monotonicMs() < until);
    this.changes.tell();
    this.draining = false;
  }

  private begin(): void {
    this.begun = true;
    for (const node of this.o.table.all()) if (node.isDirectory && node.hasLower) this.add(node);
    // Nobody saw the close of a shared mapping before, which may have changed the bytes and not the ctime.
    this.surely = true;
    this.recheck();
  }

  private events(length: number): void {
    const { words } = this;
    for (let at = 0; at < length; ) {
      const word = at >> 2;
      const nameLength = words[word + 3]!;
      this.event(words[word]! | 0, words[word + 1]!, this.nameAt(at + 16, nameLength));
      at += 16 + nameLength;
    }
  }

  private nameAt(start: number, length: number): string {
    if (length === 0) return '';
    const end = nulAt(this.buffer, start);
    return this.buffer.latin1Slice(start, end < 0 ? start + length : Math.min(end, start + length));
  }

  private event(watch: number, mask: number, name: string): void {
    if (mask & IN_Q_OVERFLOW) {
      this.recheck();
      return;
    }
    const dir = this.byWatch.get(watch);
    if (!dir) return;
    if (mask & IN_IGNORED) {
      this.byWatch.delete(watch);
      dir.watch = 0;
    } else if (name === '') this.changes.directory(dir);
    else if (mask & NAMES_CHANGED) this.changes.name(dir, name);
    else this.changes.content(dir, name, this.isCloseOfOthers(watch, mask, name));
  }

  /**
   * Who wrote through a shared mapping causes no event before the file is closed, and changed the ctime perhaps long
   * before the bytes: such a close counts as a change, whatever the ctime says.
   */
  private isCloseOfOthers(watch: number, mask: number, name: string): boolean {
    return (mask & IN_CLOSE_WRITE) !== 0 && !this.ownCloses.delete(nameKey(watch, name));
  }

  /**
   * Nobody knows what has changed: the kernel's queue overflowed, or watches began only now. All that is known is
   * compared with the lower, in slices between requests.
   */
  private recheck(): void {
    const running = this.unchecked !== null;
    this.unchecked = this.o.table.all();
    if (!running) setImmediate(() => this.recheckSome());
  }

  private recheckSome(): void {
    if (this.stopped) return;
    const until = monotonicMs() + ROUND_MS;
    do {
      const { value: node, done } = this.unchecked!.next();
      if (done) {
        this.unchecked = null;
        this.surely = false;
      } else this.recheckNode(node);
    } while (this.unchecked && monotonicMs() < until);
    this.changes.tell();
    if (this.unchecked) setImmediate(() => this.recheckSome());
  }

  private recheckNode(node: Node): void {
    const { o, changes } = this;
    for (const { parent, name } of [...node.links()]) {
      changes.name(parent, name);
      changes.content(parent, name, this.surely);
    }
    if (!node.isDirectory || !node.hasLower) return;
    changes.directory(node);
    if (!node.absences) return;
    // Names that the kernel may hold to be absent.
    eachLowerEntry(o, node, (name) => {
      if (!node.kid(name)) changes.name(node, name);
    });
  }
}

function nameKey(watch: number, name: string): string {
  return `${watch}/${name}`;
}
