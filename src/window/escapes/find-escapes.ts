/**
 * The look at the close for what the window could not catch (DESIGN 8, docs/escapes.md). It costs nothing where nothing
 * protected was written, and is bounded where much was; what was left out is said.
 *
 * It may run while the mount is served: it goes through descriptors of the layers alone, and gives way between files.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { Program } from '../../overlay/ledger.ts';
import type { Overlay } from '../../overlay/overlay.ts';
import { isInstalled, type WrittenFile } from '../../overlay/written-files.ts';
import { monotonicMs } from '../../sys/clock.ts';
import type { Escape, EscapeSearch } from './escape.ts';
import { gitObjectPath } from './git-objects.ts';
import { GitSearch } from './git-search.ts';
import { type Protected, protectedOf } from './protected-part.ts';
import { isBinary } from './protected-text.ts';
import { readLower } from './quiet-reads.ts';
import { type Hit, ProtectedShingles, type Resemblance } from './resemblance.ts';
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
  roots: readonly Overlay[],
  opened: number,
  inherited: readonly number[],
  bounds: Bounds = BOUNDS,
): Promise<EscapeSearch> {
  const began = monotonicMs();
  const search = new Search(roots, bounds, began);
  const parts = roots
    .map(protectedOf)
    .filter(({ changes, overlay }) => changes.length > 0 || !overlay.ledger.isEmpty);
  const { escapes, barred } = waysPast(roots, parts, opened, inherited);
  if (barred > 0) search.leaveOut('processes outside that may not be looked into', barred);
  await search.lookThrough(parts);
  return search.result(escapes);
}

class Search {
  private readonly roots: readonly Overlay[];
  private readonly bounds: Bounds;
  private readonly began: number;
  private readonly found: Escape[] = [];
  private readonly unsearched = new Map<string, number>();
  private files = 0;
  private bytes = 0;
  private sliceEnds: number;

  constructor(roots: readonly Overlay[], bounds: Bounds, began: number) {
    this.roots = roots;
    this.bounds = bounds;
    this.began = began;
    this.sliceEnds = began + SLICE_MS;
  }

  leaveOut(why: string, count = 1): void {
    this.unsearched.set(why, (this.unsearched.get(why) ?? 0) + count);
  }

  async lookThrough(parts: readonly Protected[]): Promise<void> {
    for (const part of parts) for (const why of part.unsearched) this.leaveOut(why);
    const shingles = new ProtectedShingles(parts.flatMap(({ sources }) => sources));
    for (const { before } of parts) for (const text of before) shingles.forgive(text);
    if (shingles.isEmpty) return;
    for (const { written } of this.roots)
      for (const { text, time } of written.earlier) shingles.look(text, time + TICK_MS);
    const judgements: (() => void)[] = [];
    for (const root of this.roots) judgements.push(await this.lookThroughRoot(root, shingles));
    for (const judge of judgements) judge();
  }

  /** Looks at all texts of a root; the function returned adds what escaped, once all roots have been looked at. */
  private async lookThroughRoot(root: Overlay, shingles: ProtectedShingles): Promise<() => void> {
    const { written, lowerFd, ledger } = root;
    if (written.missed > 0) this.leaveOut('more files were written than are remembered', written.missed);
    const git = new GitSearch(shingles, this.bounds.fileBytes);
    const alike: { file: WrittenFile; hits: readonly Hit[] }[] = [];
    const files = written.files().sort((a, b) => rank(a.path) - rank(b.path));
    for (const [index, file] of files.entries()) {
      if (this.isOver()) {
        this.leaveOut('the time or the amount for the look was used up', files.length - index);
        break;
      }
      const { path, program } = file;
      if (root.protects(path) || OF_GIT.test(path)) continue;
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
      const time = content.changed + TICK_MS;
      if (object) git.look(object, content.bytes, time, program);
      else if (!isBinary(content.bytes)) {
        const hits = shingles.look(content.bytes, time);
        if (hits) alike.push({ file, hits });
      }
      await this.breathe();
    }
    return () => {
      for (const { file, hits } of alike) {
        const like = shingles.judge(hits);
        if (like) this.add({ kind: 'text', path: ledger.shown(file.path) }, like, file.program);
      }
      for (const { repository, what, like, program } of git.findings())
        this.add({ kind: 'git', path: ledger.shown(repository), what }, like, program);
      for (const [why, count] of git.unsearched) this.leaveOut(why, count);
    };
  }

  private add(found: Escape, { source, words, percent }: Resemblance, program: Program | undefined): void {
    this.found.push({ ...found, protected: source.shown, words, percent, ...(program && { program }) });
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

/** What git keeps of a commit's message besides the commit. */
const OF_GIT = /(?:^|\/)\.git\/(?:logs\/|COMMIT_EDITMSG$)/;
/** What people write is looked at first, and what programs install last. */
function rank(path: string): number {
  if (isInstalled(path)) return 2;
  return gitObjectPath(path) ? 1 : 0;
}
