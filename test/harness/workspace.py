"""Fills the empty directory argv[1] with an agent's workspace: old memory, logs, deliverables, code, odd names."""
import os
import sqlite3
import subprocess
import sys

top = os.fsencode(sys.argv[1])
os.chdir(top)
os.umask(0o022)
OLD = 1_700_000_000_123_456_789


def put(path, content, mode=0o644):
    path = os.fsencode(path)
    os.makedirs(os.path.dirname(path) or b".", exist_ok=True)
    with open(path, "wb") as f:
        f.write(content if isinstance(content, bytes) else content.encode())
    os.chmod(path, mode)


put("memory/old.md", "# What I know\n\nAda prefers tabs.\n")
put("memory/people/ada.md", "Ada: born 1815.\n", 0o600)
put("memory/people/charles.md", "Charles: engines.\n")
put("memory/.hidden/note.md", "hidden\n")
put("memory/deep/a/b/c/d.md", "deep\n")
put("memory/run.sh", "#!/bin/sh\necho ran from memory\n", 0o755)
put("memory/big.bin", bytes(range(256)) * 8192)
put("memory/empty.md", b"")
put("MEMORY.md", "- index of memory\n- [old](memory/old.md)\n")
put("DELIVERABLES.md", "# Deliverables\n\n1. A report.\n", 0o640)
put("docs/DELIVERABLES.md", "nested deliverable\n")
put("logs/a.jsonl", "".join('{"turn": %d}\n' % i for i in range(100)))
put("logs/b.jsonl", '{"turn": 0}\n')
put("logs/plain.txt", "not a log of turns\n")
put("src/main.py", "print('hello')\n")
put("src/lib/util.py", "def one():\n    return 1\n")
put("src/memory/x.py", "# source code, not memory\n")
put("src/tool.sh", "#!/bin/sh\necho tool\n", 0o755)
put("src/big.txt", "line of text\n" * 20000)
put("memory.py", "# beside the directory, and source code\n")
put("README.md", "# A workspace\n")
put("data/table.csv", "a,b\n1,2\n")
put(b"names/new\nline.txt", "newline in a name\n")
put(b"names/not-utf8-\xff\xfe.txt", "bytes in a name\n")
put(b"names/" + b"n" * 255, "a long name\n")
put(b"names/\xff.jsonl", "protected, and not UTF-8\n")
put(b"memory/a\nb.md", "newline in a memory's name\n")
put(b"memory/\xc3\x28.md", "a memory's name that is not UTF-8\n")
put("names/ trailing ", "spaces\n")
put("names/$(touch pwn)", "not a command\n")

os.symlink("old.md", "memory/link-to-old")
os.symlink("../memory/old.md", "src/link-to-memory")
os.symlink("nowhere", "src/dangling")
os.symlink("lib", "src/link-to-dir")
os.link("memory/people/ada.md", "memory/people/ada-again.md")
os.link("src/lib/util.py", "src/lib/util-again.py")
os.mkdir("src/empty")
os.mkdir("private", 0o700)
put("private/secret.txt", "for the owner\n", 0o600)
for path in ("memory/old.md", "src/main.py"):
    os.setxattr(path, "user.origin", b"conversation \x00\xff")

# A database in each journal mode; the WAL one is left hot, as a killed agent leaves it.
for at, mode in (("memory/rollback.db", "DELETE"), ("memory/hot.db", "WAL"), ("data/app.db", "WAL")):
    db = sqlite3.connect(at, isolation_level=None)
    db.execute(f"PRAGMA journal_mode={mode}")
    db.execute("CREATE TABLE facts(id INTEGER PRIMARY KEY, text TEXT)")
    for i in range(20):
        db.execute("INSERT INTO facts(text) VALUES (?)", (f"fact {i}",))
    if mode == "DELETE" or at.startswith("data/"):
        db.close()


def git(*args):
    subprocess.run(["git", *args], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


put(".gitignore", "names/\nprivate/\n*.db*\nmemory/big.bin\n")
git("init", "-q", "-b", "main")
git("add", "src", "README.md", "memory.py", "docs", ".gitignore", "data/table.csv")
git("commit", "-q", "-m", "first")
put("src/main.py", "print('hello, world')\n")
git("commit", "-q", "-a", "-m", "second")
os.setxattr("src/main.py", "user.origin", b"conversation \x00\xff")

for root, dirs, files in os.walk(b".", topdown=False):
    if b".git" in root.split(b"/"):
        continue
    for name in files + dirs:
        os.utime(os.path.join(root, name), ns=(OLD, OLD), follow_symlinks=False)
# Past every exit handler: SQLite must not checkpoint the hot database.
os._exit(0)
