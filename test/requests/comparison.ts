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
/** Where counts differ from run to run on one kernel, by how many at most. Everything else is exact. */
const MARGINS: { title: RegExp; opcode: string; room: number; why: string }[] = [
  {
    title: /^rm -rf, unprotected$/,
    opcode: 'GETATTR',
    room: 25,
    why: "forget takes a directory's attributes back when it reads of its own deletions there, some time later",
  },
];

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

/** Opcodes whose counts are not what is expected of a step. */
export function differences(title: string, expected: Expected, requests: Requests): Difference[] {
  const before = expected.counts[title] ?? {};
  const opcodes = new Set([...Object.keys(before), ...Object.keys(requests)]);
  return [...opcodes]
    .sort()
    .map((opcode) => ({ opcode, expected: before[opcode] ?? 0, counted: requests[opcode] ?? 0 }))
    .filter((one) => Math.abs(one.counted - one.expected) > room(title, one, expected.kernel));
}

function room(title: string, { opcode, expected }: Difference, kernel: string): number {
  const margin = MARGINS.find((one) => one.title.test(title) && one.opcode === opcode)?.room ?? 0;
  if (kernel === thisKernel()) return margin;
  return Math.max(margin, OTHER_KERNEL.least, expected * OTHER_KERNEL.part);
}

/** How many requests a step took in all. */
export function total(requests: Requests): number {
  return Object.values(requests).reduce((sum, count) => sum + count, 0);
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
