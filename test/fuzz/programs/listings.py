"""listings.py SEED ROUNDS DIRECTORY: several readers of one directory, by getdents64 with small buffers, while names
come and go. Each must get every name that was there all the time once, and none that was there at no time since it began.

A reader may go back to what an entry said (seekdir), or begin anew (rewinddir). Prints what was wrong, with what was done before.
Imports calls.py of test/conformance/checks.
"""

import os
import random
import sys

from calls import getdents

STEPS = 500
MOST_READERS = 5
# The largest entry is 24 + 90 bytes; 32 KiB is what the C library asks for.
SIZES = [128, 200, 600, 4096, 32768]


class Reader:
    def __init__(self, path, there):
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self.begin(there)

    def begin(self, there):
        self.always, self.ever = set(there), set(there)
        self.got, self.positions = [], []

    def rewind(self, there):
        os.lseek(self.fd, 0, os.SEEK_SET)
        self.begin(there)

    def read(self, size):
        """Whether there was more."""
        entries = getdents(self.fd, size)
        self.got += [os.fsdecode(name) for _, _, _, name in entries]
        self.positions += [position for _, position, _, _ in entries]
        return bool(entries)

    def seek(self, index):
        os.lseek(self.fd, self.positions[index], os.SEEK_SET)
        del self.got[index + 1 :], self.positions[index + 1 :]

    def wrong(self):
        names = set(self.got)
        always = self.always | {".", ".."}
        findings = {
            "more than once": [name for name in names & always if self.got.count(name) > 1],
            "not at all": always - names,
            "although it was never there": names - self.ever - {".", ".."},
        }
        return {how: sorted(found) for how, found in findings.items() if found}


class Round:
    def __init__(self, path, seed):
        self.path = path
        self.random = random.Random(seed)
        self.there = set(os.listdir(path))
        self.readers = []
        self.log = []

    def made(self, name):
        self.there.add(name)
        for reader in self.readers:
            reader.ever.add(name)

    def removed(self, name):
        self.there.discard(name)
        for reader in self.readers:
            reader.always.discard(name)

    def make(self):
        number = self.random.randrange(60)
        name = f"n{number}" if self.random.random() < 0.5 else f"{number}-" + "x" * self.random.randrange(80)
        if name in self.there:
            return None
        at = f"{self.path}/{name}"
        kind = self.random.choice(["file", "file", "directory", "symlink"])
        if kind == "file":
            open(at, "w").close()
        elif kind == "directory":
            os.mkdir(at)
        else:
            os.symlink("nowhere", at)
        self.made(name)
        return f"make {kind} {name}"

    def remove(self):
        if not self.there:
            return None
        name = self.random.choice(sorted(self.there))
        at = f"{self.path}/{name}"
        if os.path.isdir(at) and not os.path.islink(at):
            os.rmdir(at)
        else:
            os.unlink(at)
        self.removed(name)
        return f"remove {name}"

    def rename(self):
        new = f"r{self.random.randrange(60)}"
        if not self.there or new in self.there:
            return None
        old = self.random.choice(sorted(self.there))
        os.rename(f"{self.path}/{old}", f"{self.path}/{new}")
        self.removed(old)
        self.made(new)
        return f"rename {old} {new}"

    def open(self):
        if len(self.readers) == MOST_READERS:
            return None
        self.readers.append(Reader(self.path, self.there))
        return f"open {self.readers[-1].fd}"

    def read(self):
        reader = self.any()
        if not reader:
            return None
        size = self.random.choice(SIZES)
        if reader.read(size):
            return f"read {reader.fd}, {size} bytes: up to {reader.got[-1]}"
        wrong = reader.wrong()
        if wrong:
            raise AssertionError(f"{reader.fd} came to its end with {wrong}")
        if self.random.random() < 0.5:
            reader.rewind(self.there)
            return f"end and rewind {reader.fd}"
        return self.leave(reader)

    def seek(self):
        reader = self.any()
        if not reader or not reader.got:
            return None
        reader.seek(self.random.randrange(len(reader.got)))
        return f"seek {reader.fd} behind {reader.got[-1]}"

    def rewind(self):
        reader = self.any()
        if not reader:
            return None
        reader.rewind(self.there)
        return f"rewind {reader.fd}"

    def leave(self, reader=None):
        reader = reader or self.any()
        if not reader:
            return None
        os.close(reader.fd)
        self.readers.remove(reader)
        return f"close {reader.fd}"

    def any(self):
        return self.random.choice(self.readers) if self.readers else None

    def run(self):
        steps = [self.open, self.read, self.seek, self.rewind, self.leave, self.make, self.remove, self.rename]
        for step in self.random.choices(steps, weights=[12, 43, 5, 3, 3, 14, 14, 6], k=STEPS):
            done = step()
            if done:
                self.log.append(done)
        while self.readers:
            self.leave()
        if set(os.listdir(self.path)) != self.there:
            raise AssertionError(f"in the end there is {set(os.listdir(self.path)) ^ self.there} too much or too little")


def main():
    first, rounds, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    for seed in range(first, first + rounds):
        one = Round(path, seed)
        try:
            one.run()
        except AssertionError as error:
            print(f"seed {seed}: {error}, after", *one.log[-60:], sep="\n")
            sys.exit(1)
    print(f"{rounds} rounds")


main()
