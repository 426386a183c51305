import type { CommandNode, Completes } from './command-tree.ts';

/**
 * bash splits `--option=value` at the `=`. Files and directories are left to readline (compopt), which knows about
 * quotes; the wrapped command to bash-completion where that is loaded.
 */
export function bashScript(program: CommandNode, commands: readonly CommandNode[], windows: string): string {
  const all = [program, ...commands];
  const options = all.flatMap(({ name, options: own }) =>
    own.flatMap(({ names, value }) =>
      value
        ? [
            arm(
              names.map((option) => `${name}:${option}`),
              value.completes,
            ),
          ]
        : [],
    ),
  );
  const args = commands.flatMap(({ name, args: own }) =>
    own.map(({ completes, variadic }, at) => arm([variadic ? `${name}:*` : `${name}:${at}`], completes)),
  );
  const words = all.map(({ name, options: own }) => {
    const names = own.flatMap((option) => option.names);
    return `    '${name}') REPLY='${names.join(' ')}' ;;`;
  });
  return `# bash completion for forget, made by "forget completion bash"
_forget_option_value() {
  case $1:$2 in
${options.join('\n')}
    *) REPLY= ;;
  esac
}
_forget_argument() {
  case $1:$2 in
${args.join('\n')}
    *) REPLY=nothing ;;
  esac
}
_forget_options() {
  case $1 in
${words.join('\n')}
    *) REPLY= ;;
  esac
}
_forget_wrapped() {
  if declare -F _comp_command_offset >/dev/null; then
    _comp_command_offset "$1"
  elif declare -F _command_offset >/dev/null; then
    _command_offset "$1"
  else
    compopt -o default
    if (($1 == COMP_CWORD)); then mapfile -t COMPREPLY < <(compgen -c -- "\${COMP_WORDS[COMP_CWORD]}"); fi
  fi
}
_forget() {
  local cur=\${COMP_WORDS[COMP_CWORD]} command= value= ended= count=0 i word REPLY
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ $word == = ]]; then
      continue
    elif [[ $value ]]; then
      value=
    elif [[ ! $ended && $word == -- ]]; then
      ended=1
    elif [[ ! $ended && $word == -?* ]]; then
      _forget_option_value "$command" "$word"
      value=$REPLY
    elif [[ ! $command ]]; then
      command=$word
    else
      _forget_argument "$command" "$count"
      if [[ $REPLY == command ]]; then
        _forget_wrapped "$i"
        return
      fi
      ((++count))
    fi
  done
  if [[ $cur == = ]]; then cur=; fi
  if [[ $value ]]; then
    REPLY=$value
  elif [[ ! $ended && $cur == -* ]]; then
    _forget_options "$command"
    REPLY="words $REPLY"
  elif [[ ! $command ]]; then
    REPLY='words ${commands.map(({ name }) => name).join(' ')}'
  else
    _forget_argument "$command" "$count"
  fi
  case $REPLY in
    command) _forget_wrapped "$COMP_CWORD" ;;
    files) compopt -o default ;;
    directories) compopt -o dirnames ;;
    windows | targets)
      if [[ $REPLY == targets ]]; then compopt -o dirnames; fi
      mapfile -t COMPREPLY < <(compgen -W "$("$1" ${windows.replace('\\t\\2', '')})" -- "$cur")
      ;;
    words*) mapfile -t COMPREPLY < <(compgen -W "\${REPLY#words}" -- "$cur") ;;
  esac
}
complete -F _forget forget
`;
}

function arm(patterns: readonly string[], completes: Completes): string {
  const kind = typeof completes === 'string' ? completes : `words ${completes.join(' ')}`;
  return `    ${patterns.map((pattern) => pattern.replace(/[^:*]+|:/g, "'$&'").replaceAll("''", '')).join(' | ')}) REPLY='${kind}' ;;`;
}
