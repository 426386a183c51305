/**
 * Which protected text stands in which other text. State: the shingles that are new in this window's protected files, each
 * with the files that it is of and since when; and when it was first seen elsewhere.
 *
 * What stood elsewhere before it stood in a protected file is none of its text: a page may quote the source it is about.
 */
import { eachShingle, folded, SHINGLE_WORDS } from './shingles.ts';

/**
 * A long sentence; less than that is a coincidence too often: a commit's subject stands in the notes on it. Of a
 * conversation a paragraph: what people ask for in a sentence is what is done.
 */
const LEAST = { page: { words: 20, bytes: 60 }, conversation: { words: 32, bytes: 96 } } as const;

/** Text between whose parts no shingle goes, that was there since `since`: ms since the epoch, 0 where it is not known. */
export interface Passage {
  text: string;
  since: number;
}

export interface Source {
  /** How the report names it. */
  shown: string;
  kind: keyof typeof LEAST;
  passages: Passage[];
}

export interface Resemblance {
  source: Source;
  /** How many words of the text stand in the protected file as well, in the same order. */
  words: number;
  /** How much of what is new in the protected file that is. */
  percent: number;
}

interface Occurrence {
  source: number;
  since: number;
}

/** A shingle that a text has in common with protected files, at the place of its last word. */
export interface Hit {
  hash: number;
  last: number;
  bytes: number;
}

/** What a text has of one source. */
interface Share {
  words: number;
  bytes: number;
  shingles: Set<number>;
  /** The last word that was counted. */
  upTo: number;
}

export class ProtectedShingles {
  private readonly sources: readonly Source[];
  private readonly occurrences = new Map<number, Occurrence[]>();
  /** The earliest time at which a text that is not protected had the shingle. */
  private readonly elsewhere = new Map<number, number>();
  private totals: number[] | undefined;

  constructor(sources: readonly Source[]) {
    this.sources = sources;
    for (const [source, { passages }] of sources.entries()) {
      for (const { text, since } of passages) {
        eachShingle(folded(Buffer.from(text)), (shingle) => {
          if (shingle.isTelling) this.add(shingle.hash, source, since);
        });
      }
    }
  }

  private add(hash: number, source: number, since: number): void {
    const known = this.occurrences.get(hash);
    const own = known?.find((occurrence) => occurrence.source === source);
    if (own) own.since = Math.min(own.since, since);
    else if (known) known.push({ source, since });
    else this.occurrences.set(hash, [{ source, since }]);
  }

  get isEmpty(): boolean {
    return this.occurrences.size === 0;
  }

  /** What stands in this text was protected before the window. */
  forgive(text: Buffer): void {
    eachShingle(folded(text), ({ hash }) => {
      this.occurrences.delete(hash);
    });
  }

  /**
   * Takes note of a text that is not protected and was there at `time` (ms since the epoch). Returns what it has in
   * common with protected files, to be judged when all texts were looked at; undefined for nothing.
   */
  look(text: Buffer, time: number): Hit[] | undefined {
    let hits: Hit[] | undefined;
    eachShingle(folded(text), ({ hash, last, bytes }) => {
      if (!this.occurrences.has(hash)) return;
      this.elsewhere.set(hash, Math.min(time, this.elsewhere.get(hash) ?? time));
      hits ??= [];
      hits.push({ hash, last, bytes });
    });
    return hits;
  }

  /** The protected file that most of a text is from, if it is more than a coincidence. */
  judge(hits: readonly Hit[]): Resemblance | undefined {
    const shares = new Map<number, Share>();
    for (const { hash, last, bytes } of hits) {
      const elsewhere = this.elsewhere.get(hash)!;
      for (const { source, since } of this.occurrences.get(hash) ?? []) {
        if (since > elsewhere) continue;
        const share = shares.get(source) ?? { words: 0, bytes: 0, shingles: new Set(), upTo: -1 };
        shares.set(source, share);
        const fresh = Math.min(SHINGLE_WORDS, last - share.upTo);
        share.upTo = last;
        share.words += fresh;
        share.bytes += (bytes * fresh) / SHINGLE_WORDS;
        share.shingles.add(hash);
      }
    }
    const telling = [...shares].filter(([source, { words, bytes }]) => {
      const least = LEAST[this.sources[source]!.kind];
      return words >= least.words && bytes >= least.bytes;
    });
    if (telling.length === 0) return undefined;
    const [source, { words, shingles }] = telling.reduce((a, b) => (b[1].words > a[1].words ? b : a));
    const percent = Math.max(1, Math.round((shingles.size / this.totalOf(source)) * 100));
    return { source: this.sources[source]!, words, percent };
  }

  /** How many shingles of a source are new. */
  private totalOf(source: number): number {
    if (!this.totals) {
      this.totals = this.sources.map(() => 0);
      for (const occurrences of this.occurrences.values())
        for (const occurrence of occurrences) this.totals[occurrence.source]!++;
    }
    return this.totals[source]!;
  }
}
