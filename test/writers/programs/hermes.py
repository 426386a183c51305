"""Hermes' memory tool: a lock file under flock, a backup, a temporary file that tells nothing of its target, fsync,
replace, fsync of the directory; and its state database, which must stay the very same file. Prints what it observes."""
import fcntl
import os
import shutil
import sqlite3
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from observe import see, tree

os.umask(0o022)


def remember(path, text):
    directory = os.path.dirname(path) or "."
    with open(path + ".lock", "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(path):
            shutil.copy2(path, path + ".bak.20260102")
        fd, temporary = tempfile.mkstemp(prefix=".mem_", suffix=".tmp", dir=directory)
        with os.fdopen(fd, "w") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
        at = os.open(directory, os.O_RDONLY)
        os.fsync(at)
        os.close(at)
    with open(path) as f:
        return f.read()


def state(path):
    db = sqlite3.connect(path, isolation_level=None)
    mode = db.execute("PRAGMA journal_mode=WAL").fetchone()
    inode = os.stat(path).st_ino
    db.execute("CREATE TABLE IF NOT EXISTS sessions(id TEXT)")
    for i in range(20):
        db.execute("INSERT INTO sessions VALUES (?)", (str(i),))
    same = os.stat(path).st_ino == inode
    count = db.execute("SELECT count(*) FROM sessions").fetchone()
    db.close()
    return mode, same, count


for path in ("MEMORY.md", "memory/old.md", "memory/USER.md", "README.md", "src/notes.md", "DELIVERABLES.md"):
    see(path, lambda: remember(path, f"remembered in {path}\n"))
    see("again", lambda: remember(path, f"remembered again in {path}\n"))
for path in ("memory/rollback.db", "memory/state.db", "data/state.db"):
    see(path, lambda: state(path))
tree("memory", "memory")
tree("src", "src")
print(sorted(n for n in os.listdir(".")))
