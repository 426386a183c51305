/**
 * The look at the close for what the window could not catch (DESIGN 8, docs/escapes.md). It costs nothing where nothing
 * protected was written, and is bounded where much was; what was left out is said.
 *
 * It may run while the mount is served: it goes through descriptors of the layers alone, and gives way between files.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { monotonicMs } from '../../sys/clock.ts';
import type { Escape, EscapeSearch } from './escape.ts';
import { gitObjectPath } from './git-objects.ts';
import { GitSearch } from './git-search.ts';
import { type Protected, protectedOf, type SearchedRoot } from './protected-part.ts';
import { isBinary } from './protected-text.ts';
import { readLower } from './quiet-reads.ts';
import { ProtectedShingles, type Resemblance } from './resemblance.ts';
import { waysPast } from './ways.ts';

export interface Bounds {
  milliseconds: number;
  files: number;
  /** Of all files together, and of one. */
  bytes: number;
  fileBytes: number;
}

export const BOUNDS: Bounds = { milliseconds: 1500, files: 5000, bytes: 48 << 20, fileBytes: 1 << 20 };
const SLICE_MS = 8;
/** A file's ctime is that of the kernel's last tick. */
const TICK_MS = 10;

/**
 * All escapes of a window. `opened` and what is compared with it are ms since the epoch; `inherited` are descriptors of
 * this process that the command has as well.
 */
export async function findEscapes(
  roots: readonly SearchedRoot[],
  opened: number,
  inherited: readonly number[],
  bounds: Bounds = BOUNDS,
): Promise<EscapeSearch> {
  const began = monotonicMs();
  const search = new Search(roots, bounds, began);
  const parts = roots.filter(({ overlay }) => !overlay.ledger.isEmpty).map(protectedOf);
  const ways = waysPast(roots, parts, opened, inherited);
  await search.lookThrough(parts);
  return search.result(ways);
}

class Search {
  private readonly roots: readonly SearchedRoot[];
  private readonly bounds: Bounds;
  private readonly began: number;
  private readonly found: Escape[] = [];
  private readonly unsearched = new Map<string, number>();
  private files = 0;
  private bytes = 0;
  private sliceEnds: number;

  constructor(roots: readonly SearchedRoot[], bounds: Bounds, began: number) {
    this.roots = roots;
    this.bounds = bounds;
    this.began = began;
    this.sliceEnds = began + SLICE_MS;
  }

  private leaveOut(why: string, count = 1): void {
    this.unsearched.set(why, (this.unsearched.get(why) ?? 0) + count);
  }

  async lookThrough(parts: readonly Protected[]): Promise<void> {
    for (const part of parts) for (const why of part.unsearched) this.leaveOut(why);
    const shingles = new ProtectedShingles(parts.flatMap(({ sources }) => sources));
    if (shingles.isEmpty) return;
    for (const { before } of parts) for (const text of before) shingles.forgive(text);
    for (const { overlay } of this.roots) for (const text of overlay.written.earlier) shingles.forgive(text);
    for (const root of this.roots) if (!shingles.isEmpty) await this.lookThroughRoot(root, shingles);
  }

  private async lookThroughRoot(root: SearchedRoot, shingles: ProtectedShingles): Promise<void> {
    const { written, lowerFd } = root.overlay;
    if (written.missed > 0) this.leaveOut('more files were written than are remembered', written.missed);
    const git = new GitSearch(shingles, this.bounds.fileBytes);
    const files = written.files().sort((a, b) => rank(a.path) - rank(b.path));
    for (const [index, { path, program }] of files.entries()) {
      if (this.isOver()) {
        this.leaveOut('the time or the amount for the look was used up', files.length - index);
        break;
      }
      if (root.overlay.protects(path)) continue;
      const object = gitObjectPath(path);
      const most = object ? this.bounds.fileBytes * 8 : this.bounds.fileBytes;
      const content = readLower(lowerFd, path, most);
      if (content === 'absent') continue;
      if (content === 'large') {
        this.leaveOut(object ? 'large git packs' : 'large files');
        continue;
      }
      this.files++;
      this.bytes += content.bytes.length;
      const lastWritten = content.changed + TICK_MS;
      if (object) git.look(object, content.bytes, lastWritten, program);
      else if (!isBinary(content.bytes)) {
        const like = shingles.find(content.bytes, lastWritten);
        if (like) this.found.push({ kind: 'text', path: root.show(path), ...this.describe(like), program });
      }
      await this.breathe();
    }
    for (const { repository, what, like, program } of git.findings()) {
      this.found.push({ kind: 'git', path: root.show(repository), what, ...this.describe(like), program });
    }
    for (const [why, count] of git.unsearched) this.leaveOut(why, count);
  }

  private describe({ source, words, percent }: Resemblance): Pick<Escape, 'protected' | 'words' | 'percent'> {
    return { protected: source.shown, words, percent };
  }

  private isOver(): boolean {
    const { files, bytes, milliseconds } = this.bounds;
    return this.files >= files || this.bytes >= bytes || monotonicMs() - this.began >= milliseconds;
  }

  private async breathe(): Promise<void> {
    if (monotonicMs() < this.sliceEnds) return;
    await turn();
    this.sliceEnds = monotonicMs() + SLICE_MS;
  }

  result(ways: Escape[]): EscapeSearch {
    return {
      escapes: [...this.found, ...ways],
      searched: {
        files: this.files,
        bytes: this.bytes,
        milliseconds: Math.round(monotonicMs() - this.began),
      },
      unsearched: [...this.unsearched].map(([why, count]) => ({ why, count })),
    };
  }
}

const INSTALLED = /(?:^|\/)(?:node_modules|\.venv|venv|site-packages|target|vendor|__pycache__)\//;

/** What people write is looked at first, and what programs install last. */
function rank(path: string): number {
  if (INSTALLED.test(path)) return 2;
  return gitObjectPath(path) ? 1 : 0;
}
