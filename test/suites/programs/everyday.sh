# A day with git in directory $1: a repository of 600 files, branches, a conflict, rebase, stash, gc, worktree and
# clones. Prints what it observes; ends with a full fsck and a clean status in each work tree.
umask 022
exec 2>&1
export GIT_PAGER=cat GIT_EDITOR=true
export GIT_CONFIG_COUNT=4 GIT_CONFIG_KEY_0=advice.detachedHead GIT_CONFIG_VALUE_0=false
export GIT_CONFIG_KEY_1=pack.threads GIT_CONFIG_VALUE_1=1 GIT_CONFIG_KEY_2=gc.auto GIT_CONFIG_VALUE_2=0
export GIT_CONFIG_KEY_3=protocol.file.allow GIT_CONFIG_VALUE_3=always
try() { "$@"; status=$?; printf '   [%s] %s\n' "$status" "$*"; }

cd "$1" || exit 1
mkdir main && cd main || exit 1
try git init -q -b main
for directory in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do
  mkdir -p "packages/p$directory/src/lib"
  seq 1 40 | while read -r file; do
    printf 'export const value%s = %s;\n' "$file" "$directory" >"packages/p$directory/src/lib/file$file.ts"
  done
done
printf '#!/bin/sh\necho hello\n' >run.sh && chmod +x run.sh
ln -s packages/p0 first
seq 1 5000 >numbers.txt
head -c 300000 /dev/zero | tr '\0' 'z' >large.bin
printf 'build/\n*.log\n' >.gitignore
mkdir build && echo made >build/out.log
try git add -A
try git commit -q -m 'the whole project'
try git status --short

# Branches: one moves a directory, one edits inside it, both edit one line.
try git switch -q -c moving
try git mv packages/p3 packages/renamed
sed -i 's/^2500$/2500 moving/' numbers.txt
try git commit -q -a -m 'p3 has a name'
try git switch -q main
try git switch -q -c editing
for file in 1 2 3 4 5; do echo "// edited" >>"packages/p3/src/lib/file$file.ts"; done
sed -i 's/^2500$/2500 editing/' numbers.txt
try git commit -q -a -m 'edits below p3'
chmod -x run.sh
rm first && echo 'a file where a link was' >first
try git commit -q -a -m 'type and mode'
try git merge -q --no-edit moving
try git diff --name-status --diff-filter=U
grep -n '2500' numbers.txt
sed -i '/^<<<<<<<\|^=======\|^>>>>>>>/d' numbers.txt
try git add numbers.txt
try git commit -q --no-edit
try git log --graph --format=%s
ls packages | tr '\n' ' '

# Rebase of ten commits, one of them amended by an exec; an interrupted one taken back.
try git switch -q -c topic main
for number in 1 2 3 4 5 6 7 8 9 10; do
  echo "$number" >>"packages/p9/src/lib/file$number.ts"
  git commit -q -a -m "step $number"
done
try git rebase -q --exec 'test -e numbers.txt' editing
try git rebase -q main --exec false
try git rebase --abort
try git cherry-pick moving
try git cherry-pick --abort
try git reset -q --hard HEAD~2
try git reset -q --hard 'HEAD@{1}'

# Stash with untracked files; a checkout that must refuse; a clean.
echo 'not yet' >>run.sh
echo 'untracked' >untracked.txt
try git stash push -q -u
try git status --short
try git stash pop -q
try git status --short
try git switch -q main
try git checkout -q -- run.sh
try git clean -q -f
echo 'in the way' >large.bin
try git switch -q moving
try git switch -q topic
try git restore large.bin

# Many files change at once, back and forth.
for round in 1 2; do
  try git switch -q moving
  try git status --short
  try git switch -q topic
  try git status --short
done
try git bisect start topic main
try git bisect run sh -c '! grep -q 6 packages/p9/src/lib/file6.ts'
try git bisect reset

# Worktrees, clones, a push, packs of every kind.
try git worktree add -q ../tree moving
try git -C ../tree status --short
echo 'from the worktree' >../tree/worktree.txt
try git -C ../tree add -A
try git -C ../tree commit -q -m 'from the worktree'
try git gc -q --prune=now
try git -C ../tree fsck --full --strict --no-progress
try git worktree remove ../tree
try git clone -q . ../clone
try git clone -q --no-hardlinks --bare . ../bare.git
try git -C ../clone switch -q -c sent
echo 'sent' >../clone/sent.txt
try git -C ../clone add -A
try git -C ../clone commit -q -m 'sent'
try git -C ../clone push -q ../bare.git sent
try git fetch -q ../bare.git sent:sent
try git merge -q --no-edit sent
try git repack -q -a -d -f --window=5
try git prune
try git pack-refs --all
try git reflog expire --expire=now --all
try git gc -q --prune=now
try git count-objects
try git update-server-info
try git submodule --quiet add ../bare.git module
try git commit -q -m 'a submodule'
try git archive --format=tar -o ../archive.tar HEAD
tar tf ../archive.tar | wc -l

try git log --all --graph --format='%H %s'
try git for-each-ref
try git ls-files -s
for repository in . ../clone ../bare.git; do
  try git -C "$repository" fsck --full --strict --no-progress
done
try git status --porcelain --ignored
try git -C ../clone status --porcelain
