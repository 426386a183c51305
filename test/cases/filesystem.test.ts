// 1, 3, 11, 14, 26, 27, 31, 32, 41, 42, 44, 48 and E17: what a filesystem owes its programs.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { forgetExec, plainExec, protectedDifferences } from '../harness/forget.ts';
import { isProtectedByDefault } from '../harness/protected.ts';
import { inWindow, python, sameAsPlain, withWorkspace } from './window.ts';

const logs = (path: string) => path.startsWith('.git/logs/') || isProtectedByDefault(path);

sameAsPlain(
  'git commits and switches branches with its reflog unprotected',
  'cd src && git init -q -b main inner && cd inner && echo x > x && git add x && git commit -q -m x && git switch -q -c x && cat .git/logs/HEAD && git fsck',
  { contentVaries: (path) => path.endsWith('.git/index') },
);

inWindow('git commits and switches branches with its reflog protected', {
  script:
    'echo x > x && git add x && git commit -q -m x && git switch -q -c x && git reflog | head -n 2 | cut -d" " -f2-',
  prints: 'HEAD@{0}: checkout: moving from main to x\nHEAD@{1}: commit: x\n',
  exec: { options: ['--quiet', '--protect', '/.git/logs/'] },
  isProtected: logs,
  lower: { x: 'x\n', '.git/HEAD': 'ref: refs/heads/x\n' },
});

inWindow('ten thousand files in two hundred directories are made and removed', {
  script: `for top in memory src; do
python3 -c '
import os, sys
for d in range(200):
    os.makedirs(f"{sys.argv[1]}/many/{d}")
    for f in range(25):
        open(f"{sys.argv[1]}/many/{d}/{f}", "w").close()' $top
find $top/many -type f | wc -l; rm -rf $top/many; echo $?; ls -d $top/many || true; done`,
  prints: `5000\n0\nls: cannot access 'memory/many': No such file or directory\n5000\n0\nls: cannot access 'src/many': No such file or directory\n`,
  lower: { 'src/many': null, 'memory/many': null },
});

sameAsPlain(
  'access and modification times are set apart, to the nanosecond, and kept by copies',
  `for d in memory src; do
  echo x > $d/f; touch -a -d @1.000000001 $d/f; touch -m -d @2.123456789 $d/f; stat -c '%.9X %.9Y' $d/f
  cp -p $d/f $d/g; stat -c '%.9Y' $d/g
  rsync -a $d/f $d/h; rsync -ai $d/f $d/h; stat -c '%.9Y' $d/h
done`,
);

inWindow('a file unlinked while open is read, written, truncated and stamped, and its directory can go', {
  script: python(`
import os
for top in ("memory", "src"):
    os.mkdir(top + "/gone")
    fd = os.open(top + "/gone/f", os.O_RDWR | os.O_CREAT, 0o600)
    os.write(fd, b"before")
    os.unlink(top + "/gone/f")
    print(os.listdir(top + "/gone"))
    os.rmdir(top + "/gone")
    os.write(fd, b" after")
    os.fchmod(fd, 0o640)
    os.ftruncate(fd, 9)
    os.utime(fd, ns=(1, 2))
    st = os.fstat(fd)
    print(os.pread(fd, 99, 0), st.st_nlink, oct(st.st_mode), st.st_size, st.st_mtime_ns)
fd = os.open("memory/old.md", os.O_RDWR)
os.unlink("memory/old.md")
os.write(fd, b"XX")
print(os.pread(fd, 5, 0), os.fstat(fd).st_nlink, sorted(n for n in os.listdir("memory") if "fuse" in n or "old" in n))
`),
  prints: `[]
b'before af' 0 0o100640 9 2
[]
b'before af' 0 0o100640 9 2
b'XXWha' 0 ['link-to-old']
`,
});

inWindow("a process that is not the owner may not set a file's times or mode", {
  users: ['root'],
  script: `chmod 777 memory src; for f in memory/old.md src/main.py; do
setpriv --reuid 1002 --regid 1002 --clear-groups python3 -c '
import os, sys, errno
for what in (lambda: os.utime(sys.argv[1], ns=(1, 2)), lambda: os.utime(sys.argv[1]), lambda: os.chmod(sys.argv[1], 0o777), lambda: os.chown(sys.argv[1], 1002, 1002), lambda: open(sys.argv[1], "a")):
    try: what(); print("done")
    except OSError as e: print(errno.errorcode[e.errno])' $f; done`,
  prints: 'EPERM\nEACCES\nEPERM\nEPERM\nEACCES\n'.repeat(2),
});

sameAsPlain(
  'a mode without rights shuts out its reader, and a sticky directory those who are not the owner',
  `if [ "$(id -u)" = 0 ]; then as='setpriv --reuid 1002 --regid 1002 --clear-groups'; else as=; fi
for d in memory src; do
  mkdir $d/open; chmod 1777 $d/open; echo x > $d/open/mine
  echo x > $d/shut; chmod 000 $d/shut
  $as cat $d/shut; $as sh -c "echo y > $d/open/theirs"; $as rm -f $d/open/mine; ls $d/open
  mkdir $d/dark; chmod 000 $d/dark; $as ls $d/dark; $as cat $d/dark/x; chmod 755 $d/dark
  stat -c '%u %g %A' $d/open/theirs
done`,
);

withWorkspace(
  'git shows an edit of a tracked, protected file inside, and a clean tree afterwards',
  async (workspace) => {
    const result = await forgetExec(
      workspace,
      ['sh', '-c', 'echo "# edited" >> src/main.py; git diff --stat'],
      {
        options: ['--protect', '/src/'],
      },
    );
    assert.match(result.stdout, /src\/main\.py \| 1 \+/);
    assert.match(
      result.stderr,
      /src\/main\.py/,
      'a line at open names the tracked files that the rules match',
    );
    const after = await plainExec(workspace, ['git', 'diff', '--stat']);
    assert.equal(after.stdout, '');
  },
);

withWorkspace('a package with a program is installed, and its link in .bin runs', async (workspace) => {
  const script = `mkdir -p pkg && cd pkg && echo '{"name":"tool","version":"1.0.0","bin":{"tool":"tool.js"}}' > package.json
printf '#!/usr/bin/env node\\nconsole.log("ran")\\n' > tool.js && cd .. && echo '{"name":"ws","version":"1.0.0"}' > package.json
npm install --offline --no-audit --no-fund --install-links=true ./pkg >/dev/null && readlink node_modules/.bin/tool && node_modules/.bin/tool`;
  const result = await forgetExec(workspace, ['sh', '-c', script]);
  assert.equal(result.stdout, '../tool/tool.js\nran\n', result.stderr);
  const after = await plainExec(workspace, ['node_modules/.bin/tool']);
  assert.equal(after.stdout, 'ran\n');
});

sameAsPlain(
  'copies with holes, reflinks and SEEK_HOLE keep data and holes',
  `for d in memory src; do
  truncate -s 8M $d/holes; printf mid | dd of=$d/holes bs=1 seek=4000000 conv=notrunc status=none
  cp --sparse=always $d/holes $d/copy; cp --reflink=auto $d/holes $d/copy2; cp $d/holes $d/copy3
  cmp $d/holes $d/copy && cmp $d/holes $d/copy2 && cmp $d/holes $d/copy3 && echo equal
  [ $(stat -c %b $d/copy) -lt 100 ] && echo sparse
  fallocate -p -o 3997696 -l 8192 $d/copy2; tr -d '\\0' < $d/copy2 | wc -c
  python3 -c '
import os, sys
fd = os.open(sys.argv[1] + "/holes", os.O_RDWR)
hole = os.lseek(fd, 0, os.SEEK_HOLE)
data = os.lseek(fd, 0, os.SEEK_DATA)
print(hole == 0, 0 < data <= 4000000)
out = os.open(sys.argv[1] + "/range", os.O_RDWR | os.O_CREAT, 0o644)
print(os.copy_file_range(fd, out, 100, 3999990, 7), os.pread(out, 20, 0)[7:])
try: os.lseek(fd, 1 << 30, os.SEEK_DATA)
except OSError as e: print(e.errno)
' $d
done`,
);

sameAsPlain(
  'a program that runs cannot be overwritten, and a script runs from memory',
  `for d in memory src; do
  cp "$(command -v sleep)" $d/program; $d/program 3 & pid=$!
  sleep 0.2; (echo x > $d/program) 2>&1 | grep -o 'Text file busy'
  { kill $pid; wait $pid; } 2>/dev/null; echo x > $d/program && cat $d/program
  printf '#!/bin/sh\\necho a script ran\\n' > $d/script; chmod +x $d/script; $d/script
done
memory/run.sh`,
);

sameAsPlain(
  'a write by someone without privilege clears the set-user-id bit',
  `if [ "$(id -u)" = 0 ]; then as='setpriv --reuid 1002 --regid 1002 --clear-groups'; else as=; fi
for d in memory src; do
  for how in 'echo x >>' 'truncate -s 1' 'chown 1002'; do
    echo x > $d/suid; chmod 6777 $d/suid; $as sh -c "$how $d/suid" 2>/dev/null; stat -c %A $d/suid; rm -f $d/suid
  done
done`,
);

withWorkspace(
  'the mount says what it is, and carries the flags of the filesystem below',
  async (workspace) => {
    const result = await forgetExec(workspace, [
      'sh',
      '-c',
      'findmnt -no FSTYPE,SOURCE -T . ; findmnt -no OPTIONS -T .',
    ]);
    const [kind, options] = result.stdout.trim().split('\n');
    assert.equal(kind!.replace(/\s+/, ' '), 'fuse.forget forget');
    const below = execFileSync('findmnt', ['-no', 'OPTIONS', '-T', workspace.path], { encoding: 'utf8' });
    for (const flag of ['nosuid', 'nodev', 'noexec']) {
      // In a user namespace the kernel adds nosuid and nodev by itself.
      if (below.split(',').includes(flag))
        assert.ok(options!.split(',').includes(flag), `${flag} in ${options}`);
    }
  },
);

inWindow('every entry of a directory has an inode number of its own, the one that stat gives', {
  script: python(`
import os
open("memory/fresh.md", "w").close()
open("src/fresh.py", "w").close()
with open("memory/old.md", "a") as f:
    f.write("copied up")
seen = {}
zero = wrong = 0
for root, dirs, files in os.walk(b"."):
    for entry in os.scandir(root):
        st = entry.stat(follow_symlinks=False)
        zero += entry.inode() == 0
        wrong += entry.inode() != os.lstat(entry.path).st_ino
        if st.st_nlink == 1 or entry.is_dir(follow_symlinks=False):
            seen.setdefault((st.st_dev, st.st_ino), []).append(entry.path)
print(zero, wrong, [paths for paths in seen.values() if len(paths) > 1])
`),
  prints: '0 0 []\n',
});

inWindow('a large directory is listed whole, each name once, while it changes', {
  script: python(`
import os
for top in ("memory", "src"):
    os.mkdir(top + "/wide")
    for i in range(3000):
        open(f"{top}/wide/file-with-a-rather-long-name-{i:05}", "w").close()
    names = []
    with os.scandir(top + "/wide") as entries:
        for n, entry in enumerate(entries):
            names.append(entry.name)
            if n % 3 == 0:
                os.unlink(entry.path)
    print(len(names), len(set(names)), len(os.listdir(top + "/wide")))
`),
  prints: '3000 3000 2000\n'.repeat(2),
});

// 36
withWorkspace('a command whose output goes to a file of the workspace does not block', async (workspace) => {
  const script = `"$0" exec --quiet -- sh -c 'echo hello; cat memory/old.md; head -c 300000 src/big.txt' > src/run.log 2>&1; "$0" exec --quiet --report report.json -- sh -c 'echo x > memory/x'; wc -c < src/run.log; head -n 1 src/run.log; test -s report.json && echo report`;
  const { forgetFor } = await import('../harness/users.ts');
  const result = await plainExec(workspace, ['sh', '-c', script, forgetFor(workspace.user)], {
    timeout: 20_000,
  });
  assert.equal(result.stdout, '260039\nhello\nreport\n', result.stderr);
  assert.deepEqual(protectedDifferences(workspace), []);
});

withWorkspace("standard input, output, errors and the exit code are the command's own", async (workspace) => {
  writeFileSync(join(workspace.top, 'input'), 'x'.repeat(1_000_000));
  const result = await forgetExec(workspace, ['sh', '-c', 'wc -c; echo out; echo err >&2; exit 42'], {
    input: 'x'.repeat(1_000_000),
  });
  assert.deepEqual([result.stdout, result.stderr, result.code], ['1000000\nout\n', 'err\n', 42]);
  const killed = await forgetExec(workspace, ['sh', '-c', 'kill -TERM $$']);
  assert.equal(killed.code, 143);
  const missing = await forgetExec(workspace, ['no-such-program-here']);
  assert.equal(missing.code, 127, missing.stderr);
  const directory = await forgetExec(workspace, ['./README.md']);
  assert.equal(directory.code, 126, directory.stderr);
});
