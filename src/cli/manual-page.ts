/** The manual page, man/forget.1, made of the help texts at the build (scripts/build.mjs); in man(7)'s macros. */
import type { Command } from 'commander';
import { version } from './version.ts';

export function manualPage(program: Command): string {
  const help = program.createHelp();
  const commands = help.visibleCommands(program);
  return [
    `.TH FORGET 1 "" "forgetfs ${version}" "User Commands"`,
    '.SH NAME',
    `forget \\- ${text(help.commandDescription(program))}`,
    '.SH SYNOPSIS',
    '.B forget',
    '.I command',
    '[options] [arguments]',
    '.SH COMMANDS',
    ...commands.flatMap((command) => [
      '.TP',
      `.B ${literal(command.name())}`,
      text(help.subcommandDescription(command)),
    ]),
    ...commands.flatMap((command) => [
      `.SH ${literal(`forget ${command.name()}`).toUpperCase()}`,
      `.B ${literal(`forget ${command.name()}`)}`,
      literal(command.usage()),
      '.PP',
      text(help.commandDescription(command)),
      ...optionLines(command),
      ...prose(helpAfter(command)),
    ]),
    '.SH OPTIONS OF FORGET ITSELF',
    ...optionLines(program),
    '.SH EXIT STATUS',
    ...prose(helpAfter(program)),
    '',
  ].join('\n');
}

function optionLines(command: Command): string[] {
  const help = command.createHelp();
  return help
    .visibleOptions(command)
    .flatMap((option) => [
      '.TP',
      `.B ${literal(help.optionTerm(option))}`,
      text(help.optionDescription(option)),
    ]);
}

/** What `addHelpText('after')` adds: commander gives it by printing alone. */
function helpAfter(command: Command): string {
  let printed = '';
  command.configureOutput({
    writeOut: (part) => {
      printed += part;
    },
  });
  command.outputHelp();
  const information = command.helpInformation();
  return printed.slice(printed.indexOf(information) + information.length);
}

/** Paragraphs are filled anew; lines that are indented, as examples are, stay as they are. */
function prose(help: string): string[] {
  const lines: string[] = [];
  let kept = false;
  for (const line of `${help.trim()}\n`.split('\n')) {
    const keep = line.startsWith('  ');
    if (keep && !kept) lines.push('.RS 4', '.nf');
    if (!keep && kept) lines.push('.fi', '.RE');
    kept = keep;
    if (keep) lines.push(literal(line.trim()));
    else if (line === '') lines.push('.PP');
    else lines.push(...(line.startsWith('Exit code:') ? ['.PP'] : []), text(line));
  }
  // A paragraph's mark before the end or a list says nothing.
  return ['.PP', ...lines].filter(
    (line, at, all) => line !== '.PP' || !/^(\.PP|\.RS 4|)$/.test(all[at + 1] ?? ''),
  );
}

/** What is typed as it is: its hyphens are those of the keyboard. */
function literal(words: string): string {
  return text(words).replaceAll('-', '\\-');
}

function text(words: string): string {
  return words.replaceAll('\\', '\\e').replace(/^[.']/, '\\&$&').replaceAll('’', "'");
}
