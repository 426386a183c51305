/**
 * Which protected text stands in which other text. State: the shingles that are new in this window's protected files,
 * each with the files that it is of.
 */
import { eachShingle, folded, SHINGLE_WORDS } from './shingles.ts';

/** A passage of two sentences; less than that is coincidence too often. */
const LEAST_WORDS = 16;
const LEAST_BYTES = 64;

export interface Source {
  /** How the report names it. */
  shown: string;
  /** Since when it can have had its text in this window: ms since the epoch. */
  since: number;
  passages: string[];
}

export interface Resemblance {
  source: Source;
  /** How many words of the text stand in the protected file as well, in the same order. */
  words: number;
  /** How much of what is new in the protected file that is. */
  percent: number;
}

export class ProtectedShingles {
  private readonly sources: readonly Source[];
  /** Indices of sources, by shingle. */
  private readonly of = new Map<number, number[]>();
  private readonly totals: number[] = [];

  constructor(sources: readonly Source[]) {
    this.sources = sources;
    sources.forEach(({ passages }, index) => {
      for (const passage of passages) {
        eachShingle(folded(Buffer.from(passage)), ({ hash, telling }) => {
          if (!telling) return;
          const known = this.of.get(hash);
          if (!known) this.of.set(hash, [index]);
          else if (known.at(-1) !== index) known.push(index);
        });
      }
    });
  }

  get isEmpty(): boolean {
    return this.of.size === 0;
  }

  /** What stands in this text was there before the window. */
  forgive(text: Buffer): void {
    eachShingle(folded(text), ({ hash }) => {
      this.of.delete(hash);
    });
  }

  /**
   * The protected file that most of this text is from, if it is more than a coincidence. Only those count that had their
   * text before `lastWritten` (ms since the epoch), when the text was written for the last time.
   */
  find(text: Buffer, lastWritten: number): Resemblance | undefined {
    const words = new Map<number, number>();
    const bytes = new Map<number, number>();
    const shingles = new Map<number, Set<number>>();
    const upTo = new Map<number, number>();
    eachShingle(folded(text), (shingle) => {
      for (const index of this.of.get(shingle.hash) ?? []) {
        if (this.sources[index]!.since > lastWritten) continue;
        const fresh = Math.min(SHINGLE_WORDS, shingle.last - (upTo.get(index) ?? -1));
        upTo.set(index, shingle.last);
        words.set(index, (words.get(index) ?? 0) + fresh);
        bytes.set(index, (bytes.get(index) ?? 0) + (shingle.bytes * fresh) / SHINGLE_WORDS);
        const found = shingles.get(index) ?? new Set();
        shingles.set(index, found.add(shingle.hash));
      }
    });
    let best: number | undefined;
    for (const [index, count] of words) {
      if (count < LEAST_WORDS || bytes.get(index)! < LEAST_BYTES) continue;
      if (best === undefined || count > words.get(best)!) best = index;
    }
    if (best === undefined) return undefined;
    const share = shingles.get(best)!.size / this.totalOf(best);
    return {
      source: this.sources[best]!,
      words: words.get(best)!,
      percent: Math.max(1, Math.round(share * 100)),
    };
  }

  /** How many shingles of a source are new. */
  private totalOf(index: number): number {
    if (this.totals.length === 0) {
      for (const indices of this.of.values())
        for (const one of indices) this.totals[one] = (this.totals[one] ?? 0) + 1;
    }
    return this.totals[index] ?? 1;
  }
}
