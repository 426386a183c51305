/**
 * What follows when something may have changed in the lower: it is compared with what forget knows, since its own
 * writes come back as events too, and what is no longer so is taken back from the kernel. State: what is to be said at
 * the end of this round.
 *
 * Own writes are told by the ctime that they left (Node.settledChange). A look at a file from inside is no reason to
 * leave an event out: the kernel may have thrown away the answer for an older one that arrived later.
 */
import { release } from 'node:os';
import { TMPFS_MAGIC } from '../sys/constants.ts';
import { Stat } from '../sys/stat.ts';
import { adopt, loseName } from './lookup.ts';
import { Node, Whiteout } from './node.ts';
import type { Overlay } from './overlay.ts';

/** ext4, XFS, btrfs, tmpfs: multigrain timestamps (FS_MGTIME). */
const FINE_TIMES = new Set([0xef53, 0x58465342, 0x9123683e, TMPFS_MAGIC]);

export class OutsideChanges {
  private readonly o: Overlay;
  private readonly fineTimes: boolean;
  private readonly st = new Stat();
  /** The name that `st` describes, if events that were read before are still worked off; and whether the lower has it. */
  private at: { dir: Node; name: string; exists: boolean } | null = null;
  /** Nodes whose attributes and pages the kernel is to drop. */
  private readonly changed = new Set<Node>();
  /** Directories in which something happened. */
  private readonly touched = new Set<Node>();

  /** `magic` is the lower's filesystem type (statfs). */
  constructor(o: Overlay, magic: number) {
    this.o = o;
    this.fineTimes = FINE_TIMES.has(magic) && kernelHasFineTimes();
  }

  /** A directory itself: its attributes, or something in it. */
  directory(dir: Node): void {
    this.touched.add(dir);
  }

  /** A name was made, removed or replaced. */
  name(dir: Node, name: string): void {
    const { o, st } = this;
    this.touched.add(dir);
    const kid = dir.kid(name);
    if (kid instanceof Whiteout || kid?.inUpper) return; // the lower does not show here
    const exists = this.look(dir, name);
    if (kid && exists && o.table.isSame(kid, st)) return;
    if (kid) {
      o.notifier.entry(dir.id, name, kid.isDirectory);
      // A name less, and perhaps the last one.
      o.notifier.attributes(kid.id);
      loseName(o, kid, dir, name);
    } else if (exists && dir.absences) o.notifier.entry(dir.id, name, false);
    const moved = exists ? o.table.find(st) : undefined;
    if (!moved || moved.inUpper) return;
    // A file or directory that is known came to this name: whoever is in it, or has it open, goes on there.
    adopt(o, dir, name, st, undefined);
    o.notifier.attributes(moved.id);
  }

  /** The content or the attributes of what a name leads to. `surely`: even if its ctime is the same. */
  content(dir: Node, name: string, surely: boolean): void {
    const { o, st } = this;
    const node = dir.kid(name);
    if (!(node instanceof Node) || node.inUpper) return;
    if (node.lookups === 0) {
      node.noCapability = false;
      return;
    }
    if (!this.look(dir, name) || !o.table.isSame(node, st)) return;
    if (!surely && this.fineTimes && node.settledChange === st.change) return;
    node.settledChange = st.change;
    node.noCapability = false;
    this.changed.add(node);
  }

  /** The next events happened after the last look. */
  nextEvents(): void {
    this.at = null;
  }

  /** Describes the lower's file of this name in `st`: once for the events of making it, writing and closing it. */
  private look(dir: Node, name: string): boolean {
    if (this.at?.dir !== dir || this.at.name !== name) {
      this.at = { dir, name, exists: this.o.lowerHas(dir, name, this.st) };
    }
    return this.at.exists;
  }

  /** Sends what follows from all that was said since the last time. */
  tell(): void {
    const { notifier } = this.o;
    this.nextEvents();
    for (const dir of this.touched) if (this.hasChanged(dir)) this.changed.add(dir);
    for (const node of this.changed) notifier.inode(node.id);
    this.touched.clear();
    this.changed.clear();
    notifier.flush();
  }

  private hasChanged(dir: Node): boolean {
    const fd = this.o.dirFd(dir);
    if (fd < 0 || this.st.of(fd) !== 0) return true;
    const before = dir.settledChange;
    dir.settledChange = this.st.change;
    return !this.fineTimes || before !== dir.settledChange;
  }
}

/**
 * From 6.13 on the kernel gives a file a new ctime for each change that comes after somebody looked at the last
 * one. Before, all changes within a tick of 1-10 ms share one, and equal ctimes prove nothing.
 */
export function kernelHasFineTimes(): boolean {
  const [major, minor] = release().split('.').map(Number) as [number, number];
  return major > 6 || (major === 6 && minor >= 13);
}
