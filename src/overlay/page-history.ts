/**
 * When the window's own text came to be: how its pages grew, and what stood in them before they were rewritten. The look
 * at the close (window/escapes) needs it to tell a page that was copied into a source file from one that quotes it.
 *
 * State: for each page in the upper its marks (until when it was how long), for each path the versions that are gone.
 * Logs are left out: they are long, and only grow.
 */
import { pread } from '../sys/libc.ts';
import { Stat } from '../sys/stat.ts';
import type { Node } from './node.ts';
import type { Overlay } from './overlay.ts';

/** Writes that are closer to each other than this count as one. */
const TOGETHER_MS = 20;
const MOST_MARKS = 256;
const PAGE_BYTES = 256 << 10;
const ALL_BYTES = 4 << 20;
const LOG = /\.jsonl\b/;

/** The first `size` bytes were there at `time`: ms since the epoch. */
export interface Mark {
  time: number;
  size: number;
}

/** A text that stood at a path. */
export interface PageVersion {
  text: Buffer;
  marks: readonly Mark[];
}

export class PageHistory {
  private readonly marks = new WeakMap<Node, Mark[]>();
  private readonly gone = new Map<string, PageVersion[]>();
  private bytes = 0;

  /** After a write to a file of the upper that ended at `end`. */
  wrote(node: Node, end: number): void {
    if (node.link && LOG.test(node.link.name)) return;
    const time = Date.now();
    let marks = this.marks.get(node);
    if (!marks) {
      marks = [];
      this.marks.set(node, marks);
    }
    const last = marks.at(-1);
    if (!last || (time - last.time >= TOGETHER_MS && marks.length < MOST_MARKS)) {
      if (!last || end > last.size) marks.push({ time, size: end });
    } else last.size = Math.max(last.size, end);
  }

  /** How long the text is, as far as it was written here. */
  private lengthOf(node: Node): number {
    return this.marks.get(node)?.at(-1)?.size ?? 0;
  }

  /** Before a write at `offset`. */
  overwriting(o: Overlay, node: Node, offset: number): void {
    if (offset < this.lengthOf(node)) this.ending(o, node);
  }

  /** Before a file of the upper is cut, replaced or removed: what stood in it is kept, and its marks begin anew. */
  ending(o: Overlay, node: Node): void {
    const marks = this.marks.get(node);
    if (!marks || !node.link) return;
    const path = o.path(node.link.parent, node.link.name);
    const text = path !== undefined && this.bytes < ALL_BYTES ? readPage(o, node) : undefined;
    this.marks.delete(node);
    if (path === undefined || !text) return;
    const versions = this.gone.get(path) ?? [];
    if (versions.at(-1)?.text.equals(text)) return;
    versions.push({ text, marks });
    this.gone.set(path, versions);
    this.bytes += text.length;
  }

  marksOf(node: Node): readonly Mark[] {
    return this.marks.get(node) ?? [];
  }

  /** Texts that stood at protected paths in this window and do not any more. */
  versions(): ReadonlyMap<string, readonly PageVersion[]> {
    return this.gone;
  }
}

const stat = new Stat();

function readPage(o: Overlay, node: Node): Buffer | undefined {
  const fd = o.fileFd(node, false);
  if (fd < 0 || stat.of(fd) !== 0 || stat.size === 0 || stat.size > PAGE_BYTES) return undefined;
  const text = Buffer.allocUnsafeSlow(stat.size);
  const n = pread(fd, text, text.length, 0);
  return n > 0 ? text.subarray(0, n) : undefined;
}
