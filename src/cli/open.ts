import type { Command } from 'commander';
import { directoryWithoutLooking } from '../sys/argv.ts';
import { displayName } from '../sys/bytes.ts';
import { printJson, say } from './output.ts';

const after = `
WORKSPACE is a mounted workspace or its mount point, anything in it, or an id that
"forget status" shows. Without it the current directory decides; where that is in no
mount, the only one there is.

Windows stack: what is written to protected paths from then on belongs to the new one,
whoever writes it, and is gone when it closes. What was written before belongs to the
windows below it, or to the workspace.

Examples:
  forget open
  forget open ~/project --name private

With --json, standard output gets {"id", "name"}.
Exit code: 0 when it is open; 125 when forget fails.`;

export function addOpen(program: Command): void {
  program
    .command('open')
    .summary('open a window on a mounted workspace')
    .description('Open a window on a workspace that "forget mount" has mounted, while programs run in it.')
    .argument('[workspace]', 'a mounted workspace, a path in it, or an id')
    .option('--name <name>', 'what to call it (default: the next number)')
    .option('--json', 'print what was opened as JSON')
    .addHelpText('after', after)
    .action(async (workspace: string | undefined, options: { name?: string; json?: true }) => {
      const { findMount, openWindow } = await import('../window/mounted.ts');
      const mount = await findMount(workspace, directoryWithoutLooking);
      const wanted = options.name === undefined ? undefined : displayName(options.name);
      const name = await openWindow(mount, wanted);
      if (options.json) printJson({ id: mount.id, name });
      else say(`window ${name} is open on ${mount.workspace}; "forget close --name ${name}" closes it`);
    });
}
