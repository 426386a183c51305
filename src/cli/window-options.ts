/** The options that say what a window is to be: the same for `forget exec` and `forget mount`. */
import { type Command, Option } from 'commander';
import type { RuleLine } from '../overlay/rules.ts';
import { displayName } from '../sys/bytes.ts';
import { Failure } from '../window/failure.ts';
import type { DriverName, SettingsOptions } from '../window/settings.ts';
import { parseSize } from '../window/size.ts';

/** What commander collects, under the options' own names. */
interface Parsed {
  root?: string[];
  agent?: string[];
  defaults: boolean;
  config?: string | boolean;
  report?: string;
  upperSize?: number;
  quiet?: true;
  hide?: true;
  readonly?: true;
  verbose?: true;
  driver: DriverName;
}

/** For the help of both commands. */
export const configurationHelp = `
Configuration: .forgetrc (JSON or YAML), forget.config.json or package.json#forget in the
workspace, or above it up to the root of its git repository, may protect more. Your own,
config.json or config.yaml in $XDG_CONFIG_HOME/forget (~/.config/forget), may also exempt.
Keys: protect, exempt, defaults, ignoreCase, upperSize, hide, readonly, quiet, and in your own
roots: [{directory, protect, exempt}], other directories to cover, presets and parts
(docs/presets.md). What would weaken the window in a workspace's configuration is ignored,
and said. The last rule that matches wins: defaults, presets, your configuration, the
workspace's, options as typed.
`;

/** Adds the options; the returned function gives what was set, once the command line has been parsed. */
export function addWindowOptions(command: Command): () => SettingsOptions {
  // One list for both options: the last match wins, so their order among each other counts.
  const rules: RuleLine[] = [];
  const rule = (flags: string, help: string, exempt: boolean) =>
    new Option(flags, help).argParser((value: string) => {
      rules.push({ pattern: globText(value), exempt, source: exempt ? '--exempt' : '--protect' });
      return value;
    });
  command
    .addOption(rule('-p, --protect <glob>', 'protect what matches, in gitignore syntax (repeatable)', false))
    .addOption(rule('--exempt <glob>', 'do not protect what matches (repeatable; the last match wins)', true))
    .option(
      '--root <dir>',
      'cover this directory too, and protect all of it (repeatable)',
      (dir, before: string[] = []) => [...before, dir],
    )
    .option(
      '--agent <agent>',
      'cover what this agent keeps outside the workspace: a preset, NAME+PART, or none (repeatable)',
      (name, before: string[] = []) => [...before, displayName(name)],
    )
    .option('--no-defaults', 'leave out the default rules (/memory/, *.jsonl, DELIVERABLES.md, /MEMORY.md)')
    .option('--config <file>', 'read this configuration in place of all others')
    .option('--no-config', 'read no configuration file')
    .option('--report <file>', 'write what happened as JSON to this file when the window closes')
    .addOption(
      new Option('--upper-size <size>', 'the most that protected writes may hold, such as 512M').argParser(
        (value: string) => parseSize(displayName(value), '--upper-size'),
      ),
    )
    .option('--hide', 'protected paths read as absent')
    .option('--readonly', 'writes to protected paths fail (EROFS)')
    .addOption(
      new Option('--driver <name>', 'who serves the mount: forget itself, or libfuse 2.9')
        .choices(['kernel', 'fuse-native'])
        .default('kernel'),
    )
    .option('--quiet', 'no report at the end')
    .option('--verbose', 'say what forget does');
  return () => {
    const parsed = command.opts<Parsed>();
    return {
      rules,
      agents: parsed.agent,
      defaults: parsed.defaults ? undefined : false,
      // Without either option commander sets true.
      config: parsed.config === true ? undefined : parsed.config,
      roots: parsed.root,
      report: parsed.report,
      upperSize: parsed.upperSize,
      quiet: parsed.quiet,
      hide: parsed.hide,
      readonly: parsed.readonly,
      verbose: parsed.verbose,
      driver: parsed.driver,
    };
  };
}

export function globText(bytes: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(bytes, 'latin1'));
  } catch {
    throw new Failure(`glob "${displayName(bytes)}" is not UTF-8; write ? for each byte that is not`);
  }
}
