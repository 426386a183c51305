"""The names that sequences play with, their classes, and the tree that stands before the window opens.

Few names, so that operations meet each other. Names are latin1 strings, one character a byte.
"""
import os
import sys

UNPROTECTED = [
    "src/a", "src/b", "src/c", "src/e\xff", "src/d1", "src/d1/x", "src/d1/y", "src/d2", "src/d2/z", "src/d1/sub",
    "src/d1/sub/w", "top", "memory.py", "src/memory", "src/memory/q",
]
PROTECTED = [
    "memory/a", "memory/b", "memory/d", "memory/d/x", "memory/d/e", "memory/d2", "memory/d2/y", "memory/d/sub",
    "memory/d/sub/w", "memory/.h", "memory/big", "x.jsonl", "MEMORY.md", ".MEMORY.md.tmp", "MEMORY.md.bak",
    "x.jsonl-wal", "DELIVERABLES.md",
]
# Protected files among the code: a directory that holds one in the lower is renamed by copying.
PROTECTED_AMONG_CODE = ["src/l.jsonl", "src/l.jsonl.tmp", "src/DELIVERABLES.md", "src/d1/m.jsonl", "src/d2/n.jsonl"]
HELD = ["tmpab12cd", ".mem_x9.tmp"]

POOLS = {
    "unprotected": UNPROTECTED,
    "protected": PROTECTED,
    "mixed": UNPROTECTED + UNPROTECTED[:8] + PROTECTED + PROTECTED_AMONG_CODE + HELD,
    "outside": UNPROTECTED,
}
DIRECTORIES = {
    "unprotected": ["", "src", "src/d1", "src/d2", "src/d1/sub", "src/memory"],
    "protected": ["", "memory", "memory/d", "memory/d2", "memory/d/sub"],
    "mixed": ["", "src", "src/d1", "src/d2", "src/memory", "memory", "memory/d", "memory/d2"],
    "outside": ["", "src", "src/d1", "src/d2", "src/d1/sub", "src/memory"],
}

BEFORE_DIRECTORIES = ["src", "src/d1", "src/d1/sub", "src/memory", "memory", "memory/d", "memory/d/sub"]
BEFORE_FILES = [
    "src/a", "src/b", "src/d1/x", "src/d1/sub/w", "src/l.jsonl", "src/DELIVERABLES.md", "top",
    "memory/a", "memory/d/x", "memory/d/sub/w", "memory/.h", "x.jsonl", "MEMORY.md", "DELIVERABLES.md",
]
BIG = "memory/big"
BIG_SIZE = (4 << 20) + 12345  # past what copy-up does at once
OLD = 1_000_000_000_123_456_789


def is_protected(path):
    """By the default rules, as far as the names above go."""
    parts = path.split("/")
    if parts[0] == "memory":
        return True
    name = parts[-1]
    return ".jsonl" in name or name == "DELIVERABLES.md" or (len(parts) == 1 and "MEMORY.md" in name)


def is_held(path):
    return path in HELD


def populate(top, mode):
    """Fills the empty directory `top`. The same tree each time, but for its inode numbers."""
    os.umask(0)
    os.chdir(os.fsencode(top))
    for path in BEFORE_DIRECTORIES:
        os.mkdir(path)
    files = list(BEFORE_FILES)
    if mode == "mixed":
        files.append("src/d1/m.jsonl")
    for at, path in enumerate(files):
        with open(path, "wb") as f:
            f.write(b"old %d\n" % at * (at * at * 40 + 1))
    if BIG in POOLS[mode]:
        with open(BIG, "wb") as f:
            for at in range(0, BIG_SIZE, 1 << 20):
                f.seek(at)
                f.write(b"big %d\n" % at * 1000)
            f.truncate(BIG_SIZE)
    os.link("memory/a", "memory/b")
    os.link("src/b", "src/d1/y")
    os.symlink("a", "src/c")
    os.setxattr("memory/d/x", "user.a", b"old")
    os.setxattr("src/d1/x", "user.a", b"old")
    for where, directories, names in os.walk("."):
        os.chmod(where, 0o777)
        for name in names:
            path = os.path.join(where, name)
            if not os.path.islink(path):
                os.chmod(path, 0o666)
            os.utime(path, ns=(OLD, OLD), follow_symlinks=False)
    for path in reversed(BEFORE_DIRECTORIES + ["."]):
        os.utime(path, ns=(OLD, OLD))


if __name__ == "__main__":
    populate(*sys.argv[1:3])
