/**
 * The person's shell, as `forget shell` starts it: with their own configuration, and a mark in the prompt. Each shell
 * has its own way to read one more file, and those files are shipped in share/shell. Whoever reads them puts the
 * variables back that led there, so that a shell inside that shell is an ordinary one.
 */
import { posix } from 'node:path';
import { rawEnvironment } from '../sys/argv.ts';
import { bytesOf } from '../sys/bytes.ts';

export interface ShellCommand {
  /** Byte strings. */
  argv: string[];
  /** Variables on top of the environment; byte strings. */
  env: Record<string, string>;
  /** Whether its prompt will say that it is in a window. */
  marked: boolean;
}

/** `$SHELL` with what marks its prompt, or `/bin/sh` where that is not set. */
export function personsShell(): ShellCommand {
  const inherited = rawEnvironment();
  const variable = (name: string): string | undefined =>
    inherited.find((entry) => entry.startsWith(`${name}=`))?.slice(name.length + 1);
  const shell = variable('SHELL') || '/bin/sh';
  const file = (name: string): string => bytesOf(posix.join(import.meta.dirname, '../share/shell', name));
  /** Points the variable to our file, and hands the person's own value on for it. */
  const redirected = (name: string, to: string): Record<string, string> => {
    const own = variable(name);
    return { [name]: file(to), ...(own !== undefined && { [`FORGET_${name}`]: own }) };
  };
  switch (posix.basename(shell)) {
    case 'bash':
      return { argv: [shell, '--rcfile', file('bashrc')], env: {}, marked: true };
    case 'zsh':
      return { argv: [shell], env: redirected('ZDOTDIR', 'zsh'), marked: true };
    case 'fish': {
      const quoted = `'${file('prompt.fish').replace(/['\\]/g, '\\$&')}'`;
      return { argv: [shell, '--init-command', `source ${quoted}`], env: {}, marked: true };
    }
    case 'sh':
    case 'dash':
    case 'ash':
    case 'ksh':
    case 'mksh':
      return { argv: [shell], env: redirected('ENV', 'shrc'), marked: true };
    default:
      return { argv: [shell], env: {}, marked: false };
  }
}
