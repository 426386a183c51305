/**
 * What a window did, for the person (stderr, short) and for scripts (`--report`). No content, and no hash that
 * could be guessed back into content. docs/report.md describes the JSON.
 */
import type { KeptRecord, PathRecord } from '../overlay/ledger.ts';
import { describeEscape, type EscapeSearch } from './escapes/escape.ts';
import type { Leftover } from './leftovers.ts';
import type { WindowState } from './server.ts';
import { formatSize } from './size.ts';

export interface WindowReport extends EscapeSearch {
  /** Of this format. */
  version: 1;
  kind: 'exec' | 'mount' | 'window';
  /** Of a window of a mount: its name. */
  name?: string;
  /** Names are made readable: bytes that are not UTF-8 and control characters are escaped. */
  workspace: string;
  /** Where the window was mounted: the workspace, or what holds it, and the other directories that it covered. */
  roots: string[];
  command?: string[];
  exit?: { code: number | null; signal: number | null };
  /** ISO 8601. */
  opened: string;
  closed: string;
  /** Milliseconds: until the command was started, and from then to the close. */
  times: { start: number; open: number };
  /** Bytes. `noswap`: the kernel keeps the upper out of swap. */
  upper: { used: number; limit: number; noswap: boolean };
  /** Protected paths that were touched, and by which programs. */
  protected: PathRecord[];
  totals: WindowState['caught'];
  /** What the person had kept in the workspace. */
  kept: KeptRecord[];
  /** Files that went to the workspace after all, and why. */
  moved: { path: string; why: string }[];
  /** What programs got from forget itself, such as a full upper. */
  errors: { path: string; error: string; count: number }[];
  /** Processes that the command left running. */
  leftovers: { pid: number; command: string; how: Leftover['how'] }[];
  /** Files tracked by git that the rules protect. */
  tracked: string[];
  /** FUSE requests by opcode. */
  requests: Record<string, number>;
  /** Messages that took something back from the kernel, because others changed it. */
  notifications: number;
  /** Defects of forget itself; please report them. */
  defects: string[];
}

const MOST_LINES = 12;

/** The lines for the person; none when there is nothing to say. */
export function reportLines(report: WindowReport, verbose: boolean): string[] {
  const lines: string[] = [];
  const touched = caughtPaths(report);
  if (touched.length > 0) {
    const fate = report.kind === 'exec' ? 'gone now, and never in the workspace' : 'gone with the window';
    lines.push(`forget: caught ${plural(touched.length, 'protected path')}, ${fate}:`);
    const most = verbose ? touched.length : MOST_LINES;
    const width = Math.min(48, Math.max(...touched.slice(0, most).map((record) => record.path.length)));
    for (const record of touched.slice(0, most)) {
      lines.push(`  ${record.path.padEnd(width)}  ${describe(record)}${programs(record)}`);
    }
    if (touched.length > most)
      lines.push(`  and ${touched.length - most} more (--verbose or --report shows all)`);
  }
  lines.push(...keptLines(report, verbose));
  for (const { path, why } of report.moved) lines.push(`forget: ${path} was moved to the workspace: ${why}`);
  for (const { path, error, count } of report.errors) {
    lines.push(`forget: ${path}: ${error}${count > 1 ? ` (${count} times)` : ''}${limitHint(error, report)}`);
  }
  for (const found of report.escapes) lines.push(describeEscape(found));
  if (report.unsearched.length > 0 && (verbose || report.escapes.length > 0)) {
    const left = report.unsearched.map(({ why, count }) => `${why} (${count})`);
    lines.push(`forget: not everything was looked through for escapes: ${left.join('; ')}`);
  }
  for (const { pid, command, how } of report.leftovers) {
    if (how === 'ended' && !verbose) continue;
    const what = how === 'ended' ? 'ended by itself' : `was ${how}`;
    lines.push(
      `forget: left running: ${command} (pid ${pid}) ${how === 'survived' ? 'could not be killed' : what}`,
    );
  }
  for (const defect of report.defects) lines.push(`forget: internal error, please report it: ${defect}`);
  if (verbose) {
    const requests = Object.entries(report.requests).map(([name, count]) => `${name} ${count}`);
    lines.push(`forget: requests: ${requests.join(', ') || 'none'}`);
    lines.push(`forget: upper: ${formatSize(report.upper.used)} of ${formatSize(report.upper.limit)}`);
  }
  return lines;
}

/** A report that an older forget has saved does not have it. */
function keptLines({ kept = [] }: Partial<WindowReport>, verbose: boolean): string[] {
  if (kept.length === 0) return [];
  const lines = [`forget: kept ${plural(kept.length, 'path')}, which stay as they were kept:`];
  const most = verbose ? kept.length : MOST_LINES;
  for (const { path, kind, type, bytes } of kept.slice(0, most)) {
    const what = type === 'file' ? formatSize(bytes) : `a ${type}`;
    lines.push(`  ${path}  ${kind === 'deleted' ? 'deleted' : what}`);
  }
  if (kept.length > most) lines.push(`  and ${kept.length - most} more (--verbose or --report shows all)`);
  return lines;
}

/** What there is to say of: a path that was only asked about has a record, too, and what was kept is told by itself. */
export function caughtPaths(report: WindowReport): PathRecord[] {
  return report.protected.filter((record) => !record.kept && describe(record) !== '');
}

/** What happened to a path, in a few words; empty where nothing of note did. */
export function describe(record: PathRecord): string {
  const parts: string[] = [];
  if (record.renamedFrom !== undefined) parts.push(`renamed from ${record.renamedFrom}`);
  if (record.created && record.deleted) parts.push('created and deleted');
  else if (record.created) parts.push('created');
  else if (record.deleted) parts.push('deleted');
  if (record.written > 0) parts.push(`${formatSize(record.written)} written`);
  else if (record.changed && parts.length === 0) parts.push('changed');
  return parts.join(', ');
}

function programs(record: PathRecord): string {
  const shown = record.programs.slice(0, 3).map(({ command, pid }) => `${command} ${pid}`);
  if (record.programs.length > 3) shown.push('...');
  return shown.length > 0 ? `  (${shown.join(', ')})` : '';
}

function limitHint(error: string, report: WindowReport): string {
  return error.includes('ENOSPC')
    ? `: the upper is full at ${formatSize(report.upper.limit)}; --upper-size gives more`
    : '';
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
