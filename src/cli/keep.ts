import type { Command } from 'commander';
import type { LookOptions } from './look-into.ts';
import type { Context } from './main.ts';
import { addWindowOption, whichWindow } from './window-choice.ts';
import { globText } from './window-options.ts';

const after = `
Globs are in gitignore syntax, relative to the workspace; '*' is everything, '!x' leaves x out,
and ~/... or an absolute path names what is in another directory that the window covers.
A database is kept with its -wal, -shm and -journal. Keeping a deleted path deletes it.

All or nothing: where the workspace has changed since the window covered a path, nothing is kept,
and the paths are named; --force keeps over that. What is kept stays in the window too: what is written to
it afterwards is forgotten as ever, unless it is kept again.
${whichWindow}

Examples:
  forget keep memory/decisions.md
  forget keep --dry-run '*'
  forget keep '/memory/' '!*.tmp'

With --json, standard output gets {"kept": [{path, kind, type, size}], "conflicts": [{path, why}]}.
Exit code: 0 when kept; 1 when the workspace has changed, and nothing was kept; 125 when forget fails.`;

export function addKeep(program: Command, context: Context): void {
  addWindowOption(program.command('keep'))
    .summary('bring chosen paths of a window to the workspace')
    .description('Bring chosen paths of a window to the workspace, all of them or none.')
    .argument('<glob...>', 'which paths')
    .option('--force', 'also over what has changed in the workspace meanwhile')
    .option('--dry-run', 'only say what would be kept')
    .option('--json', 'print JSON')
    .addHelpText('after', after)
    .action(async (globs: string[], options: LookOptions & { force?: true; dryRun?: true }) => {
      const texts = globs.map(globText);
      const { keep } = await import('./look-into.ts');
      if (!(await keep(texts, options, context.cwd()))) context.end(1);
    });
}
