/**
 * All nodes: by the id the kernel knows them by, and by the lower inode they stand for, so that hard links in
 * the lower are one node here.
 */
import { ROOT_ID } from '../fuse/abi.ts';
import { S_IFDIR, S_IFMT } from '../sys/constants.ts';
import type { Stat } from '../sys/stat.ts';
import { Node, Whiteout } from './node.ts';

/** Inode numbers from here on are forget's own: above what filesystems use, exact as a double. */
const OWN_INODES = 2 ** 51;
/** What is added to a lower inode number that the view shows for another file already. */
const SECOND_USE = 2 ** 52;

/** Lower inodes that were created in a window, with their birth. */
export type Born = Map<number, number>;

export class NodeTable {
  readonly root: Node;
  private readonly byId = new Map<number, Node>();
  private readonly byInode = new Map<number, Node>();
  /** Lower inodes on other filesystems that are mounted below the root, by "device:inode". */
  private readonly foreign = new Map<string, Node>();
  /** Lower inodes created in this window, with their birth: a node may be forgotten and come back. */
  private born: Born = new Map();
  /** Inode numbers that nodes of the upper brought from the lower, where they are free for others by now. */
  private readonly takenAlong = new Set<number>();
  /** Of lower files with several names: those that the view does not show, by inode, with its birth. */
  private readonly hiddenNames = new Map<number, { birth: number; names: Set<string> }>();
  private nextId = ROOT_ID + 1;
  private readonly device: number;

  /** `st` describes the root of the lower. */
  constructor(st: Stat) {
    this.device = st.dev;
    this.root = new Node(ROOT_ID, S_IFDIR, st.ino);
    this.root.hasLower = true;
    this.root.lookups = 1;
    this.identify(this.root, st);
    this.byId.set(ROOT_ID, this.root);
  }

  get size(): number {
    return this.byId.size;
  }

  get(id: number): Node | undefined {
    return this.byId.get(id);
  }

  all(): IterableIterator<Node> {
    return this.byId.values();
  }

  /** A node born in the upper. */
  create(type: number): Node {
    const id = this.nextId++;
    const node = new Node(id, type, OWN_INODES + id);
    this.byId.set(id, node);
    return node;
  }

  /**
   * Another node for what this one stood for in the lower: it is dead, and nobody sees it any more, or it lives on in the
   * upper, and its inode number with it.
   */
  successor(node: Node): Node {
    const id = this.nextId++;
    const made = new Node(id, node.type, node.dead ? node.ino : OWN_INODES + id);
    this.byId.set(made.id, made);
    made.line = node.line;
    made.lowerIno = node.lowerIno;
    made.lowerDev = node.lowerDev;
    made.birth = node.birth;
    made.hasLower = made.lowerIno !== 0;
    made.settledChange = node.settledChange;
    this.anonymise(node);
    if (made.lowerIno !== 0) {
      if (made.lowerDev === this.device) this.byInode.set(made.lowerIno, made);
      else this.foreign.set(`${made.lowerDev}:${made.lowerIno}`, made);
    }
    return made;
  }

  /** Whether the record describes the lower inode that this node stands for. */
  isSame(node: Node, st: Stat): boolean {
    return (
      node.lowerIno === st.ino &&
      node.lowerDev === st.dev &&
      node.type === (st.mode & S_IFMT) &&
      (node.birth === st.birth || st.birth === 0)
    );
  }

  /** The node of a lower inode that is already known, by whichever name. */
  find(st: Stat): Node | undefined {
    const node = st.dev === this.device ? this.byInode.get(st.ino) : this.foreign.get(`${st.dev}:${st.ino}`);
    return node && this.isSame(node, st) ? node : undefined;
  }

  /** A new node for a lower inode. An older node of the same number stands for a file that is gone. */
  adopt(st: Stat): Node {
    const id = this.nextId++;
    // A second filesystem below the root may use the same numbers again; the view is one device.
    const node = new Node(
      id,
      st.mode & S_IFMT,
      st.dev === this.device ? this.shown(st.ino) : OWN_INODES + id,
    );
    node.hasLower = node.isDirectory;
    this.identify(node, st);
    if (this.wasBorn(st)) node.born = true;
    this.byId.set(id, node);
    return node;
  }

  /** The number to show for a lower inode: its own, unless a file in the upper goes by that. */
  private shown(ino: number): number {
    const before = this.byInode.get(ino);
    // It was replaced outside, and its node is kept by the upper.
    if (before?.inUpper && before.ino === ino) this.takenAlong.add(ino);
    return this.takenAlong.has(ino) ? SECOND_USE + ino : ino;
  }

  /** The node was created in this window, in the lower. */
  noteBorn(node: Node): void {
    node.born = true;
    if (node.lowerDev === this.device) this.born.set(node.lowerIno, node.birth);
  }

  /** Whether the lower inode that the record describes was created in this window. */
  wasBorn(st: Stat): boolean {
    return st.dev === this.device && this.born.get(st.ino) === st.birth;
  }

  /** A window opens: what was created before is older than it. Returns what that was. */
  takeBorn(): Born {
    const { born } = this;
    this.setBorn(new Map());
    return born;
  }

  /** The window on top is another one now, and these were created in it. */
  setBorn(born: Born): void {
    const before = this.born;
    this.born = born;
    for (const ino of new Set([...before.keys(), ...born.keys()])) {
      const node = this.byInode.get(ino);
      if (node) node.born = born.get(ino) === node.birth;
    }
    for (const node of this.foreign.values()) node.born = false;
  }

  /** No name of the lower is hidden any more, until `noteHidden` says so again. */
  showAllNames(): void {
    this.hiddenNames.clear();
  }

  /** The node leaves the upper for good: what it brought along from the lower is the lower's again. */
  leaveUpper(node: Node): void {
    this.takenAlong.delete(node.ino);
  }

  /** The view shows the node and, as another file, the lower inode that it was copied from. */
  part(node: Node): void {
    if (node.lowerIno !== 0 && node.ino === node.lowerIno) this.takenAlong.add(node.ino);
    this.anonymise(node);
  }

  /** Its lower file is gone, and the inode number free for others. */
  noteGone(node: Node): void {
    node.born = false;
    if (node.inUpper && node.ino === node.lowerIno) this.takenAlong.add(node.ino);
    if (node.lowerDev === this.device) this.born.delete(node.lowerIno);
  }

  /** The lower file that the record describes is not shown under this name any more. */
  noteHidden(st: Stat, parent: Node, name: string): void {
    if (st.nlink < 2 || st.dev !== this.device) return;
    let known = this.hiddenNames.get(st.ino);
    if (known?.birth !== st.birth) known = { birth: st.birth, names: new Set() };
    this.hiddenNames.set(st.ino, known);
    known.names.add(`${parent.id}/${name}`);
  }

  /** The lower has a file of the window's own in the place of one that was hidden there. */
  noteReplaced(ino: number, parent: Node, name: string): void {
    this.hiddenNames.get(ino)?.names.delete(`${parent.id}/${name}`);
  }

  /** How many names the view shows of a lower file, which the record describes, looked up or not. */
  shownNames(st: Stat): number {
    const hidden = st.dev === this.device ? this.hiddenNames.get(st.ino) : undefined;
    return hidden?.birth === st.birth ? Math.max(0, st.nlink - hidden.names.size) : st.nlink;
  }

  /** Makes the lower inode of the record the one that this node stands for. */
  identify(node: Node, st: Stat): void {
    this.anonymise(node);
    node.lowerIno = st.ino;
    node.lowerDev = st.dev;
    node.birth = st.birth;
    node.settledChange = st.change;
    if (st.dev === this.device) this.byInode.set(st.ino, node);
    else this.foreign.set(`${st.dev}:${st.ino}`, node);
  }

  /** The node no longer stands for any lower inode. */
  anonymise(node: Node): void {
    if (node.lowerIno === 0) return;
    if (node.lowerDev === this.device) {
      if (this.byInode.get(node.lowerIno) === node) this.byInode.delete(node.lowerIno);
    } else {
      const key = `${node.lowerDev}:${node.lowerIno}`;
      if (this.foreign.get(key) === node) this.foreign.delete(key);
    }
    node.lowerIno = 0;
  }

  /**
   * Whether nothing needs the node any more: the kernel does not know it, no directory of the overlay leads to
   * it, nor will another of its lower names, and nothing below it does either.
   */
  isIdle(node: Node): boolean {
    if (node.lookups > 0 || node === this.root) return false;
    if (node.waiting || node.pins > 0) return false;
    if (node.inUpper && node.linkCount + node.unseenNames > 0) return false;
    return !node.kids || node.kids.size === 0;
  }

  /**
   * Drops an idle node, and its parents as far as they are idle by it. Returns those that went, so that their
   * descriptors can be closed.
   */
  drop(node: Node): Node[] {
    const gone: Node[] = [];
    const queue = [node];
    for (let next = queue.pop(); next; next = queue.pop()) {
      if (!this.isIdle(next) || !this.byId.delete(next.id)) continue;
      if (next.inUpper) this.takenAlong.delete(next.ino);
      this.anonymise(next);
      for (const { parent, name } of [...next.links()]) {
        next.removeLink(parent, name);
        queue.push(parent);
      }
      gone.push(next);
    }
    return gone;
  }

  /** The nodes in the upper, and the whiteouts, at or below a directory. */
  overlayBelow(dir: Node): boolean {
    for (const kid of dir.kids?.values() ?? []) {
      if (kid instanceof Whiteout || kid.inUpper) return true;
      if (kid.isDirectory && this.overlayBelow(kid)) return true;
    }
    return false;
  }
}
