"""Makes, renames, links, writes, reads, lists and removes the same few names in the same few directories, until argv[1] is there.

Errors that another one's doing the same explains are no matter. Prints how many operations there were, and other errors.
"""
import errno
import json
import os
import random
import sys

stop, seed = sys.argv[1], int(sys.argv[2])
draw = random.Random(seed)
EXPECTED = {errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR, errno.ESTALE, errno.EPERM, errno.EINVAL, errno.ELOOP}
done, wrong = 0, {}


def name():
    return f"h{draw.randrange(2)}/{draw.choice('abcdef')}"


def write(path, mode):
    with open(path, mode) as f: f.write(f"{seed} {done}\n" * draw.randrange(1, 400))


def read(path):
    with open(path, "rb") as f: f.read()


OPERATIONS = [
    lambda: write(name(), "w"), lambda: write(name(), "a"), lambda: write(name(), "x"), lambda: os.unlink(name()),
    lambda: os.rename(name(), name()), lambda: os.rename(name(), name()), lambda: os.link(name(), name()),
    lambda: os.mkdir(name()), lambda: os.rmdir(name()), lambda: write(name() + "/in", "w"), lambda: os.unlink(name() + "/in"),
    lambda: os.symlink("a", name()), lambda: os.stat(name()), lambda: read(name()), lambda: os.listdir(name()[:2]),
    lambda: [entry.stat() for entry in os.scandir(name()[:2])], lambda: os.chmod(name(), 0o700), lambda: os.truncate(name(), 10),
]
while done % 50 or not os.path.exists(stop):
    done += 1
    try:
        draw.choice(OPERATIONS)()
    except OSError as error:
        if error.errno not in EXPECTED: wrong[errno.errorcode[error.errno]] = str(error)
print(json.dumps({"done": done, "wrong": wrong}))
