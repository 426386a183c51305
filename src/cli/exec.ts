import { type Command, InvalidArgumentError, Option } from 'commander';
import { Failure } from '../window/failure.ts';
import type { FailOn, SettingsOptions } from '../window/settings.ts';
import type { Context } from './main.ts';
import { say } from './output.ts';
import { addWindowOptions, configurationHelp } from './window-options.ts';

interface ExecOptions {
  workspace?: string;
  keepCaps?: true;
  failOn?: FailOn[];
}

const REASONS: readonly FailOn[] = ['leak', 'protected-write'];

function failOn(value: string, before: FailOn[] | undefined): FailOn[] {
  const reason = REASONS.find((one) => one === value);
  if (!reason) throw new InvalidArgumentError(`It is one of: ${REASONS.join(', ')}.`);
  return [...(before ?? []), reason];
}

const after = `
The command sees the workspace as it is, at its own path; what it writes to protected
paths stays in RAM and is gone when it ends. All else it writes is real at once.
forget's options end at the first word that is not one, or at "--".

An agent that forget knows is recognised by its program ("forget presets" lists them), and
the places where it keeps its state are covered too; --agent names another, or none.
${configurationHelp}
Examples:
  forget exec -- claude
  forget exec -p '/notes/' --exempt 'train.jsonl' -- codex exec 'fix the tests'
  forget exec --agent mem0 -- python assistant.py
  forget exec -w ~/project --report report.json -- sh -c 'make && ./agent'
  forget exec --fail-on leak --fail-on protected-write -- ./agent   # in CI

Exit code: the command's own; 128+N when signal N ended it; 3 in place of those where
--fail-on found what it names; 125 when forget itself fails; 126 when the command is
not executable; 127 when it is not found.`;

export function addExec(program: Command, context: Context): void {
  const command = program
    .command('exec')
    .summary('run a command in a window of its own')
    .description('Run a command in a window of its own, which closes when the command ends.')
    .usage('[options] [--] command...')
    .argument('[command...]', 'the command and its arguments')
    .passThroughOptions()
    .addHelpText('after', after);
  const options = addExecOptions(command);
  command.action(async (argv: string[]) => {
    if (argv.length === 0)
      throw new Failure('no command given; write it after the options: forget exec -- COMMAND');
    const { buildSettings } = await import('../window/settings.ts');
    const cwd = context.cwd();
    const { settings, notices, covering } = await buildSettings({ ...options(), argv }, cwd);
    notices.forEach(say);
    if (!settings.quiet) covering.forEach(say);
    const { execWindow } = await import('../window/exec.ts');
    context.end(await execWindow(settings, { argv, cwd }));
  });
}

/** The options of a window for one command: of `forget exec`, and of `forget shell`. As `addWindowOptions`. */
export function addExecOptions(command: Command): () => SettingsOptions {
  command
    .option('-w, --workspace <dir>', 'the directory to cover (default: the current directory)')
    .addOption(
      new Option('--fail-on <what>', 'exit with 3 on a leak or a protected write (repeatable)')
        .choices(REASONS)
        .argParser<FailOn[] | undefined>(failOn),
    )
    .option('--keep-caps', "as root, leave the command all of root's capabilities");
  const options = addWindowOptions(command);
  return () => {
    const { workspace, keepCaps, failOn } = command.opts<ExecOptions>();
    return { ...options(), workspace, keepCaps, failOn };
  };
}
