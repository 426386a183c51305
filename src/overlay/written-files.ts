/**
 * Which unprotected files were written through the view, for the look at the close (window/escapes): what of the
 * window's protected text stands in them is an escape. State: the path of each at its first write, the moves of
 * directories since, and the texts that stood in unprotected files before they were changed.
 *
 * On the way of every write there is only `node.recorded` to be asked.
 */
import { scratchCstring } from '../sys/bytes.ts';
import { AT_FDCWD, O_CLOEXEC, O_NOATIME, O_NONBLOCK, O_RDONLY, RWF_NOWAIT } from '../sys/constants.ts';
import { iovecOf } from '../sys/iovec.ts';
import { addressOf, close, openat, preadv2 } from '../sys/libc.ts';
import { Stat } from '../sys/stat.ts';
import type { Program } from './ledger.ts';
import type { Node } from './node.ts';
import type { Overlay } from './overlay.ts';

/** What is past this is counted only. */
const MOST_PATHS = 20_000;
/** An `npm ci` writes more: what programs install must not take the room of what people write. */
const MOST_INSTALLED = 5_000;
const INSTALLED = /(?:^|\/)(?:node_modules|\.venv|venv|site-packages|target|vendor|__pycache__)\//;
const MOST_MOVES = 1_000;
/** Looks at what a file holds before it changes: 20-30 us each. */
const MOST_EARLIER = 2_000;
const EARLIER_BYTES = 8 << 20;
const EARLIER_FILE_BYTES = 256 << 10;

/** Whether a path is where programs install things, and not where people write. */
export function isInstalled(path: string): boolean {
  return INSTALLED.test(path);
}

export interface WrittenFile {
  /** Byte string, relative to the root: where it stands by now, as far as the view knows. */
  path: string;
  /** Who wrote it first, where that was known at the time. */
  program: Program | undefined;
}

export interface EarlierText {
  text: Buffer;
  /** When it was written at the latest: ms since the epoch. */
  time: number;
}

export class WrittenFiles {
  private readonly records = new Map<string, { program: Program | undefined; moves: number }>();
  private readonly moves: { from: string; to: string }[] = [];
  private readonly before: EarlierText[] = [];
  private installed = 0;
  private looks = 0;
  private beforeBytes = 0;
  /** Files that were written and are not among `files`. */
  missed = 0;

  /** Before the first write to an unprotected file. */
  note(o: Overlay, node: Node, pid: number): void {
    if (o.window === 0) return;
    node.recorded = true;
    const { link } = node;
    const path = link ? o.path(link.parent, link.name) : undefined;
    if (path === undefined) return; // an O_TMPFILE: noted when it is linked
    this.keepEarlier(o, node);
    this.add(path, o.ledger.isEmpty || pid <= 0 ? undefined : o.ledger.programOf(pid));
  }

  /** Before an unprotected file is cut: by `O_TRUNC`, to be written anew. */
  cutting(o: Overlay, node: Node, pid: number): void {
    if (node.recorded) this.keepEarlier(o, node);
    else this.note(o, node, pid);
  }

  private add(path: string, program: Program | undefined): void {
    const known = this.records.get(path);
    if (known) known.moves = this.moves.length;
    else if (this.hasRoom(path)) this.records.set(path, { program, moves: this.moves.length });
    else this.missed++;
  }

  private hasRoom(path: string): boolean {
    if (!isInstalled(path)) return this.records.size - this.installed < MOST_PATHS;
    if (this.installed >= MOST_INSTALLED) return false;
    this.installed++;
    return true;
  }

  /** A file or directory of the lower has another name, or one more. */
  moved(node: Node, from: string | undefined, to: string | undefined): void {
    if (to === undefined) return;
    if (!node.isDirectory) {
      if (node.recorded) this.add(to, from === undefined ? undefined : this.records.get(from)?.program);
    } else if (from !== undefined && this.records.size > 0) {
      if (this.moves.length < MOST_MOVES) this.moves.push({ from, to });
      else this.missed++;
    }
  }

  /** Before an unprotected file is changed for the first time, cut, replaced or removed: what stands in it. */
  keepEarlier(o: Overlay, node: Node): void {
    // Until something protected was written there is nothing to tell it from.
    if (!node.isRegular || o.ledger.isEmpty) return;
    if (this.looks >= MOST_EARLIER || this.beforeBytes >= EARLIER_BYTES) return;
    this.looks++;
    const earlier = readCached(o, node);
    if (!earlier) return;
    this.before.push(earlier);
    this.beforeBytes += earlier.text.length;
  }

  /** Texts that stood in the workspace and do not any more; not all of them. */
  get earlier(): readonly EarlierText[] {
    return this.before;
  }

  files(): WrittenFile[] {
    return [...this.records].map(([path, { program, moves }]) => ({
      path: this.moves.slice(moves).reduce(follow, path),
      program,
    }));
  }
}

function follow(path: string, { from, to }: { from: string; to: string }): string {
  return path.startsWith(`${from}/`) ? to + path.slice(from.length) : path;
}

const stat = new Stat();
/** A NUL this far in front: no text. */
const SNIFFED = 1024;

/** What the page cache has of a lower file: who changes a text has mostly just read it. Nobody waits for a disk here. */
function readCached(o: Overlay, node: Node): EarlierText | undefined {
  const path = o.pathFd(node);
  if (path < 0 || stat.of(path) !== 0 || stat.size === 0 || stat.size > EARLIER_FILE_BYTES) return undefined;
  // By a descriptor of its own: a read leaves its time in the file, which only the writer is to change.
  const flags = O_RDONLY | O_NOATIME | O_NONBLOCK | O_CLOEXEC;
  const fd = openat(AT_FDCWD, scratchCstring(`/proc/self/fd/${path}`), flags, 0);
  if (fd < 0) return undefined;
  const bytes = Buffer.allocUnsafeSlow(stat.size);
  const waits = o.mute.get(node.lowerDev)?.ram ? 0 : RWF_NOWAIT;
  const n = preadv2(fd, iovecOf(Number(addressOf(bytes)), bytes.length), 1, 0, waits);
  close(fd);
  if (n <= 0 || bytes.subarray(0, Math.min(n, SNIFFED)).includes(0)) return undefined;
  return { text: bytes.subarray(0, n), time: stat.change / 1e6 };
}
