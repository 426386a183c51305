# git in a workspace whose rules protect files that git knows too; prints what it observes.
umask 022
exec 2>&1
export GIT_PAGER=cat GIT_EDITOR=true
try() { "$@"; printf '   [%s] %s\n' "$?" "$*"; }
export GIT_CONFIG_COUNT=3 GIT_CONFIG_KEY_0=gc.auto GIT_CONFIG_VALUE_0=0
export GIT_CONFIG_KEY_1=pack.threads GIT_CONFIG_VALUE_1=1
export GIT_CONFIG_KEY_2=advice.detachedHead GIT_CONFIG_VALUE_2=false

try git status --short
echo 'def two(): return 2' >>src/lib/util.py
try git diff --stat
try git add -A src
try git commit -q -m third
try git log --format='%H %s'
try git checkout -q -b x.jsonl
try git branch --list
echo more >>README.md
try git stash
try git stash list
try git stash pop
try git commit -q -am 'on a branch named like a log'
try git switch -q main
try git switch -q -c memory/topic
try git merge -q --no-edit x.jsonl
try git rebase -q main
try git tag v1.jsonl
try git worktree add -q tree x.jsonl
ls tree
try git -C tree status --short
try git worktree remove tree
try git mv src/tool.sh src/tools.sh
try git commit -q -m moved
try git rm -q memory.py
try git reset -q --hard HEAD
ls memory.py
try git gc -q
try git fsck --no-progress --no-dangling
try git repack -q -a -d
try git clone -q . clone
try git -C clone log --oneline
rm -rf clone
try git clean -ndx data
mkdir fresh && cd fresh && try git init -q -b main && echo x >x && try git add x && try git commit -q -m x && try git switch -q -c y && cat .git/logs/HEAD | cut -d' ' -f3- && cd ..
try git reflog
try git ls-files -s
try git for-each-ref
cat .git/HEAD
