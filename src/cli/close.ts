import type { Command } from 'commander';
import { directoryWithoutLooking } from '../sys/argv.ts';
import { displayName } from '../sys/bytes.ts';
import { printJson } from './output.ts';

const after = `
WORKSPACE is found as for "forget open". Without --name the window on top is closed, which
was opened last. What it caught is gone at once, and what the windows below it hold shows
again, or the workspace itself. The mount stays ("forget unmount" takes it away), and
programs in it go on.

One further down can be closed too: what only that one held is gone, and what those above
it wrote stays until they close.

Examples:
  forget close
  forget close ~/project --name private

With --json, standard output gets the window's report (docs/report.md).
Exit code: 0 when it is closed; 125 when forget fails.`;

export function addClose(program: Command): void {
  program
    .command('close')
    .summary('close a window of a mounted workspace')
    .description('Close a window of a workspace that "forget mount" has mounted, while programs run in it.')
    .argument('[workspace]', 'a mounted workspace, a path in it, or an id')
    .option('--name <name>', 'which window to close (default: the one on top)')
    .option('--json', 'print the report as JSON')
    .addHelpText('after', after)
    .action(async (workspace: string | undefined, options: { name?: string; json?: true }) => {
      const [{ closeWindow, findMount }, { say }] = await Promise.all([
        import('../window/mounted.ts'),
        import('../window/say.ts'),
      ]);
      const mount = await findMount(workspace, directoryWithoutLooking);
      const wanted = options.name === undefined ? undefined : displayName(options.name);
      const { lines, report } = await closeWindow(mount, wanted);
      if (options.json) printJson(report);
      else say([...lines, `forget: window ${report.name} of ${mount.workspace} is closed`]);
    });
}
