# zsh reads this in `forget shell`, which points ZDOTDIR here (src/window/shell.ts). ZDOTDIR goes back at once, so that
# the rest of zsh's start is the person's own.
if (( ${+FORGET_ZDOTDIR} )); then
  export ZDOTDIR=$FORGET_ZDOTDIR
  unset FORGET_ZDOTDIR
else
  unset ZDOTDIR
fi
if [[ -o interactive ]]; then
  __forget_mark() {
    [[ $PS1 == '(forget) '* ]] || PS1="(forget) $PS1"
  }
  # Hooks that the person's files add come after this one, and may set the prompt anew. So it goes to their end, and for
  # the first prompt, whose hooks are running already, to the beginning of the line editor.
  __forget_first_prompt() {
    precmd_functions=(${precmd_functions:#__forget_first_prompt} __forget_mark)
    __forget_mark
    autoload -Uz add-zle-hook-widget && add-zle-hook-widget line-init __forget_first_line
  }
  __forget_first_line() {
    add-zle-hook-widget -d line-init __forget_first_line
    [[ $PS1 == '(forget) '* ]] && return
    __forget_mark
    zle reset-prompt
  }
  typeset -ga precmd_functions
  precmd_functions+=(__forget_first_prompt)
fi
if [[ -r ${ZDOTDIR-$HOME}/.zshenv ]]; then . "${ZDOTDIR-$HOME}/.zshenv"; fi
