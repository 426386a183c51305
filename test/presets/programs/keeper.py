"""
Writes as agents keep their state. Run as `keeper.py HOME JSON`: a list of [how, path], paths relative to HOME. Every way
works on what is there and on nothing at all, and prints what can be read back. With KEEPER_CRASHES it dies with
its databases open, so that their -wal stays hot.
"""
import fcntl
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import uuid

SECRET = "the quince jelly is in the cellar"


def read(path):
    with open(path) as f:
        return f.read()


def append(path):
    """Codex, pi, Claude Code: one write with O_APPEND; the mode is set on the descriptor."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, f'{{"said": "{SECRET}"}}\n'.encode())
    os.fchmod(fd, 0o600)
    os.fsync(fd)
    os.close(fd)
    return read(path).count(SECRET)


def whole(path):
    """The edit tools of most: truncate and write."""
    with open(path, "w") as f:
        f.write(SECRET + "\n")
    return read(path)


def replace(path):
    """Cline, Gemini CLI, Letta Code: a temporary sibling by the target's name, fsync, rename, fsync of the directory."""
    temporary = f"{path}.{os.getpid()}.{uuid.uuid4()}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, SECRET.encode())
    os.fsync(fd)
    os.close(fd)
    os.rename(temporary, path)
    directory = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)
    return read(path)


def locked(path):
    """Hermes: flock on a sibling, a temporary file whose name tells nothing, and the rename."""
    with open(path + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        fd, temporary = tempfile.mkstemp(prefix=".mem_", suffix=".tmp", dir=os.path.dirname(path))
        os.write(fd, SECRET.encode())
        os.fsync(fd)
        os.close(fd)
        os.replace(temporary, path)
    return read(path)


def aside(path):
    """Roo Code: a directory as lock, the new file beside, the old one moved away, and removed."""
    os.mkdir(path + ".lock")
    os.utime(path + ".lock")
    base = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}")
    with open(base + ".new_1.tmp", "w") as f:
        f.write(SECRET)
    if os.path.exists(path):
        os.rename(path, base + ".bak_1.tmp")
    os.rename(base + ".new_1.tmp", path)
    if os.path.exists(base + ".bak_1.tmp"):
        os.unlink(base + ".bak_1.tmp")
    os.rmdir(path + ".lock")
    return read(path)


def dated(path):
    """OpenClaw: a session that ends is renamed with a date, and a new one begins under its name."""
    append(path)
    os.rename(path, path + ".deleted.2026-01-02T03-04-05.678Z")
    return append(path)


def removed(path):
    """A person says: forget that."""
    append(path)
    os.unlink(path)
    return sorted(os.listdir(os.path.dirname(path))).count(os.path.basename(path))


def tree(path):
    """Snapshots: a repository of git's, with a commit."""
    run = lambda *argv: subprocess.run(["git", *argv], cwd=path, check=True, capture_output=True, text=True).stdout
    os.makedirs(path, exist_ok=True)
    run("init", "-q")
    whole(os.path.join(path, "note.md"))
    run("add", "-A")
    run("commit", "-q", "--allow-empty", "-m", SECRET)
    return run("log", "-1", "--format=%s")


OTHER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=20, isolation_level=None)
for i in range(20):
    db.execute("INSERT INTO said(text) VALUES ('other')")
db.close()
"""
open_databases = []


def database(path, mode):
    db = sqlite3.connect(path, timeout=20, isolation_level=None)
    found = db.execute(f"PRAGMA journal_mode={mode}").fetchone()[0]
    db.execute("PRAGMA synchronous=NORMAL")
    db.execute("CREATE TABLE IF NOT EXISTS said(id INTEGER PRIMARY KEY, text TEXT)")
    if os.environ.get("KEEPER_CRASHES"):
        db.execute("INSERT INTO said(text) VALUES (?)", (SECRET,))
        open_databases.append(db)
        return found
    before = db.execute("SELECT count(*) FROM said").fetchone()[0]
    other = subprocess.Popen([sys.executable, "-c", OTHER, path])
    for _ in range(20):
        db.execute("INSERT INTO said(text) VALUES (?)", (SECRET,))
    status = other.wait()
    count = db.execute("SELECT count(*) FROM said").fetchone()[0]
    whole_again = db.execute("PRAGMA integrity_check").fetchone()[0]
    db.close()
    return [found, status, count - before, whole_again]


ways = {
    "append": append,
    "whole": whole,
    "replace": replace,
    "locked": locked,
    "aside": aside,
    "dated": dated,
    "removed": removed,
    "tree": tree,
    "wal": lambda path: database(path, "WAL"),
    "rollback": lambda path: database(path, "DELETE"),
}

home = sys.argv[1]
for how, path in json.loads(sys.argv[2]):
    at = os.path.join(home, path)
    os.makedirs(os.path.dirname(at), exist_ok=True)
    print(how, path, ways[how](at), flush=True)
if open_databases:
    os._exit(0)
