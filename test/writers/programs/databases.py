"""SQLite from two processes, in each journal mode, on old and new databases; prints what it observes."""
import os
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from observe import see

OTHER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=20, isolation_level=None)
for i in range(int(sys.argv[2])):
    db.execute('BEGIN IMMEDIATE')
    db.execute('INSERT INTO facts(text) VALUES (?)', ('other %d' % i,))
    db.execute('COMMIT')
db.close()
"""


def use(path, mode):
    print(f"== {path} {mode}", flush=True)
    db = sqlite3.connect(path, timeout=20, isolation_level=None)
    see("what is there", lambda: db.execute("SELECT count(*) FROM facts").fetchone())
    see("journal mode", lambda: db.execute(f"PRAGMA journal_mode={mode}").fetchone())
    see("create", lambda: db.execute("CREATE TABLE IF NOT EXISTS facts(id INTEGER PRIMARY KEY, text TEXT)").fetchall())
    other = subprocess.Popen([sys.executable, "-c", OTHER, path, "50"])
    for i in range(50):
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO facts(text) VALUES (?)", (f"own {i}",))
        db.execute("COMMIT")
    see("the other process", other.wait)
    see("both wrote", lambda: db.execute("SELECT count(*) FROM facts WHERE text LIKE 'own%' OR text LIKE 'other%'").fetchone())
    see("roll back", lambda: (db.execute("BEGIN"), db.execute("DELETE FROM facts"), db.execute("ROLLBACK")) and None)
    see("count", lambda: db.execute("SELECT count(*) FROM facts").fetchone())
    see("integrity", lambda: db.execute("PRAGMA integrity_check").fetchone())
    see("side files", lambda: sorted(n for n in os.listdir(os.path.dirname(path)) if n.startswith(os.path.basename(path))))
    see("checkpoint", lambda: db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone())
    see("vacuum", lambda: db.execute("VACUUM").fetchall())
    see("with a mapping", lambda: (db.execute("PRAGMA mmap_size=67108864").fetchone(), db.execute("SELECT count(*) FROM facts").fetchone()))
    db.close()
    see("side files after", lambda: sorted(n for n in os.listdir(os.path.dirname(path)) if n.startswith(os.path.basename(path))))
    out = subprocess.run(["sqlite3", path, ".dump"], capture_output=True, text=True)
    see("dump by the sqlite3 program", lambda: (out.returncode, out.stdout.count("INSERT"), out.stderr))


for path, mode in [
    ("memory/rollback.db", "DELETE"), ("memory/hot.db", "WAL"), ("memory/new-rollback.db", "DELETE"),
    ("memory/new-wal.db", "WAL"), ("memory/new-truncate.db", "TRUNCATE"), ("data/app.db", "WAL"), ("data/new.db", "DELETE"),
]:
    use(path, mode)
