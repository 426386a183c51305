/**
 * What a window holds against the lower: the overlay's nodes and whiteouts, each compared with what the lower has at the
 * same path now. A directory that is in the upper only to carry attributes, or only leads to something, is a change
 * where its own attributes differ.
 *
 * Nothing here goes through the mount: names are read from the nodes, and the lower from its root's descriptor.
 */
import { scratchCstring } from '../sys/bytes.ts';
import { O_CLOEXEC, O_NOFOLLOW, O_RDONLY, S_IFDIR, S_IFLNK, S_IFMT } from '../sys/constants.ts';
import { EACCES } from '../sys/errno.ts';
import { errno, openat, readlinkat } from '../sys/libc.ts';
import { Stat } from '../sys/stat.ts';
import { readTarget } from './attributes.ts';
import { ownDescriptor } from './elsewhere.ts';
import { LowerDirectory, openLowerFile, splitPath, withLowerDirectory } from './lower-path.ts';
import { type Node, Whiteout } from './node.ts';
import type { Overlay } from './overlay.ts';

/** What the lower has at a path. */
export interface LowerEntry {
  ino: number;
  dev: number;
  birth: number;
  /** Type and permissions. */
  mode: number;
  uid: number;
  gid: number;
  size: number;
  nlink: number;
  /** Stat.change: the ctime, as one number to compare. */
  change: number;
}

export interface Change {
  /** Byte string, relative to the root. */
  path: string;
  /** `changed`: the lower has something at this path too, perhaps of another type. */
  kind: 'created' | 'changed' | 'deleted';
  /** The file type's bits of the mode: in the view, or of what is deleted in the lower. */
  type: number;
  /** Its node, in the upper; null where it is deleted. */
  node: Node | null;
  /** Null where the lower has nothing there. */
  lower: LowerEntry | null;
  /** Where the lower has the file that stands at this path now, if the window moved it from there. */
  renamedFrom?: string;
}

/**
 * All that the window holds at this moment, parents before what is in them, but for deleted directories, which come
 * after it. What is held (DESIGN 3) is not among it.
 *
 * The view may go on changing between two steps: a node that is taken later must be asked whether it is still there.
 */
export function* walkChanges(o: Overlay): Generator<Change> {
  const root = new LowerDirectory(null, '', o.lowerFd);
  const { root: node } = o;
  if (node.inUpper) {
    const lower = entryOf(o.lowerFd, '.');
    if (lower && attributesDiffer(o, node, lower))
      yield { path: '', kind: 'changed', type: S_IFDIR, node, lower };
  }
  yield* changesIn(o, node, '', root);
}

/** The same as a list, with renames found. */
export function changesOf(o: Overlay): Change[] {
  const changes = [...walkChanges(o)];
  const gone = new Map<string, Change>();
  for (const change of changes) if (change.kind === 'deleted') gone.set(identity(change.lower!), change);
  for (const change of changes) {
    const { node } = change;
    if (!node || node.lowerIno === 0) continue;
    const from = gone.get(identity({ ino: node.lowerIno, dev: node.lowerDev, birth: node.birth }));
    if (from && from.type === node.type) change.renamedFrom = from.path;
  }
  return changes;
}

function identity({ ino, dev, birth }: Pick<LowerEntry, 'ino' | 'dev' | 'birth'>): string {
  return `${dev}:${ino}:${birth}`;
}

function* changesIn(o: Overlay, dir: Node, path: string, lower: LowerDirectory): Generator<Change> {
  for (const [name, kid] of dir.kids ?? []) {
    const at = path === '' ? name : `${path}/${name}`;
    if (kid instanceof Whiteout) yield* deletions(lower, at, name);
    else if (kid.inUpper) {
      if (!kid.held) yield* changesAt(o, kid, at, name, lower);
    } else if (kid.isDirectory && kid.kids) {
      const below = new LowerDirectory(lower, name);
      try {
        yield* changesIn(o, kid, at, below);
      } finally {
        below.close();
      }
    }
  }
}

/** A node in the upper. */
function* changesAt(
  o: Overlay,
  node: Node,
  path: string,
  name: string,
  parent: LowerDirectory,
): Generator<Change> {
  const dir = parent.descriptor();
  const lower = dir < 0 ? null : entryOf(dir, name);
  const isDirectory = lower !== null && (lower.mode & S_IFMT) === S_IFDIR;
  const change: Change = { path, kind: lower ? 'changed' : 'created', type: node.type, node, lower };
  if (!node.isDirectory) {
    if (isDirectory) yield* deletionsIn(new LowerDirectory(parent, name), path);
    yield change;
    return;
  }
  if (!isDirectory || attributesDiffer(o, node, lower!)) yield change;
  const below = new LowerDirectory(parent, name);
  try {
    // It stands in the place of the lower's own directory, nothing of which shows through.
    if (isDirectory && !node.hasLower) yield* deletionsIn(below, path, (entry) => !node.kid(entry));
    yield* changesIn(o, node, path, below);
  } finally {
    below.close();
  }
}

/** Whatever the lower has at a path that reads as absent. */
function* deletions(parent: LowerDirectory, path: string, name: string): Generator<Change> {
  const dir = parent.descriptor();
  const lower = dir < 0 ? null : entryOf(dir, name);
  if (!lower) return;
  const type = lower.mode & S_IFMT;
  if (type === S_IFDIR) yield* deletionsIn(new LowerDirectory(parent, name), path);
  yield { path, kind: 'deleted', type, node: null, lower };
}

function* deletionsIn(
  dir: LowerDirectory,
  path: string,
  isGone: (name: string) => boolean = () => true,
): Generator<Change> {
  try {
    const names = dir.names();
    if (typeof names === 'number') return;
    for (const name of names) if (isGone(name)) yield* deletions(dir, `${path}/${name}`, name);
  } finally {
    dir.close();
  }
}

const lowerStat = new Stat();
const upperStat = new Stat();

function entryOf(dir: number, name: string): LowerEntry | null {
  const st = lowerStat;
  if (st.at(dir, scratchCstring(name)) !== 0) return null;
  const { ino, dev, birth, mode, uid, gid, size, nlink, change } = st;
  return { ino, dev, birth, mode, uid, gid, size, nlink, change };
}

/** Times are not asked: each change in a directory moves them. */
function attributesDiffer(o: Overlay, node: Node, lower: LowerEntry): boolean {
  const st = upperStat;
  if (st.at(o.upper.fd, o.upper.name(node.upper)) !== 0) return true;
  return st.mode !== lower.mode || st.uid !== lower.uid || st.gid !== lower.gid;
}

/** What the lower has at a path now, or null. */
export function lowerEntryAt(o: Overlay, path: string): LowerEntry | null {
  if (path === '') return entryOf(o.lowerFd, '.');
  const [directory, name] = splitPath(path);
  return withLowerDirectory(o.lowerFd, directory, (dir) => (dir < 0 ? null : entryOf(dir, name)));
}

/**
 * A descriptor of the window's own version of a regular file, for reads that say where (pread); to be closed by the
 * caller. -errno where it is gone.
 */
export function openUpperSide(o: Overlay, change: Change): number {
  const { node } = change;
  if (!node?.inUpper) return openLowerFile(o.lowerFd, change.path);
  const open = () => openat(o.upper.fd, o.upper.name(node.upper), O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
  const fd = open();
  if (fd >= 0) return fd;
  const error = errno();
  if (error !== EACCES) return -error;
  // A server without capabilities is held to the mode: by a descriptor that it may have.
  const own = o.fileFd(node, false);
  return own < 0 ? own : ownDescriptor(own);
}

/** The same of the lower's version. */
export function openLowerSide(o: Overlay, change: Change): number {
  return openLowerFile(o.lowerFd, change.path);
}

/** Where a symlink leads, as a byte string, or -errno. */
export function upperTarget(o: Overlay, node: Node): string | number {
  const target = readTarget(o, node);
  return typeof target === 'number' ? -target : target.latin1Slice(0, target.length);
}

const targetBuffer = Buffer.alloc(4096);

export function lowerTarget(o: Overlay, change: Change): string | number {
  if (!change.lower || (change.lower.mode & S_IFMT) !== S_IFLNK) return '';
  const [directory, name] = splitPath(change.path);
  return withLowerDirectory(o.lowerFd, directory, (dir) => {
    if (dir < 0) return dir;
    const n = readlinkat(dir, scratchCstring(name), targetBuffer, targetBuffer.length);
    return n < 0 ? -errno() : targetBuffer.latin1Slice(0, n);
  });
}
