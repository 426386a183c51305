# A shell's ways to write files, each done to protected and to unprotected paths; prints what it observes.
# `sh files.sh targets|trees`. Every command's status is printed, errors included.
umask 022
exec 2>&1

say() { printf '== %s\n' "$*"; }
try() { "$@"; printf '   [%s] %s\n' "$?" "$*"; }
look() { for f; do stat -c '%A %U:%G %s %h %N' "$f"; [ -f "$f" ] && cksum <"$f"; done; }

target() {
  old=$1 new=$2
  say "$old"
  echo one >"$new"; echo two >>"$new"; cat "$new"
  echo appended >>"$old"; tail -n 2 "$old"
  try sed -i 's/o/0/g' "$old"; head -c 60 "$old"; echo
  try sed -i.bak 's/0/o/' "$old"; look "$old" "$old.bak"
  echo teed | try tee -a "$old" "$new"
  try truncate -s 7 "$new"; look "$new"
  try truncate -s +100 "$new"; look "$new"
  printf 'DD' | try dd of="$old" bs=1 seek=3 conv=notrunc status=none; head -c 10 "$old"; echo
  try dd if=src/big.txt of="$new" bs=4k count=3 status=none; look "$new"
  try cp -p src/tool.sh "$new"; look "$new"; stat -c %y "$new"
  try cp --reflink=auto --sparse=auto src/big.txt "$new"; cmp "$new" src/big.txt
  try mv "$new" "$old"; look "$old"
  try mv -n "$old" "$old.bak"; look "$old.bak"
  try ln "$old" "$new"; stat -c %h "$old" "$new"
  try ln "$old" "$new"
  try ln -sf "$(basename "$old")" "$new"; look "$new"; cksum <"$new"
  try rm "$new"
  try install -m 0750 README.md "$new"; look "$new"
  try touch -d '2001-02-03 04:05:06.789012345' "$new"; stat -c '%x %y' "$new"
  try touch -a -d @1 "$new"; try touch -m -d @2 "$new"; stat -c '%X %Y' "$new"
  try chmod u+s,go-r "$new"; look "$new"
  try rm -f "$new" "$old.bak"
  try rm "$new"
  (set -C; echo no >"$old") && echo clobbered
  echo whole >|"$old"; cat "$old"
  exec 3<>"$old"; echo through >&3; exec 3>&-; cat "$old"
}

trees() {
  try mkdir -p memory/made/x/y
  try mkdir memory/made
  echo z >memory/made/x/y/z
  try cp -a src memory/src-copy; find memory/src-copy | sort
  try cp -r memory/deep src/deep-copy; find src/deep-copy | sort
  try cp -al memory/people memory/people-links; stat -c %h memory/people-links/ada.md
  try rsync -a src/ memory/rsynced/; diff -r --no-dereference src memory/rsynced && echo same
  rsync -ai --stats src/ memory/rsynced/ | grep -E 'transferred:|^[<>ch.*]'
  try rsync -a --delete memory/deep/ src/rsynced/; find src/rsynced | sort
  try rsync -a --inplace memory/old.md README.md; cat README.md
  try mv memory/people memory/folk; ls -A memory/folk; ls memory/people
  try mv memory/made/x src/moved; find src/moved | sort
  try mv src/empty memory/empty-dir; ls -d memory/empty-dir
  try rmdir memory/folk
  try rmdir memory/empty-dir
  try find memory -name '*.md' -newermt '2000-01-01' -delete; find memory -name '*.md' -type f
  try rm -rf memory/deep memory/src-copy
  try rm -rf memory; ls -d memory
  try mkdir memory; ls -A memory
  echo fresh >memory/fresh.md; cat memory/*
  mkdir many
  i=0; while [ $i -lt 60 ]; do mkdir many/$i; for j in a b c d e; do : >many/$i/$j; done; i=$((i + 1)); done
  find many | wc -l
  try rm -rf many; ls -d many
  tar -cf - --sort=name --mtime=@0 src logs | cksum
  mkfifo src/fifo && { echo through the pipe >src/fifo & cat src/fifo; wait; }
  try rm src/fifo
  try sh -c 'exec 3>memory/held; rm memory/held; echo x >&3; stat -Lc %h /proc/self/fd/3'
}

case $1 in
trees) trees ;;
targets)
  target memory/old.md memory/new.md
  target src/main.py src/new.py
  target logs/a.jsonl logs/new.jsonl
  target DELIVERABLES.md DELIVERABLES.md.new
  target MEMORY.md MEMORY.md.tmp1
  target README.md README.txt
  target "names/ trailing " "names/ trailing too "
  target 'names/$(touch pwn)' 'names/a b'
  ;;
esac
find . -path ./.git -prune -o ! -type d -printf '%p %m %s %n %l\n' | sort
