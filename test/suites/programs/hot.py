"""`hot.py DIRECTORY MODE`: a database with 40 rows of each writer, left by kill -9 with a hot `-wal` or `-journal`.

In WAL mode half of the commits stand in the log alone; in rollback mode the killed transaction has already written
pages into the database, which the journal must take back.
"""
import os
import signal
import sqlite3
import sys

directory, mode = sys.argv[1:]
connection = sqlite3.connect(os.path.join(directory, "torture.db"), isolation_level=None)
connection.execute(f"pragma journal_mode={mode}")
connection.execute("create table rows (writer, number, size, payload, primary key (writer, number))")
connection.execute("create table sums (writer primary key, total)")
connection.execute("create table junk (bytes)")


def commit(numbers):
    connection.execute("begin")
    for writer in (0, 1):
        for number in numbers:
            connection.execute("insert into rows values (?, ?, 3000, ?)", (writer, number, bytes(3000)))
        connection.execute("insert or replace into sums values (?, ?)", (writer, numbers[-1] + 1))
    connection.execute("commit")


commit(range(20))
if mode == "wal":
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.execute("pragma wal_autocheckpoint=0")
commit(range(20, 40))
# More than the page cache holds, so that pages of the open transaction spill.
connection.execute("pragma cache_size=10")
connection.execute("begin")
connection.execute("update rows set payload = zeroblob(2500), size = 2500")
os.kill(os.getpid(), signal.SIGKILL)
