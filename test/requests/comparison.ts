/** Counted requests against the committed ones (expected.json). */
import { readFileSync, writeFileSync } from 'node:fs';
import { release } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Requests } from '../../scripts/bench/requests.ts';

export type Counts = Record<string, Requests>;

export interface Expected {
  /** `6.18`: another kernel asks differently, and is given `OTHER_KERNEL` of room. */
  kernel: string;
  /** By the step's title. */
  counts: Counts;
}

export const UPDATE = 'npm run requests -- --update';
/** The part by which another kernel's count of an opcode may differ, and how many at least. */
const OTHER_KERNEL = { part: 0.3, least: 20 };
/**
 * Where one kernel's own counts differ from run to run, by how many, and why. Everything else is exact.
 */
const MARGINS: Record<string, number> = {};

const file = fileURLToPath(new URL('expected.json', import.meta.url));

export const thisKernel = (): string => release().split('.').slice(0, 2).join('.');

export function readExpected(): Expected {
  return JSON.parse(readFileSync(file, 'utf8')) as Expected;
}

export function writeExpected(counts: Counts): void {
  const lines = Object.entries(counts).map(([title, requests]) => {
    const one = Object.entries(requests).map(([opcode, count]) => `${JSON.stringify(opcode)}: ${count}`);
    return `    ${JSON.stringify(title)}: {${one.length > 0 ? ` ${one.join(', ')} ` : ''}}`;
  });
  writeFileSync(
    file,
    `{\n  "kernel": ${JSON.stringify(thisKernel())},\n  "counts": {\n${lines.join(',\n')}\n  }\n}\n`,
  );
}

export interface Difference {
  opcode: string;
  expected: number;
  counted: number;
}

/** Opcodes whose counts are not what is expected of a step; `sameKernel`: as the one that was counted on. */
export function differences(expected: Requests, counted: Requests, sameKernel: boolean): Difference[] {
  const opcodes = new Set([...Object.keys(expected), ...Object.keys(counted)]);
  return [...opcodes]
    .sort()
    .map((opcode) => ({ opcode, expected: expected[opcode] ?? 0, counted: counted[opcode] ?? 0 }))
    .filter((one) => Math.abs(one.counted - one.expected) > room(one, sameKernel));
}

function room({ opcode, expected }: Difference, sameKernel: boolean): number {
  if (sameKernel) return MARGINS[opcode] ?? 0;
  return Math.max(OTHER_KERNEL.least, expected * OTHER_KERNEL.part);
}

/** One line a difference, and what to do; empty where there is none. */
export function verdict(title: string, found: readonly Difference[]): string {
  if (found.length === 0) return '';
  const lines = found.map(
    ({ opcode, expected, counted }) =>
      `  ${opcode}: ${counted}, ${Math.abs(counted - expected)} ${counted > expected ? 'more' : 'fewer'} than the ${expected} expected`,
  );
  const worse = found.some(({ expected, counted }) => counted > expected);
  const advice = worse
    ? `More requests make this slower. Where that is meant, commit the new numbers: ${UPDATE}`
    : `Fewer requests: well done. Commit the new numbers, so that they stay: ${UPDATE}`;
  return `${title}:\n${lines.join('\n')}\n${advice}`;
}
