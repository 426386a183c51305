/** What the commands that look into a window have in common. */
import type { Command } from 'commander';

export function addWindowOption(command: Command): Command {
  return command.option('--window <id>', 'the window, as "forget status" names it');
}

/** For their help. */
export const whichWindow = `
Which window: the one this command runs in, else the one that covers the current directory,
else the only one there is; --window names one.`;
