/** A report that `--report` wrote, read again. */
import { readFileSync } from 'node:fs';
import { displayName } from '../sys/bytes.ts';
import { type EscapeSearch, NOT_SEARCHED } from './escapes/escape.ts';
import { Failure } from './failure.ts';
import type { WindowReport } from './report.ts';

/** Fields that a report of an earlier forget lacks. */
const ADDED: Pick<WindowReport, 'roots' | 'kept' | keyof EscapeSearch> = {
  roots: [],
  kept: [],
  ...NOT_SEARCHED,
};

/** `path` is a byte string. Throws a Failure for what is not a report that this version knows. */
export function readReport(path: string): WindowReport {
  const name = displayName(path);
  let text: string;
  try {
    text = readFileSync(Buffer.from(path, 'latin1'), 'utf8');
  } catch (error) {
    throw new Failure(`${name}: cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Failure(`${name}: is not JSON; name a file that --report wrote`);
  }
  const report = Object(value) as Partial<WindowReport>;
  if (typeof report.version === 'number' && report.version !== 1) {
    throw new Failure(
      `${name}: is of version ${report.version}, which this forget does not know; use a newer one`,
    );
  }
  const lists = [
    report.protected,
    report.moved,
    report.errors,
    report.leftovers,
    report.tracked,
    report.defects,
  ];
  if (
    report.version !== 1 ||
    !report.totals ||
    !report.upper ||
    !report.times ||
    !lists.every(Array.isArray)
  ) {
    throw new Failure(`${name}: is not a report of forget; name a file that --report wrote`);
  }
  return { ...ADDED, ...(report as WindowReport) };
}
