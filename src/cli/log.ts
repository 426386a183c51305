import type { Command } from 'commander';
import type { LookOptions } from './look-into.ts';
import type { Context } from './main.ts';
import { addWindowOption, whichWindow } from './window-choice.ts';

const after = `
What the same program does to the same path within a second is one line. A window remembers its last
5,000 lines.
${whichWindow}

Examples:
  forget log
  forget log -f
  forget log --json | jq -r 'select(.operation == "write") | .path'

With --json, each line is an object: number, at and last (ISO 8601), operation ("create", "write",
"change", "rename", "delete" or "keep"), path, renamedFrom, pid, command, bytes, count.

Exit code: 0, with -f when the window closes; 125 when forget fails.`;

export function addLog(program: Command, context: Context): void {
  addWindowOption(program.command('log'))
    .summary('show what programs did to protected paths')
    .description('Show what programs have done to protected paths in a window.')
    .option('-f, --follow', 'go on until the window closes, or Ctrl-C')
    .option('--json', 'print a JSON object a line')
    .addHelpText('after', after)
    .action(async (options: LookOptions & { follow?: true }) => {
      const { log } = await import('./look-into.ts');
      await log(options, context.cwd());
    });
}
