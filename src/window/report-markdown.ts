/** A report as Markdown, for the summary of a CI job. */
import { describe, plural, type WindowReport } from './report.ts';
import { formatSize } from './size.ts';

/** GitHub takes a summary of at most 1 MiB. */
const MOST_ROWS = 200;

export function reportMarkdown(report: WindowReport): string {
  const touched = report.protected.filter((record) => describe(record) !== '');
  const head =
    touched.length > 0
      ? `caught ${plural(touched.length, 'protected path')}`
      : 'no protected path was written';
  return [
    `### forget: ${head}`,
    about(report),
    section(
      '',
      ['protected path', 'what happened', 'by'],
      touched.map((record) => [
        code(record.path),
        escaped(describe(record)),
        record.programs.map(({ command, pid }) => `${code(command)} ${pid}`).join(', '),
      ]),
    ),
    // A report of an earlier version has none.
    section(
      'Covered directories',
      ['path'],
      (report.roots ?? []).length > 1 ? report.roots.map((path) => [code(path)]) : [],
    ),
    section(
      'Moved to the workspace',
      ['path', 'why'],
      report.moved.map(({ path, why }) => [code(path), escaped(why)]),
    ),
    section(
      'Errors that programs got',
      ['path', 'error', 'times'],
      report.errors.map(({ path, error, count }) => [code(path), escaped(error), String(count)]),
    ),
    section(
      'Left running',
      ['program', 'pid', 'how it ended'],
      report.leftovers.map(({ command, pid, how }) => [code(command), String(pid), how]),
    ),
    section(
      'Tracked by git, and protected',
      ['path'],
      report.tracked.map((path) => [code(path)]),
    ),
    section(
      'Internal errors of forget, please report them',
      ['error'],
      report.defects.map((defect) => [code(defect)]),
    ),
  ]
    .filter(Boolean)
    .join('\n\n')
    .concat('\n');
}

function about({ kind, command, workspace, exit, times, totals, upper }: WindowReport): string {
  const what = kind === 'exec' ? `${code((command ?? []).join(' '))} in ${code(workspace)}` : code(workspace);
  const end = exit ? `${exit.signal === null ? `exit code ${exit.code}` : `signal ${exit.signal}`}, ` : '';
  const caught = `${totals.written} written, ${totals.created} created, ${totals.deleted} deleted, ${totals.renamed} renamed`;
  const bytes = `${formatSize(totals.bytes)} in all writes, ${formatSize(upper.used)} of ${formatSize(upper.limit)} held`;
  return `${what}: ${end}${(times.open / 1000).toFixed(1)} s. Caught: ${caught}; ${bytes}.`;
}

function section(title: string, columns: readonly string[], rows: readonly string[][]): string {
  if (rows.length === 0) return '';
  const shown = rows.slice(0, MOST_ROWS);
  const lines = [columns, columns.map(() => '---'), ...shown].map((cells) => `| ${cells.join(' | ')} |`);
  if (title) lines.unshift(`#### ${title}`, '');
  if (rows.length > shown.length) lines.push('', `and ${rows.length - shown.length} more`);
  return lines.join('\n');
}

/** As HTML: a Markdown code span cannot hold every name, least of all in a table. */
function code(text: string): string {
  return `<code>${escaped(text)}</code>`;
}

/** ASCII punctuation as character references, which Markdown takes for text. */
function escaped(text: string): string {
  return text.replace(/[^\w .,:;/-]|_/g, (c) => (c > '\x7f' ? c : `&#${c.codePointAt(0)};`));
}
