/** A report as Markdown, for the summary of a CI job: a table of what was caught, then the other lines of the report. */
import { caughtPaths, describe, plural, reportLines, type WindowReport } from './report.ts';
import { formatSize } from './size.ts';

/** GitHub takes a summary of at most 1 MiB. */
const MOST_ROWS = 200;

export function reportMarkdown(report: WindowReport): string {
  const caught = caughtPaths(report);
  const head =
    caught.length > 0 ? `caught ${plural(caught.length, 'protected path')}` : 'no protected path was written';
  const rows = caught.slice(0, MOST_ROWS).map((record) => {
    const programs = record.programs.map(({ command, pid }) => `${code(command)} ${pid}`);
    return `| ${code(record.path)} | ${escaped(describe(record))} | ${programs.join(', ')} |`;
  });
  const table =
    rows.length > 0 ? ['| protected path | what happened | by |', '| --- | --- | --- |', ...rows] : [];
  const more = caught.length - rows.length;
  return [
    `### forget: ${head}`,
    about(report),
    table.join('\n'),
    more > 0 ? `and ${more} more` : '',
    otherLines(report).join('\n'),
  ]
    .filter(Boolean)
    .join('\n\n')
    .concat('\n');
}

function about({ kind, command, workspace, exit, times, totals }: WindowReport): string {
  const what = kind === 'exec' ? `${code((command ?? []).join(' '))} in ${code(workspace)}` : code(workspace);
  const end = exit ? `${exit.signal === null ? `exit code ${exit.code}` : `signal ${exit.signal}`}, ` : '';
  const caught = `${totals.written} written, ${totals.created} created, ${totals.deleted} deleted, ${totals.renamed} renamed`;
  return `${what}: ${end}${(times.open / 1000).toFixed(1)} s. Caught: ${caught}; ${formatSize(totals.bytes)} in all writes.`;
}

/** As a list; a line that is indented belongs to the one before it. */
function otherLines(report: WindowReport): string[] {
  const lines = reportLines({ ...report, protected: [] }, true);
  const items = lines.slice(0, MOST_ROWS).map((line) => {
    const text = line.replace(/^forget: /, '');
    return text.startsWith('  ') ? `  - ${escaped(text.trim())}` : `- ${escaped(text)}`;
  });
  return lines.length > items.length ? [...items, `- and ${lines.length - items.length} more`] : items;
}

/** As HTML: a Markdown code span cannot hold every name, least of all in a table. */
function code(text: string): string {
  return `<code>${escaped(text)}</code>`;
}

/** ASCII punctuation as character references, which Markdown takes for text. */
function escaped(text: string): string {
  return text.replace(/[^\w .,:;/-]|_/g, (c) => (c > '\x7f' ? c : `&#${c.codePointAt(0)};`));
}
