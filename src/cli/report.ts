import { type Command, Option } from 'commander';
import { print, printable, printJson } from './output.ts';

const after = `
FILE is what "--report FILE" of another command wrote.

Examples:
  forget exec --report report.json -- claude; forget report report.json
  forget report --markdown report.json >>"$GITHUB_STEP_SUMMARY"

Exit code: 0; 125 when FILE cannot be read, or is not a report.`;

export function addReport(program: Command): void {
  program
    .command('report')
    .summary('print a saved report for people')
    .description('Print a saved report for people: every protected path, and who wrote it.')
    .argument('<file>', 'what --report wrote')
    .addOption(new Option('--markdown', 'print Markdown, as for the summary of a CI job').conflicts('json'))
    .option('--json', 'print the report as it is, once it is known to be one')
    .addHelpText('after', after)
    .action(async (file: string, options: { markdown?: true; json?: true }) => {
      const { readReport } = await import('../window/saved-report.ts');
      const report = readReport(file);
      if (options.json) return printJson(report);
      if (options.markdown) {
        const { reportMarkdown } = await import('../window/report-markdown.ts');
        print(reportMarkdown(report));
        return;
      }
      const { reportLines } = await import('../window/report.ts');
      for (const line of reportLines(report, true)) print(`${printable(line)}\n`);
    });
}
