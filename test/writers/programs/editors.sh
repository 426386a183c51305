# How editors save: vim itself in its modes, and the write sequences of others; prints what it observes.
umask 022
exec 2>&1
try() { "$@"; printf '   [%s]\n' "$?"; }

for f in memory/old.md src/main.py logs/a.jsonl DELIVERABLES.md MEMORY.md README.md; do
  for copy in yes no auto; do
    echo "== vim backupcopy=$copy $f"
    chmod 0640 "$f"
    try vim -u NONE -i NONE -n -es "$f" -c "set backupcopy=$copy writebackup" -c 'normal oa line' -c 'wq'
    tail -n 3 "$f"; stat -c '%A %U:%G %h' "$f"
  done
  echo "== vim with backup and swap $f"
  try vim -u NONE -i NONE -es "$f" -c 'set backup backupcopy=no backupdir=. swapfile directory=. undofile undodir=.' -c 'normal oanother' -c 'wq'
  tail -n 2 "$f"; ls -A "$(dirname "$f")" | sort
  echo "== a sequence like emacs's $f"
  ln -s 'ada@host.1:1' "$(dirname "$f")/.#$(basename "$f")"
  cp -p "$f" "$f~"
  printf 'saved by a sequence\n' >"$f"
  rm "$(dirname "$f")/.#$(basename "$f")"
  cat "$f" "$f~" | cksum
done
