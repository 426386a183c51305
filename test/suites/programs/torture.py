"""SQLite under two writers that are killed again and again: `torture.py DIRECTORY MODE SECONDS SEED`.

MODE is the journal mode, `wal` or `delete`. Each writer says a row's number on a pipe after its commit has returned;
every row that was said must be there after the kill, and the database whole. Prints one JSON object.
"""
import json
import os
import random
import signal
import sqlite3
import sys
import time

directory, mode, seconds, seed = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
random.seed(seed)
database = os.path.join(directory, "torture.db")


def connect():
    connection = sqlite3.connect(database, timeout=30, isolation_level=None)
    # Committed means committed for a killed process whatever `synchronous` is; FULL makes the fsyncs real too.
    connection.execute("pragma synchronous=full")
    return connection


def write(writer, first, said):
    """Commits rows until killed: one to five a transaction, some of them updated, some of the old ones deleted."""
    connection = connect()
    number = first
    chance = random.Random(seed * 1000 + first)
    while True:
        count = chance.randint(1, 5)
        connection.execute("begin immediate")
        for row in range(number, number + count):
            payload = bytes([row % 256]) * chance.randint(1, 9000)
            connection.execute("insert into rows values (?, ?, ?, ?)", (writer, row, len(payload), payload))
        connection.execute("update sums set total = total + ? where writer = ?", (count, writer))
        connection.execute("delete from junk")
        connection.executemany("insert into junk values (?)", [(os.urandom(500),) for _ in range(20)])
        if chance.random() < 0.1:
            connection.execute("rollback")
            continue
        connection.execute("commit")
        number += count
        os.write(said, b"%d\n" % number)


def start(writer, first):
    reader, said = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        try:
            write(writer, first, said)
        except BaseException as error:  # a writer never ends by itself
            os.write(2, f"writer {writer}: {type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os.close(said)
    return pid, reader


def said_last(reader, first):
    """The last whole line: the number after the last committed row."""
    text = b""
    while chunk := os.read(reader, 65536):
        text += chunk
    os.close(reader)
    lines = text.split(b"\n")[:-1]
    return int(lines[-1]) if lines else first


def check(committed):
    connection = connect()
    problems = []
    integrity = [row[0] for row in connection.execute("pragma integrity_check")]
    if integrity != ["ok"]:
        problems.append(f"integrity_check: {integrity[:5]}")
    found = []
    for writer, promised in enumerate(committed):
        numbers = [row[0] for row in connection.execute("select number from rows where writer = ? order by 1", (writer,))]
        # A transaction whose commit returned is there; one that was killed before it could say so may be.
        if numbers != list(range(len(numbers))):
            problems.append(f"writer {writer}: rows with gaps: {len(numbers)} of them, the last {numbers[-1:]}")
        if len(numbers) < promised:
            problems.append(f"writer {writer}: {promised} rows committed, {len(numbers)} there")
        total = connection.execute("select total from sums where writer = ?", (writer,)).fetchone()[0]
        if total != len(numbers):
            problems.append(f"writer {writer}: the sum says {total}, there are {len(numbers)} rows")
        found.append(len(numbers))
    torn = connection.execute("select count(*) from rows where length(payload) != size").fetchone()[0]
    if torn:
        problems.append(f"{torn} torn rows")
    connection.close()
    return problems, found


def setup():
    connection = connect()
    used = connection.execute(f"pragma journal_mode={mode}").fetchone()[0]
    connection.execute("create table if not exists rows (writer, number, size, payload, primary key (writer, number))")
    connection.execute("create table if not exists sums (writer primary key, total)")
    connection.execute("create table if not exists junk (bytes)")
    for writer in (0, 1):
        connection.execute("insert or ignore into sums values (?, 0)", (writer,))
    connection.close()
    return used


begun = time.monotonic()
used = setup()
# Rows that a database had before count as committed.
problems, committed = check([0, 0])
before = list(committed)
rounds = 0
while not problems and (time.monotonic() - begun < seconds or rounds < 3):
    writers = [start(writer, committed[writer]) for writer in (0, 1)]
    time.sleep(random.uniform(0.05, 0.4))
    # Both at once, or one while the other goes on: then that one has a dead neighbour's lock and log to deal with.
    for pid, _ in random.sample(writers, 2):
        os.kill(pid, signal.SIGKILL)
        time.sleep(random.choice((0, random.uniform(0, 0.2))))
    for pid, _ in writers:
        _, status = os.waitpid(pid, 0)
        if not os.WIFSIGNALED(status):
            problems.append("a writer ended by itself")
    promised = [said_last(reader, first) for (_, reader), first in zip(writers, committed)]
    found_problems, committed = check(promised)
    problems += found_problems
    rounds += 1

json.dump(
    {"mode": used, "rounds": rounds, "before": before, "rows": committed, "problems": problems},
    sys.stdout,
)
