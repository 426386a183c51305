import type { CommandNode, Completes, OptionNode } from './command-tree.ts';

/** Serves as a file `_forget` in $fpath, and when it is evaluated. */
export function zshScript(program: CommandNode, commands: readonly CommandNode[], windows: string): string {
  return `#compdef forget
# zsh completion for forget, made by "forget completion zsh"
_forget_commands() {
  local -a commands=(
${commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary}`)}`).join('\n')}
  )
  _describe -t commands command commands
}
_forget_windows() {
  local -a windows
  windows=(\${(f)"$($forget ${windows.replace('\\t', ':')})"})
  _describe -t windows window windows
}
_forget_targets() {
  _alternative 'windows:window:_forget_windows' 'directories:directory:_directories'
}
_forget_wrapped() {
  # A "--" directly after the command's name counts as a word, and any other does not (zsh 5.9).
  if [[ $words[1] == -- ]]; then
    shift words
    (( CURRENT-- ))
  fi
  _normal
}
_forget() {
  local context curcontext=$curcontext state state_descr line forget=$words[1] ret=1
  local -A opt_args
  _arguments -C -A '-*' \\
${program.options.flatMap(optionSpecs).map(line).join('')}    '1:command:_forget_commands' \\
    '*::argument:->argument' && ret=0
  [[ $state == argument ]] || return ret
  case $words[1] in
${commands.map(commandCase).join('\n')}
  esac
  return ret
}
if [[ $funcstack[1] == _forget ]]; then
  _forget "$@"
else
  compdef _forget forget
fi
`;
}

function commandCase({ name, options, args }: CommandNode): string {
  const wrapped = args.some(({ completes }) => completes === 'command');
  const specs = [
    ...options.flatMap(optionSpecs),
    ...args.flatMap(({ placeholder, completes, variadic }, at) =>
      completes === 'command'
        ? [quoted('(-)1:command:_command_names -e'), quoted('*::argument:_forget_wrapped')]
        : [quoted(`${variadic ? '*' : at + 1}:${placeholder}:${action(completes)}`)],
    ),
  ];
  return `    ${name})
      _arguments -S ${wrapped ? "-A '-*' " : ''}\\
${specs.map((spec) => `        ${spec} \\`).join('\n')}
        && ret=0
      ;;`;
}

/** An option that takes a value may be given again; a switch need not. */
function optionSpecs({ names, description, value }: OptionNode): string[] {
  const what = `[${description.replace(/[[\]\\]/g, '\\$&')}]`;
  if (!value) {
    const others = names.length > 1 ? `(${names.join(' ')})` : '';
    return names.map((name) => quoted(`${others}${name}${what}`));
  }
  return names.map((name) =>
    quoted(
      `*${name}${name.startsWith('--') ? '=' : '+'}${what}:${value.placeholder}:${action(value.completes)}`,
    ),
  );
}

function action(completes: Completes): string {
  if (typeof completes !== 'string') return `(${completes.join(' ')})`;
  return {
    nothing: ' ',
    files: '_files',
    directories: '_directories',
    windows: '_forget_windows',
    targets: '_forget_targets',
    command: '_forget_wrapped',
  }[completes];
}

function line(spec: string): string {
  return `    ${spec} \\\n`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
