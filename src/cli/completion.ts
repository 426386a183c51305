import { Argument, type Command } from 'commander';
import type { Shell } from './completion-script.ts';
import { print } from './output.ts';

const after = `
Commands, options, files, the ids of open windows, and after "forget exec --" whatever your
shell completes for that command.

Examples:
  forget completion bash >~/.local/share/bash-completion/completions/forget
  forget completion zsh >~/.zfunc/_forget          # with fpath+=~/.zfunc before compinit
  forget completion fish >~/.config/fish/completions/forget.fish
  eval "$(forget completion bash)"                 # for this shell alone

Exit code: 0; 125 when forget fails.`;

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .summary('print the completion script of a shell')
    .description('Print what teaches a shell to complete forget’s commands.')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish']))
    .addHelpText('after', after)
    .action(async (shell: Shell) => {
      const { completionScript } = await import('./completion-script.ts');
      print(completionScript(program, shell));
    });
}
