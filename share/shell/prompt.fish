# fish reads this after the person's own configuration in `forget shell` (src/window/shell.ts): the mark.
functions --query fish_prompt
and functions --copy fish_prompt __forget_own_prompt
function __forget_status
    return $argv[1]
end
function fish_prompt
    set -l last $status
    printf '(forget) '
    __forget_status $last
    __forget_own_prompt
end
