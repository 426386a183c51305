/** What a window's server holds, sampled while it works, and whether that stays level. */
import { readdirSync, readFileSync } from 'node:fs';

export interface Sample {
  /** Since the soak began. */
  seconds: number;
  /** Bytes. */
  rss: number;
  /** Open descriptors of the whole process. */
  descriptors: number;
  /** Nodes that the overlay knows; undefined where the window did not answer. */
  nodes: number | undefined;
  /** Answered so far. */
  requests: number;
}

/** The process's part of a sample; undefined when it has ended. */
export function sampleProcess(pid: number): { rss: number; descriptors: number } | undefined {
  try {
    const [, kib] = /^VmRSS:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? [];
    return kib === undefined
      ? undefined
      : { rss: Number(kib) * 1024, descriptors: readdirSync(`/proc/${pid}/fd`).length };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH' || code === 'EACCES') return undefined;
    throw error;
  }
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

export interface Growth {
  /** Medians of the second and of the last third: the first is warm-up. */
  rss: [number, number];
  descriptors: [number, number];
  nodes: [number, number];
}

export function growthOf(samples: readonly Sample[]): Growth {
  const third = Math.floor(samples.length / 3);
  const parts = [samples.slice(third, 2 * third), samples.slice(2 * third)];
  const pair = (of: (sample: Sample) => number | undefined): [number, number] => {
    const [middle, last] = parts.map((part) => median(part.map(of).filter((value) => value !== undefined)));
    return [middle!, last!];
  };
  return {
    rss: pair(({ rss }) => rss),
    descriptors: pair(({ descriptors }) => descriptors),
    nodes: pair(({ nodes }) => nodes),
  };
}

/** One sentence for each thing that did not stay level. */
export function complaints({ rss, descriptors, nodes }: Growth): string[] {
  const MIB = 1 << 20;
  const found: string[] = [];
  if (rss[1] > rss[0] * 1.1 + 10 * MIB) {
    found.push(`the server grew from ${Math.round(rss[0] / MIB)} to ${Math.round(rss[1] / MIB)} MiB`);
  }
  // What is looked up is open (docs/architecture.md, Freshness): they may grow as the nodes do.
  const known = Math.max(1, nodes[1] / nodes[0]);
  if (descriptors[1] > descriptors[0] * known * 1.25 + 50) {
    found.push(`its descriptors grew from ${descriptors[0]} to ${descriptors[1]}`);
  }
  if (nodes[1] > nodes[0] * 1.5 + 1000) found.push(`its nodes grew from ${nodes[0]} to ${nodes[1]}`);
  return found;
}
