/**
 * Node, Whiteout: what the merged view is made of.
 *
 * A Node is one file for the whole of its life, whatever its names and whichever layer it is in: the kernel's
 * node id stays, `st_ino` stays, and every operation goes to the layer the node is in *now*. Its names are
 * Links; a name in a directory leads to a Node or to a Whiteout.
 *
 * A directory's `kids` hold two sorts of entries. Those that lead to a node in the upper, and whiteouts, are the
 * overlay itself: nothing else knows of them. Those that lead to a node in the lower are only what the kernel
 * has looked up: the lower is asked again each time, and they go when the kernel forgets.
 */
import type { Deferred } from '../fuse/handler.ts';
import { S_IFDIR, S_IFREG } from '../sys/constants.ts';
import type { Base } from './bases.ts';

/** What a node's descriptor is good for. */
export const NO_FD = 0;
export const PATH_FD = 1;
export const READ_FD = 2;
export const WRITE_FD = 3;

export interface Link {
  parent: Node;
  name: string;
}

/** A name that reads as absent. */
export class Whiteout {
  /**
   * Of a lower directory that was removed in the view but still stands, because protected files are hidden in
   * it: the whiteouts in it. `mkdir` of the same name finds it again, with all that was hidden still hidden.
   */
  readonly hidden: Map<string, Whiteout> | null;
  /** Of such a directory: what those whiteouts cover. */
  readonly bases: Map<string, Base> | null;
  constructor(hidden: Map<string, Whiteout> | null = null, bases: Map<string, Base> | null = null) {
    this.hidden = hidden;
    this.bases = hidden && bases;
  }
}

/** Over the names that forget itself makes in the lower for a moment. */
export const OWN_NAME = new Whiteout();

export type Kid = Node | Whiteout;

export class Node {
  readonly id: number;
  /** The file type's bits of the mode. */
  readonly type: number;
  /** `st_ino` as shown: never 0, the same before and after copy-up. */
  readonly ino: number;
  /** Its id, or of the node whose place it took (NodeTable.successor). */
  line: number;
  /** The kernel's count of look-ups: the node id is known to it while this is above 0. */
  lookups = 0;

  /** The number of its object in the upper; 0 while it is in the lower. */
  upper = 0;
  /** The window that made the object, or brought it up. To a window that was opened later it is frozen (window-stack.ts). */
  owner = 0;
  /** How many states of outer windows it is part of: it comes back when those above them are closed. */
  pins = 0;
  /** The inode in the lower that this node is or was copied from; 0 for one that was born in the upper. */
  lowerIno = 0;
  lowerDev = 0;
  /** The lower inode's birth, since inode numbers come back (see Stat.birth). */
  birth = 0;
  /** Of a copy in the upper: the lower's time of birth (Stat.birthWords). */
  copiedBirth: Uint32Array | null = null;
  /** Directories: a lower directory at this node's path shows through. */
  hasLower = false;

  /** Its first name, and the further ones of a file with hard links. None: the file is unlinked but open. */
  link: Link | null = null;
  moreLinks: Link[] | null = null;
  kids: Map<string, Kid> | null = null;
  /** Its one name in the lower is removed, in the view alone. */
  hidden = false;
  /** Paths of the lower by which it was known when the view left them: where it is again after the window. */
  origin: string[] | null = null;
  /** Of a copy in the upper: how many more names the lower has of it, that nobody has looked up yet. */
  unseenNames = 0;
  /** How many of its kids are directories, and how many of those the lower does not have. */
  subdirectories = 0;
  upperSubdirectories = 0;
  /** Names of subdirectories that the lower has, and the view does not show in their place. */
  hiddenSubdirectories: Set<string> | null = null;
  /** Which listing of the directory is the last one (listing.ts). */
  listingGeneration = 0;

  /** Directories: what the lower had at names that the overlay covers (bases.ts). */
  bases: Map<string, Base> | null = null;
  /**
   * A directory that the kernel has removed: it lets nobody look into that inode again (S_DEAD), so what comes back in
   * its place is another node.
   */
  dead = false;
  successor: Node | null = null;

  /** Directories: counted by the parent as one that the lower does not have. */
  private upperOnly = false;

  /** A name of it is protected, or it came to its name from one that was: writes belong in the upper. */
  protected = false;
  /** First created in this window, by an unprotected name, in the lower. */
  born = false;
  /** A new file of the lower that nobody has given file capabilities: the kernel asks for them before it writes. */
  noCapability = false;
  /** Written through the view, and noted (written-files.ts). */
  recorded = false;
  /** In the upper only because its name tells nothing of its target yet (DESIGN 3, "Held"). */
  held = false;

  fd = -1;
  fdKind: number = NO_FD;
  /** Looked at by the descriptor cache's clock. */
  fdUsed = false;
  /** Its place in the descriptor cache's queue. */
  fdIndex = -1;
  /** The inotify watch on the lower directory, or 0. */
  watch = 0;
  /** The mode that was shown last has setuid or setgid in it. */
  setid = false;
  /**
   * The lower's ctime (Stat.change) up to which there is nothing to take back from the kernel: of when the node became
   * known, of the last change of others that was told, or of forget's own last change (watch.ts).
   */
  settledChange = 0;
  /** Directories: the kernel was told for a name in it that there is none, and may keep that. */
  absences = false;
  /** The ctime of its object in the upper when that was last kept: the same file is in the lower while it is the same. */
  kept = 0;
  /** A window's close gave it another size, which the kernel may not have asked for yet: appends tell (content.ts). */
  endUnsure = false;
  /** When the view of a lower directory last changed without the lower changing: ms since the epoch, or 0. */
  overlayChange = 0;
  /** Requests that wait until this node is copied up. */
  waiting: Deferred[] | null = null;

  constructor(id: number, type: number, ino: number) {
    this.id = id;
    this.line = id;
    this.type = type;
    this.ino = ino;
  }

  get isDirectory(): boolean {
    return this.type === S_IFDIR;
  }
  get isRegular(): boolean {
    return this.type === S_IFREG;
  }
  get inUpper(): boolean {
    return this.upper !== 0;
  }
  get linkCount(): number {
    return (this.link ? 1 : 0) + (this.moreLinks?.length ?? 0);
  }

  /** Directories in the upper: the lower has one in the same place now, all of whose content the overlay covers. */
  gainLower(): void {
    this.hasLower = true;
    if (this.upperOnly && this.link) this.link.parent.upperSubdirectories--;
    this.upperOnly = false;
  }

  kid(name: string): Kid | undefined {
    return this.kids?.get(name);
  }

  addLink(parent: Node, name: string): void {
    this.hidden = false;
    if (!this.link) this.link = { parent, name };
    else {
      this.moreLinks ??= [];
      this.moreLinks.push({ parent, name });
    }
    parent.kids ??= new Map();
    parent.kids.set(name, this);
    if (!this.isDirectory) return;
    parent.subdirectories++;
    this.upperOnly = this.inUpper && !this.hasLower;
    if (this.upperOnly) parent.upperSubdirectories++;
  }

  /** Takes the name away; the parent's entry goes too if it still leads here. */
  removeLink(parent: Node, name: string): void {
    if (parent.kids?.get(name) === this) {
      parent.kids.delete(name);
      if (this.isDirectory) parent.subdirectories--;
      if (this.upperOnly) parent.upperSubdirectories--;
    }
    const more = this.moreLinks;
    if (this.link?.parent === parent && this.link.name === name) {
      this.link = more?.shift() ?? null;
    } else if (more) {
      const at = more.findIndex((link) => link.parent === parent && link.name === name);
      if (at >= 0) more.splice(at, 1);
    }
    if (more?.length === 0) this.moreLinks = null;
  }

  /** The directory is gone from the view: nothing below it has a name any more. */
  dropKids(): void {
    this.kids = null;
    this.subdirectories = 0;
    this.upperSubdirectories = 0;
    this.hiddenSubdirectories = null;
  }

  /** Every name it is known by. */
  *links(): Generator<Link> {
    if (this.link) yield this.link;
    if (this.moreLinks) yield* this.moreLinks;
  }
}

/**
 * The path of `name` in `parent`, relative to the root, or undefined where a directory on the way is no longer
 * linked.
 */
export function pathIn(parent: Node, name: string, root: Node): string | undefined {
  let path = name;
  for (let dir = parent; dir !== root; ) {
    const link = dir.link;
    if (!link) return undefined;
    path = `${link.name}/${path}`;
    dir = link.parent;
  }
  return path;
}

/** The node's path by its first name; '' for the root; undefined for one that has no name any more. */
export function pathOf(node: Node, root: Node): string | undefined {
  if (node === root) return '';
  return node.link ? pathIn(node.link.parent, node.link.name, root) : undefined;
}
