import type { Command } from 'commander';
import type { LookOptions } from './look-into.ts';
import type { Context } from './main.ts';
import { addWindowOption, whichWindow } from './window-choice.ts';

const after = `
${whichWindow.trim()}

Examples:
  forget list
  forget list memory
  forget list --json

With --json, standard output gets an array of objects: path, kind ("created", "changed" or
"deleted"), type and size in the window (null where deleted), lower {type, mode, size} of what
the workspace has there, or null, renamedFrom, program {pid, command} that changed it last.
What was kept, and not changed since, is not listed.

Exit code: 0, also when the window holds nothing; 125 when forget fails.`;

export function addList(program: Command, context: Context): void {
  addWindowOption(program.command('list'))
    .summary('list what a window holds')
    .description('List the protected paths that a window holds at this moment.')
    .argument('[path...]', 'only what is at or below these')
    .option('--json', 'print JSON')
    .addHelpText('after', after)
    .action(async (paths: string[], options: LookOptions) => {
      const { list } = await import('./look-into.ts');
      await list(paths, options, context.cwd());
    });
}
