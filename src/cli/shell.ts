import type { Command } from 'commander';
import { displayName } from '../sys/bytes.ts';
import { addExecOptions } from './exec.ts';
import type { Context } from './main.ts';
import { say } from './output.ts';
import { configurationHelp } from './window-options.ts';

const after = `
Starts $SHELL (or /bin/sh) in a window of its own, which closes when the shell ends. Your
shell reads its own configuration, and its prompt begins with "(forget)". Programs find the
window's id in the variable FORGET_WINDOW, as in each window. The shell's history is not
in the workspace, and is kept as ever. Agents that are started in it are covered by
--agent NAME, since nobody can tell beforehand which they will be.
${configurationHelp}
Examples:
  forget shell
  forget shell -w ~/project --hide
  forget shell --agent claude --agent codex
  echo './agent' | forget shell --quiet

Exit code: as of "forget exec".`;

export function addShell(program: Command, context: Context): void {
  const command = program
    .command('shell')
    .summary('open your shell in a window of its own')
    .description('Open your shell in a window of its own, with a mark in its prompt.')
    .addHelpText('after', after);
  const options = addExecOptions(command);
  command.action(async () => {
    const [{ buildSettings }, { personsShell }] = await Promise.all([
      import('../window/settings.ts'),
      import('../window/shell.ts'),
    ]);
    const cwd = context.cwd();
    const { settings, notices, covering } = await buildSettings(options(), cwd);
    notices.forEach(say);
    if (!settings.quiet) covering.forEach(say);
    const { argv, env, marked } = personsShell();
    if (!marked && !settings.quiet) {
      say(`${displayName(argv[0]!)}: its prompt cannot be marked; FORGET_WINDOW is set in it`);
    }
    const { execWindow } = await import('../window/exec.ts');
    context.end(await execWindow(settings, { argv, cwd, env }));
  });
}
