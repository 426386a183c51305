import type { Command } from 'commander';
import type { LookOptions } from './look-into.ts';
import type { Context } from './main.ts';
import { addWindowOption, whichWindow } from './window-choice.ts';

const after = `
In git's form, from the workspace (a/) to the window (b/): deleted, renamed and binary files, symlinks and
modes are named, and files past 4 MiB are not compared. On a terminal it is coloured (NO_COLOR turns
that off) and goes through $PAGER, or less.
${whichWindow}

Examples:
  forget diff
  forget diff memory
  forget diff --window 4711-09af | git apply

With --json, standard output gets an array of objects: path, kind, renamedFrom, content ("same", "text",
"binary", "large" or "slow"), diff (text, or null where it is not shown), upper and lower
{type, mode, size} or null.

Exit code: 0, also when the window holds nothing; 125 when forget fails.`;

export function addDiff(program: Command, context: Context): void {
  addWindowOption(program.command('diff'))
    .summary('show what a window has changed')
    .description('Show what a window holds against the workspace, as a unified diff.')
    .argument('[path...]', 'only what is at or below these')
    .option('--json', 'print JSON')
    .addHelpText('after', after)
    .action(async (paths: string[], options: LookOptions) => {
      const { diff } = await import('./look-into.ts');
      await diff(paths, options, context.cwd());
    });
}
