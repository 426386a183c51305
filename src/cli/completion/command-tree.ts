/**
 * What the completion scripts and the manual page are made of: the commands as commander knows them, so that a new one
 * comes along by itself. What a word completes to is read from its placeholder in the help: `<file>`, `<dir>`.
 */

import type { Argument, Command, Option } from 'commander';
import { KNOWN_PRESETS } from '../../window/presets/known.ts';

/** `windows`: ids of open windows. `targets`: those, and directories. `command`: another program's whole command line. */
export type Completes =
  | 'nothing'
  | 'files'
  | 'directories'
  | 'windows'
  | 'targets'
  | 'command'
  | readonly string[];

export interface OptionNode {
  /** `-p`, `--protect`: one or both. */
  names: string[];
  description: string;
  /** Undefined for a switch. */
  value?: { placeholder: string; completes: Completes };
}

export interface CommandNode {
  name: string;
  summary: string;
  options: OptionNode[];
  /** In order; the last one repeats where it is variadic. */
  args: { placeholder: string; completes: Completes; variadic: boolean }[];
}

const BY_PLACEHOLDER: Record<string, Completes> = {
  dir: 'directories',
  workspace: 'directories',
  mountpoint: 'directories',
  target: 'targets',
  window: 'windows',
  id: 'windows',
  agent: [...KNOWN_PRESETS.map(({ name }) => name), 'none'],
  name: 'nothing',
  size: 'nothing',
  number: 'nothing',
};

/** The program itself, whose name is '', and its commands. */
export function commandTree(program: Command): { program: CommandNode; commands: CommandNode[] } {
  const commands = program.createHelp().visibleCommands(program);
  const nested = commands.find(({ commands: below }) => below.length > 0);
  if (nested) throw new Error(`completion knows no commands of commands: ${nested.name()}`);
  return { program: { ...nodeOf(program), name: '', args: [] }, commands: commands.map(nodeOf) };
}

function nodeOf(command: Command): CommandNode {
  return {
    name: command.name(),
    summary: command.summary() || command.description(),
    options: command.createHelp().visibleOptions(command).map(optionOf),
    args: command.registeredArguments.map((argument) => ({
      placeholder: argument.name(),
      completes: completes(argument, argument.name(), argument.variadic),
      variadic: argument.variadic,
    })),
  };
}

function optionOf(option: Option): OptionNode {
  const placeholder = /[<[]([^\]>.]+)/.exec(option.flags)?.[1];
  return {
    names: [option.short, option.long].filter((name) => name !== undefined),
    description: option.description,
    ...(placeholder !== undefined && {
      value: { placeholder, completes: completes(option, placeholder, false) },
    }),
  };
}

function completes({ argChoices }: Option | Argument, placeholder: string, variadic: boolean): Completes {
  if (argChoices) return argChoices;
  if (placeholder === 'command' && variadic) return 'command';
  return BY_PLACEHOLDER[placeholder] ?? 'files';
}
