/**
 * READDIR and READDIRPLUS. Without OPENDIR there is no handle to keep a position in, so each name of a directory
 * gets a place of its own, once, that stays its own while the directory is being read: entries may come and go
 * between two requests, and none is seen twice or missed.
 *
 * A cookie is the place and the generation of the listing, which is another one after each change. The kernel keeps what
 * one reader was told, and whoever continues at a cookie that is in there continues in there (fuse_readdir_cached looks
 * whether the directory has changed at the beginning only): a reader that began after a name was removed would meet it
 * again in what an older reader was told.
 */
import type { Reply, Validity } from '../fuse/reply.ts';
import { direntPlusSize } from '../fuse/reply.ts';
import { nulAt, scratchCstring } from '../sys/bytes.ts';
import { O_CLOEXEC, O_DIRECTORY, O_RDONLY } from '../sys/constants.ts';
import { ENOTDIR, ESTALE, SysError } from '../sys/errno.ts';
import { close, errno, getdents64, openat } from '../sys/libc.ts';
import { findChild, validityOf } from './lookup.ts';
import { type Node, Whiteout } from './node.ts';
import type { Overlay } from './overlay.ts';

const TWO_32 = 2 ** 32;
const NOTHING: Validity = { entry: 0, attr: 0 };
const DT_DIR = 4;
/** Entries of listings that are kept although nobody seems to be in the middle of one: about 100 MB at the most. */
const KEPT = 500_000;
/** Entries of listings at all. Who is in the middle of an older one then goes on in a new one, whose places may be others. */
const MOST = 2_000_000;
/** Places of `.` and `..`; 0 is the beginning. */
const DOT = 1;
const DOT_DOT = 2;
const FIRST_PLACE = 3;
/** A cookie is `place * GENERATIONS + generation`: in 31 bits, as programs of 32 bits need it, up to a million places. */
const GENERATIONS = 2048;
const dents = Buffer.alloc(256 << 10);
/** The same in halves and words: each record begins at a multiple of 8. */
const halves = new Uint16Array(dents.buffer, dents.byteOffset, dents.length / 2);
const words = new Uint32Array(dents.buffer, dents.byteOffset, dents.length / 4);

interface Entry {
  name: string;
  ino: number;
  /** DT_DIR and the like: the file type's bits, shifted down. */
  type: number;
  place: number;
}

interface Listing {
  /** In the order of their places. */
  entries: Entry[];
  /** The place for the next new name. */
  next: number;
  /** Who began to read and has not come to the end: some of them never will. */
  readers: number;
}

/** Those with readers, and those without: the oldest first. */
const inUse = new Map<Node, Listing>();
const unused = new Map<Node, Listing>();
/** Entries of all of them. */
let total = 0;

/** A readable descriptor of a directory's lower, to be closed by the caller; or -errno. */
export function openDirectory(o: Overlay, node: Node): number {
  const dir = o.dirFd(node);
  if (dir < 0) return dir;
  const fd = openat(dir, scratchCstring('.'), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  return fd < 0 ? -errno() : fd;
}

/** Calls back for each entry of the lower directory, without `.` and `..`. Returns 0 or an errno. */
export function eachLowerEntry(
  o: Overlay,
  node: Node,
  each: (name: string, ino: number, type: number) => void,
): number {
  const fd = openDirectory(o, node);
  if (fd < 0) return -fd;
  try {
    return eachEntry(fd, each);
  } finally {
    close(fd);
  }
}

/** The same for a directory that is open for reading. */
export function eachEntry(fd: number, each: (name: string, ino: number, type: number) => void): number {
  for (;;) {
    const n = getdents64(fd, dents, dents.length);
    if (n < 0) return errno();
    if (n === 0) return 0;
    for (let at = 0; at < n; at += halves[(at + 16) >> 1]!) {
      const name = dents.latin1Slice(at + 19, nulAt(dents, at + 19));
      if (name === '.' || name === '..') continue;
      each(name, words[at >> 2]! + words[(at >> 2) + 1]! * TWO_32, dents[at + 18]!);
    }
  }
}

/** Everything that the view shows in a directory, in no order; `.` and `..` are not among it. */
function* overlayEntries(node: Node): Generator<[string, Node]> {
  for (const [name, kid] of node.kids ?? []) if (!(kid instanceof Whiteout) && kid.inUpper) yield [name, kid];
}

/** The lower's entry shows through: nothing in the overlay covers or hides it. */
function shows(o: Overlay, node: Node, name: string): boolean {
  const kid = node.kid(name);
  if (kid instanceof Whiteout || kid?.inUpper) return false;
  return !(o.hide && o.isProtectedName(node, name));
}

/** Whether the view of a directory is empty. Throws SysError. */
export function isEmptyInView(o: Overlay, node: Node): boolean {
  for (const _ of overlayEntries(node)) return false;
  if (!node.hasLower) return true;
  let empty = true;
  const error = eachLowerEntry(o, node, (name) => {
    if (empty && shows(o, node, name)) empty = false;
  });
  if (error) throw new SysError(error, 'reading a directory');
  return empty;
}

/**
 * The upper's own directory is empty; reading it moves its access time as the kernel's rules have it (relatime). Where its
 * mode bars this server, the time stays.
 */
function readUpperDirectory(o: Overlay, node: Node): void {
  const fd = openat(o.upper.fd, o.upper.name(node.upper), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0) return;
  getdents64(fd, dents, dents.length);
  close(fd);
}

/** Reads the directory anew for one more reader. Names keep their places. Throws SysError. */
function buildListing(o: Overlay, node: Node): Listing {
  o.watchDirectory(node);
  if (node.inUpper) readUpperDirectory(o, node);
  const before = listingOf(node);
  const known = before && new Map(before.entries.map((entry) => [entry.name, entry]));
  const listing: Listing = { entries: [], next: before?.next ?? FIRST_PLACE, readers: 0 };
  let same = 0;
  const add = (name: string, ino: number, type: number) => {
    const old = known?.get(name);
    if (old?.ino === ino && old.type === type) same++;
    listing.entries.push({ name, ino, type, place: old?.place ?? listing.next++ });
  };
  if (node.hasLower) {
    const error = eachLowerEntry(o, node, (name, ino, type) => {
      if (!shows(o, node, name)) return;
      const kid = node.kid(name);
      add(name, kid instanceof Whiteout || !kid ? ino : kid.ino, type);
    });
    if (error) throw new SysError(error, 'reading a directory');
  }
  for (const [name, kid] of overlayEntries(node)) add(name, kid.ino, kid.type >> 12);
  if (known) listing.entries.sort((a, b) => a.place - b.place);
  const unchanged = same === listing.entries.length && same === before?.entries.length;
  if (!unchanged) node.listingGeneration = (node.listingGeneration + 1) % GENERATIONS;
  dropListing(node);
  total += listing.entries.length;
  setReaders(node, listing, (before?.readers ?? 0) + 1);
  return listing;
}

function listingOf(node: Node): Listing | undefined {
  return inUse.get(node) ?? unused.get(node);
}

function setReaders(node: Node, listing: Listing, readers: number): void {
  listing.readers = readers;
  inUse.delete(node);
  unused.delete(node);
  (readers > 0 ? inUse : unused).set(node, listing);
  makeRoom(node);
}

/** Listings that nobody reads go first. */
function makeRoom(current: Node): void {
  if (total <= KEPT) return;
  for (const [most, map] of [
    [KEPT, unused],
    [MOST, inUse],
  ] as const) {
    for (const [oldest] of map) {
      if (total <= most) return;
      if (oldest !== current) dropListing(oldest);
    }
  }
}

export function readdir(
  o: Overlay,
  id: number,
  cookie: number,
  size: number,
  plus: boolean,
  reply: Reply,
): number {
  const node = o.node(id);
  if (!node) return ESTALE;
  if (!node.isDirectory) return ENOTDIR;
  // A directory that was removed while somebody reads it has nothing in it.
  if (node !== o.root && !node.link) return 0;
  const listing = (cookie !== 0 && listingOf(node)) || buildListing(o, node);
  const place = Math.floor(cookie / GENERATIONS);
  if (place < DOT_DOT && !putDots(o, node, place, size, plus, reply)) return 0;
  for (let i = firstAfter(listing.entries, place); i < listing.entries.length; i++) {
    if (!putEntry(o, node, listing.entries[i]!, size, plus, reply)) break;
  }
  if (reply.size === 0) setReaders(node, listing, Math.max(0, listing.readers - 1));
  return 0;
}

function cookieOf(dir: Node, place: number): number {
  return place * GENERATIONS + dir.listingGeneration;
}

/** The index of the first entry whose place is above the given one. */
function firstAfter(entries: Entry[], place: number): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (entries[middle]!.place > place) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** `.` and `..`, as far as they come after a place. For READDIRPLUS the kernel wants no node of them. */
function putDots(o: Overlay, node: Node, after: number, size: number, plus: boolean, reply: Reply): boolean {
  const parent = node.link?.parent ?? o.root;
  return (
    (after >= DOT ||
      putBare(node, { name: '.', ino: node.ino, type: DT_DIR, place: DOT }, size, plus, reply)) &&
    putBare(node, { name: '..', ino: parent.ino, type: DT_DIR, place: DOT_DOT }, size, plus, reply)
  );
}

/** An entry without a node, which makes the kernel look it up if anybody asks. */
function putBare(dir: Node, entry: Entry, size: number, plus: boolean, reply: Reply): boolean {
  if (plus) {
    if (reply.size + direntPlusSize(entry.name.length) > size) return false;
    reply.putEntry(0, NOTHING, null);
  }
  return reply.putDirent(entry.ino, cookieOf(dir, entry.place), entry.type, entry.name, size);
}

function putEntry(o: Overlay, dir: Node, entry: Entry, size: number, plus: boolean, reply: Reply): boolean {
  if (!plus) return putBare(dir, entry, size, plus, reply);
  if (reply.size + direntPlusSize(entry.name.length) > size) return false;
  const st = o.stat;
  const found = findChild(o, dir, entry.name, st);
  // It went away meanwhile.
  if (typeof found === 'number') return putBare(dir, entry, size, plus, reply);
  found.lookups++;
  reply.putEntry(found.id, validityOf(o, dir, found, st), st);
  return reply.putDirent(found.ino, cookieOf(dir, entry.place), found.type >> 12, entry.name, size);
}

/** The directory's node is gone: so is its listing. */
export function dropListing(node: Node): void {
  total -= listingOf(node)?.entries.length ?? 0;
  inUse.delete(node);
  unused.delete(node);
}
