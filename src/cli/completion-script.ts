/** Loaded late, since only `forget completion` needs it. */
import type { Command } from 'commander';
import { bashScript } from './completion/bash.ts';
import { commandTree } from './completion/command-tree.ts';
import { fishScript } from './completion/fish.ts';
import { zshScript } from './completion/zsh.ts';

export type Shell = 'bash' | 'zsh' | 'fish';

/** After the program's name: prints an id, a tab and a few words for each open window. */
const WINDOWS = `status 2>/dev/null | sed -n 's/^\\([0-9]*-[0-9a-f]*\\)  \\(.*\\), since .*/\\1\\t\\2/p'`;

/** The script that teaches `shell` to complete `program`. */
export function completionScript(program: Command, shell: Shell): string {
  const tree = commandTree(program);
  const make = { bash: bashScript, zsh: zshScript, fish: fishScript }[shell];
  return make(tree.program, tree.commands, WINDOWS);
}
