// E13, E14, E15, E16, E21, E23, 21, 22, 37: databases and locks, as agents keep and take them.
import { inWindow, python } from './window.ts';

inWindow(
  'a database that a killed agent left with a hot WAL is read, written and dumped, and is as it was afterwards',
  {
    script: `sqlite3 memory/hot.db 'SELECT count(*) FROM facts; INSERT INTO facts(text) VALUES (1); SELECT count(*) FROM facts; PRAGMA integrity_check; PRAGMA journal_mode'
sqlite3 memory/hot.db .dump | grep -c INSERT`,
    prints: '20\n21\nok\nwal\n21\n',
  },
);

inWindow('eight processes write one WAL database, and none of its rows is lost', {
  script: python(`
import os, sqlite3, sys
for path in ("memory/many.db", "data/many.db", "memory/hot.db"):
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    print(db.execute("PRAGMA journal_mode=WAL").fetchone()[0])
    db.execute("CREATE TABLE t(writer, n)")
    db.close()
    pids = []
    for writer in range(8):
        pid = os.fork()
        if pid == 0:
            db = sqlite3.connect(path, timeout=60, isolation_level=None)
            for n in range(40):
                db.execute("INSERT INTO t VALUES (?, ?)", (writer, n))
            db.close()
            os._exit(0)
        pids.append(pid)
    print([os.waitpid(pid, 0)[1] for pid in pids])
    db = sqlite3.connect(path)
    print(db.execute("SELECT count(*), count(DISTINCT writer * 1000 + n) FROM t").fetchone(), db.execute("PRAGMA integrity_check").fetchone())
    db.close()
`),
  prints: "wal\n[0, 0, 0, 0, 0, 0, 0, 0]\n(320, 320) ('ok',)\n".repeat(3),
  lower: {
    'memory/many.db': null,
    'memory/many.db-wal': null,
    'memory/many.db-shm': null,
    'data/many.db-wal': null,
  },
});

inWindow('a database survives the kill of one of its two writers', {
  script: python(`
import os, signal, sqlite3, time
for path in ("memory/killed.db", "data/killed.db"):
    db = sqlite3.connect(path, timeout=30, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("CREATE TABLE t(n)")
    pid = os.fork()
    if pid == 0:
        db = sqlite3.connect(path, timeout=30, isolation_level=None)
        n = 0
        while True:
            db.execute("INSERT INTO t VALUES (?)", (n,))
            n += 1
    for n in range(50):
        db.execute("INSERT INTO t VALUES (-1)")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    db.execute("INSERT INTO t VALUES (-1)")
    print(db.execute("SELECT count(*) FROM t WHERE n = -1").fetchone(), db.execute("PRAGMA integrity_check").fetchone())
    db.close()
`),
  prints: "(51,) ('ok',)\n".repeat(2),
  lower: { 'memory/killed.db': null },
});

inWindow('a file keeps its inode and device numbers when it is first written', {
  script: python(`
import os, sqlite3
for path in ("memory/hot.db", "memory/old.md", "logs/a.jsonl", "DELIVERABLES.md", "README.md"):
    before = os.stat(path)
    names = {e.name: e.inode() for e in os.scandir(os.path.dirname(path) or ".")}
    with open(path, "r+b") as held:
        if path.endswith(".db"):
            db = sqlite3.connect(path, isolation_level=None)
            db.execute("INSERT INTO facts(text) VALUES ('x')")
            db.close()
        else:
            with open(path, "ab") as f:
                f.write(b"x")
        after = os.stat(path)
        print(before.st_ino == after.st_ino == os.fstat(held.fileno()).st_ino == names[os.path.basename(path)] != 0, before.st_dev == after.st_dev)
`),
  prints: 'True True\n'.repeat(5),
});

inWindow('a wal-index grown by ftruncate reads as zeros, and never short', {
  script: python(`
import os, mmap
for path in ("memory/x.db-shm", "src/x.db-shm", "memory/hot.db-shm"):
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    size = os.fstat(fd).st_size
    os.pread(fd, 10, size)
    os.ftruncate(fd, size + 32768)
    got = os.pread(fd, 522, size)
    with mmap.mmap(fd, size + 32768) as m:
        m[size + 100] = 7
        print(len(got), got.count(0), os.pread(fd, 1, size + 100))
`),
  prints: "522 522 b'\\x07'\n".repeat(3),
  lower: { 'memory/x.db-shm': null },
});

inWindow('flock, fcntl and OFD locks exclude another process, on lower and upper files', {
  script: python(`
import errno, fcntl, os, struct, subprocess, sys
F_OFD_SETLK = 37
def lock(fd, kind, how):
    if kind == "flock":
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    elif kind == "posix":
        fcntl.lockf(fd, how if how == fcntl.LOCK_UN else how | fcntl.LOCK_NB, 10, 5)
    else:
        fcntl.fcntl(fd, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK if how == fcntl.LOCK_EX else fcntl.F_UNLCK, 0, 5, 10, 0))
def other(path, kind):
    pid = os.fork()
    if pid == 0:
        fd = os.open(path, os.O_RDWR)
        try:
            lock(fd, kind, fcntl.LOCK_EX)
        except OSError as e:
            os._exit(1 if e.errno in (errno.EAGAIN, errno.EACCES) else 2)
        os._exit(0)
    return os.waitpid(pid, 0)[1] >> 8
for path in ("memory/old.md", "memory/old.md.lock", "src/main.py", "src/main.lock"):
    for kind in ("flock", "posix", "ofd"):
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        lock(fd, kind, fcntl.LOCK_EX)
        held = other(path, kind)
        lock(fd, kind, fcntl.LOCK_UN)
        print(kind, held, other(path, kind))
        os.close(fd)
`),
  prints: 'flock 1 0\nposix 1 0\nofd 1 0\n'.repeat(4),
});

inWindow(
  'a lock held on a file excludes others through the first write and through a rename of its lock file',
  {
    script: python(`
import fcntl, os
def free(path):
    pid = os.fork()
    if pid == 0:
        try:
            fcntl.flock(os.open(path, os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0
with open("memory/old.md", "r+") as f:
    fcntl.flock(f, fcntl.LOCK_EX)
    print(free("memory/old.md"))
    f.write("copied up under the lock")
    f.flush()
    print(free("memory/old.md"))
print(free("memory/old.md"))
with open("memory/x.lock", "w") as f:
    fcntl.flock(f, fcntl.LOCK_EX)
    os.rename("memory/x.lock", "memory/y.lock")
    print(free("memory/y.lock"))
print(free("memory/y.lock"))
`),
    prints: 'False\nFalse\nTrue\nFalse\nTrue\n',
  },
);

// E19
inWindow('eight processes appending long lines at once lose and tear none', {
  script: python(`
import os
for path in ("logs/a.jsonl", "memory/append.md", "src/append.txt"):
    start = os.path.getsize(path) if os.path.exists(path) else 0
    pids = []
    for writer in range(8):
        pid = os.fork()
        if pid == 0:
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            line = (str(writer) * 5119 + "\\n").encode()
            for _ in range(250):
                os.write(fd, line)
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    with open(path, "rb") as f:
        f.seek(start)
        lines = f.read().split(b"\\n")[:-1]
    whole = [l for l in lines if len(l) == 5119 and len(set(l)) == 1]
    print(len(lines), len(whole))
`),
  prints: '2000 2000\n'.repeat(3),
});
