import type { CommandNode, Completes } from './command-tree.ts';

export function fishScript(program: CommandNode, commands: readonly CommandNode[], windows: string): string {
  const all = [program, ...commands];
  const takeValue = all.flatMap(({ name, options }) =>
    options.flatMap(({ names, value }) => (value ? names.map((option) => `${name}:${option}`) : [])),
  );
  const wrapping = commands.filter(({ args }) => args.some(({ completes }) => completes === 'command'));
  return `# fish completion for forget, made by "forget completion fish"
# Prints forget's command, how many arguments that has before the cursor, and the first word of a wrapped command, or 0.
function __forget_parse
    set -l words (commandline -opc)
    set -l command ''
    set -l count 0
    set -l value 0
    set -l ended 0
    for i in (seq 2 (count $words))
        set -l word $words[$i]
        if test $value = 1
            set value 0
        else if test $ended = 0; and test "$word" = --
            set ended 1
        else if test $ended = 0; and string match -q -- '-?*' $word
            contains -- "$command:$word" ${takeValue.join(' ')}; and set value 1
        else if test -z "$command"
            set command $word
        else if contains -- $command ${wrapping.map(({ name }) => name).join(' ')}
            printf '%s\\n' $command 0 $i
            return
        else
            set count (math $count + 1)
        end
    end
    set -l first 0
    if test $value = 0; and contains -- "$command" ${wrapping.map(({ name }) => name).join(' ')}
        if test $ended = 1; or not string match -q -- '-*' (commandline -ct)
            set first (math (count $words) + 1)
        end
    end
    printf '%s\\n' "$command" $count $first
end
# Whether the cursor is among the words of this command of forget's and, if that is given, at this argument.
function __forget_at
    set -l at (__forget_parse)
    test "$at[1]" = "$argv[1]"; and test $at[3] = 0; or return 1
    set -q argv[2]; or return 0
    test $at[2] = $argv[2]; or test $argv[2] = any
end
function __forget_wraps
    test (__forget_parse)[3] != 0
end
function __forget_wrapped
    set -l words (commandline -opc) (commandline -ct)
    set -l first (__forget_parse)[3]
    set -l cursor $words[-1]
    set -e words[-1]
    complete -C (string join ' ' -- (string escape -- $words[$first..]) "$cursor")
end
function __forget_windows
    set -l forget (commandline -opc)[1]
    $forget ${windows}
end
complete -c forget -f
complete -c forget -n __forget_wraps -a '(__forget_wrapped)'
${commands.map(({ name, summary }) => `complete -c forget -n '__forget_at ""' -a ${name} -d ${quoted(summary)}`).join('\n')}
${all.flatMap(optionLines).join('\n')}
${commands.flatMap(argumentLines).join('\n')}
`;
}

function optionLines({ name, options }: CommandNode): string[] {
  return options.map(({ names, description, value }) => {
    const flags = names.map((option) =>
      option.startsWith('--') ? `-l ${option.slice(2)}` : `-s ${option.slice(1)}`,
    );
    const takes = value ? ` -r ${candidates(value.completes)}` : '';
    const where = quoted(`__forget_at ${name || '""'}`);
    return `complete -c forget -n ${where} ${flags.join(' ')}${takes} -d ${quoted(description)}`;
  });
}

function argumentLines({ name, args }: CommandNode): string[] {
  return args.flatMap(({ completes, variadic }, at) =>
    completes === 'command' || completes === 'nothing'
      ? []
      : [
          `complete -c forget -n ${quoted(`__forget_at ${name} ${variadic ? 'any' : at}`)} ${candidates(completes)}`,
        ],
  );
}

function candidates(completes: Completes): string {
  if (typeof completes !== 'string') return `-f -a ${quoted(completes.join(' '))}`;
  return {
    nothing: '-f',
    files: '-F',
    directories: `-f -a '(__fish_complete_directories)'`,
    windows: `-f -a '(__forget_windows)'`,
    targets: `-f -a '(__forget_windows; __fish_complete_directories)'`,
    command: '-f',
  }[completes];
}

function quoted(text: string): string {
  return `'${text.replace(/['\\]/g, '\\$&')}'`;
}
