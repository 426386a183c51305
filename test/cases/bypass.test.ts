// E1, E2, E6: ways around a guard inside a process. Each must be caught by the filesystem, and be seen inside.
import { inWindow, python } from './window.ts';

const OLD = '# What I know\n\nAda prefers tabs.\n';

const writes: [string, string, string][] = [
  ['a shell redirection', 'echo leak > memory/old.md; cat memory/old.md', 'leak\n'],
  [
    'a write by os.open',
    `${python(`
import os
fd = os.open("memory/old.md", os.O_WRONLY | os.O_TRUNC)
os.write(fd, b"leak\\n")
os.close(fd)`)}\ncat memory/old.md`,
    'leak\n',
  ],
  [
    'a write to a path of bytes',
    `${python(`
with open(b"memory/old.md", "ab") as f:
    f.write(b"leak\\n")`)}\ncat memory/old.md`,
    `${OLD}leak\n`,
  ],
  [
    'Path.write_text',
    `${python(`
import pathlib
pathlib.Path("memory/new.md").write_text("leak\\n")`)}\ncat memory/new.md`,
    'leak\n',
  ],
  [
    'a subprocess of a subprocess',
    `sh -c "sh -c 'echo leak >> memory/old.md'"; cat memory/old.md`,
    `${OLD}leak\n`,
  ],
  [
    'a temporary file replaced onto memory',
    `${python(`
import os, tempfile
fd, name = tempfile.mkstemp(dir=".")
os.write(fd, b"leak\\n")
os.close(fd)
os.replace(name, "memory/old.md")`)}\ncat memory/old.md`,
    'leak\n',
  ],
  [
    'a rename within memory',
    'mv memory/old.md memory/older.md; ls memory/old.md; cat memory/older.md',
    `ls: cannot access 'memory/old.md': No such file or directory\n${OLD}`,
  ],
  [
    'a deletion',
    'rm memory/old.md; ls memory/old.md || ls memory/people',
    "ls: cannot access 'memory/old.md': No such file or directory\nada-again.md\nada.md\ncharles.md\n",
  ],
  [
    'a deletion of the whole memory',
    'rm -rf memory MEMORY.md; ls memory; ls MEMORY.md || true',
    "ls: cannot access 'memory': No such file or directory\nls: cannot access 'MEMORY.md': No such file or directory\n",
  ],
  [
    'a database in memory',
    `${python(`
import sqlite3
db = sqlite3.connect("memory/m.db")
db.execute("CREATE TABLE t(x)")
db.execute("INSERT INTO t VALUES ('leak')")
db.commit()
print(db.execute("SELECT x FROM t").fetchall())`)}`,
    "[('leak',)]\n",
  ],
  [
    'an open for update',
    `${python(`
with open("memory/old.md", "r+") as f:
    print(repr(f.read()[:13]), f.fileno() > 2)
    f.write("leak\\n")
print(open("memory/old.md").read().endswith("leak\\n"))`)}`,
    "'# What I know' True\nTrue\n",
  ],
  [
    'an open of a descriptor number',
    `${python(`
import os
fd = os.open("memory/old.md", os.O_WRONLY | os.O_APPEND)
with open(fd, "w") as f:
    f.write("leak\\n")
print(open("memory/old.md").read().endswith("leak\\n"))`)}`,
    'True\n',
  ],
  [
    'shutil.copy, copy2 and copytree into memory',
    `${python(`
import shutil
shutil.copy("README.md", "memory/a.md")
shutil.copy2("README.md", "memory/b.md")
shutil.copytree("src", "memory/c", symlinks=True)
print(open("memory/a.md").read() + open("memory/b.md").read() + open("memory/c/main.py").read(), end="")`)}`,
    "# A workspace\n# A workspace\nprint('hello, world')\n",
  ],
  [
    'cp -p and cp -a into memory',
    'cp -p README.md memory/a.md && cp -a src memory/b && cat memory/a.md memory/b/main.py',
    "# A workspace\nprint('hello, world')\n",
  ],
  [
    'a change of mode, times and attributes alone',
    `chmod 600 memory/old.md; touch -d @5 memory/old.md; python3 -c "
import os
os.setxattr('memory/old.md', 'user.leak', b'1')
print(sorted(os.listxattr('memory/old.md')))"; stat -c '%a %Y' memory/old.md`,
    "['user.leak', 'user.origin']\n600 5\n",
  ],
  ['a truncation by path', 'truncate -s 0 memory/old.md; stat -c %s memory/old.md', '0\n'],
  [
    'a write through a symlink of the code',
    'echo leak >> src/link-to-memory; tail -n 1 memory/old.md',
    'leak\n',
  ],
  [
    'a write by way of a parent directory',
    'echo leak >> src/../memory/old.md; echo more >> ./memory//people/../old.md; tail -n 2 memory/old.md',
    'leak\nmore\n',
  ],
  ['a write by the absolute path', 'echo leak >> "$PWD/memory/old.md"; tail -n 1 memory/old.md', 'leak\n'],
  ['a write through /proc', 'exec 4<memory/old.md; echo leak > /proc/self/fd/4; cat memory/old.md', 'leak\n'],
];

for (const [title, script, prints] of writes) {
  inWindow(`${title} is seen inside and does not reach the lower`, {
    script,
    prints,
    lower: { 'memory/old.md': OLD },
  });
}

inWindow('names that only differ in case are not protected by default', {
  script:
    'mkdir MEMORY && echo real > MEMORY/x.md && echo real > a.JSONL && echo real > memory.md && echo done',
  prints: 'done\n',
  lower: { 'MEMORY/x.md': 'real\n', 'a.JSONL': 'real\n', 'memory.md': 'real\n' },
});

// E5
inWindow('a directory called memory in the code is code', {
  script: 'echo code > src/memory/y.py; echo "# beside" >> memory.py; cat src/memory/y.py',
  prints: 'code\n',
  lower: { 'src/memory/y.py': 'code\n', 'memory.py': '# beside the directory, and source code\n# beside\n' },
});

// E31
inWindow("an agent's stray files in the working directory are ordinary files", {
  script: 'echo cwd > tmpclaude-1a2b-cwd; cat tmpclaude-1a2b-cwd',
  prints: 'cwd\n',
  lower: { 'tmpclaude-1a2b-cwd': 'cwd\n' },
});
inWindow("an agent's stray files can be protected by a glob", {
  script:
    'echo cwd > tmpclaude-1a2b-cwd; mkdir src/d; echo cwd > src/d/tmpclaude-3-cwd; cat src/d/tmpclaude-3-cwd',
  prints: 'cwd\n',
  exec: { options: ['--quiet', '--protect', 'tmpclaude-*'] },
  lower: { 'tmpclaude-1a2b-cwd': null, 'src/d/tmpclaude-3-cwd': null },
});
