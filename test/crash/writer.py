"""Writes to a workspace in every way at once, until it is killed, and says after each write that returned what it was.

argv[1]: a log outside the workspace. A line there is a promise: `append N`, `create N`, `replace N`, `remove N`.
"""
import os
import random
import sqlite3
import sys

log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
rng = random.Random(int(sys.argv[2]))
os.makedirs("src/born", exist_ok=True)
db = sqlite3.connect("memory/hot.db", isolation_level=None)


def said(*words):
    os.write(log, (" ".join(map(str, words)) + "\n").encode())


def put(path, text, mode="w"):
    with open(path, mode) as f:
        f.write(text)


def unprotected(n):
    put("src/log.txt", f"line {n}\n", "a")
    said("append", n)
    put(f"src/born/{n}", f"born {n}\n")
    said("create", n)
    put("src/state.json.tmp", f'{{"n": {n}}}\n')
    os.replace("src/state.json.tmp", "src/state.json")
    said("replace", n)
    if n >= 3:
        os.unlink(f"src/born/{n - 3}")
        said("remove", n - 3)


def protected(n):
    put("memory/old.md", "leak\n", "a")
    put(f"memory/new{n}.md", "leak\n")
    put("DELIVERABLES.md.tmp-1", "leak\n")
    os.replace("DELIVERABLES.md.tmp-1", "DELIVERABLES.md")
    put(".mem_x9.tmp", "leak\n")
    os.replace(".mem_x9.tmp", "MEMORY.md")
    put("src/born/leak.txt", "leak\n")
    os.rename("src/born/leak.txt", "memory/crossed.md")
    db.execute("INSERT INTO facts(text) VALUES ('leak')")
    put("logs/a.jsonl", '{"leak": true}\n', "a")
    os.replace("logs/a.jsonl", "logs/a.jsonl.bak")
    os.replace("logs/a.jsonl.bak", "logs/a.jsonl")
    if os.path.isdir("memory/people"):
        os.rename("memory/people", "memory/folk")
    else:
        os.rename("memory/folk", "memory/people")
    put("memory/big.bin", "leak" * 50000)


n = 0
while True:
    for part in rng.sample((unprotected, protected), 2):
        part(n)
    n += 1
