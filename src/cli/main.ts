/**
 * The `forget` command. Only what parses the command line is loaded here; each command loads its own work when it
 * runs, since the start of `forget exec` is counted in milliseconds.
 *
 * Arguments are byte strings (sys/argv.ts), parsed as they are and made readable only when shown.
 */
import { Command, CommanderError } from 'commander';
import { currentDirectory, rawArguments } from '../sys/argv.ts';
import { displayName } from '../sys/bytes.ts';
import { addClose } from './close.ts';
import { addCompletion } from './completion.ts';
import { addDiff } from './diff.ts';
import { addDoctor } from './doctor.ts';
import { addExec } from './exec.ts';
import { addKeep } from './keep.ts';
import { addList } from './list.ts';
import { addLog } from './log.ts';
import { addManualPage } from './manual.ts';
import { addMount } from './mount.ts';
import { addOpen } from './open.ts';
import { print, say } from './output.ts';
import { addPresets } from './presets.ts';
import { addReport } from './report.ts';
import { addShell } from './shell.ts';
import { addStatus } from './status.ts';
import { addUnmount } from './unmount.ts';
import { version } from './version.ts';

/** forget itself failed: the same number for every command, so that it is never taken for a command's own. */
const failed = 125;

export interface Context {
  /** Byte string: the directory forget was started in. */
  cwd(): string;
  /** The exit code, once the command has run. */
  end(code: number): void;
}

async function run(args: string[]): Promise<number> {
  let code = 0;
  const context: Context = {
    cwd: currentDirectory,
    end: (value) => {
      code = value;
    },
  };
  const program = new Command('forget')
    .description(
      'An overlay for AI agents: what they write to protected paths is gone when the window closes.',
    )
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand(false)
    .enablePositionalOptions()
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({ writeOut: print, outputError: (text) => say(explainUsage(text)) });
  program.addHelpText(
    'after',
    `\nExit code: 0, or ${failed} when forget itself fails; "forget exec" gives the command's own.`,
  );
  // Its start is counted in milliseconds, and nothing that it prints speaks of the other commands.
  if (args[0] === 'exec') addExec(program, context);
  else addCommands(program, context);
  try {
    await program.parseAsync(args, { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : failed;
    say(explain(error));
    return failed;
  }
}

function addCommands(program: Command, context: Context): void {
  addExec(program, context);
  addShell(program, context);
  addMount(program, context);
  addUnmount(program, context);
  addOpen(program);
  addClose(program);
  addStatus(program);
  addList(program, context);
  addDiff(program, context);
  addLog(program, context);
  addKeep(program, context);
  addPresets(program, context);
  addDoctor(program, context);
  addReport(program);
  addCompletion(program);
  addManualPage(program);
}

/** Commander's text, in which what was typed are bytes, and a suggestion stands on a line of its own. */
function explainUsage(text: string): string {
  const [, mistake = text, suggestion = ''] =
    /^error: (.*?)\n?(\(Did you mean [^\n]*\))?\n?$/s.exec(text) ?? [];
  return `${displayName(mistake)}${suggestion && ` ${suggestion}`}`;
}

/** A bug shows its stack; what was expected to go wrong is one line. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // By name: a file that is loaded late has classes of its own.
  const expected = ['Failure', 'SysError', 'RuleError', 'DriverUnavailable'].includes(error.name);
  return expected ? error.message : `internal error, please report it: ${error.stack ?? error.message}`;
}

void run(rawArguments()).then((code) => process.exit(code));
