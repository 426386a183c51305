"""Prints a sequence of operations as JSON: a function of (seed, operations, mode, user) and of nothing else.

An operation is an object: `n` (its number, which its data carries), `worker`, `do`, and what that one takes (perform.py).
A place is [at, path]: `at` is "root", "cwd" or a slot that may hold a directory. `pause` asks for the comparison of
times, which needs a clock tick between operations; `looks` for a stat beforehand, which warms the kernel's caches.
"""
import json
import os
import random
import sys

import names

WORKERS = 3
SLOTS = 5
SIZES = [0, 1, 10, 100, 4096, 5000, 20000]
OFFSETS = [0, 0, 1, 100, 4095, 4096, 8192, 10000]
LENGTHS = [0, 1, 100, 4096, 4097, 30000]
MODES = [0o666, 0o644, 0o600, 0o400, 0o755, 0o777, 0o4755, 0o2755, 0o6777]
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16

ON_PATHS = {
    "open": 12, "put": 9, "cat": 8, "tmpfile": 2, "truncate": 4, "unlink": 8, "mkdir": 6, "rmdir": 4, "symlink": 3,
    "readlink": 1, "mkfifo": 1, "chmod": 4, "chown": 3, "utimens": 4, "listdir": 5, "rename": 14, "link": 7,
    "setxattr": 3, "getxattr": 2, "listxattr": 1, "removexattr": 2, "access": 2, "stat": 4, "opendir": 5, "chdir": 3,
    "getcwd": 1, "umask": 1, "truncate_open": 2,
}
ON_SLOTS = {
    "write": 8, "pwrite": 8, "read": 4, "pread": 8, "ftruncate": 5, "fchmod": 2, "fchown": 1, "futimens": 2, "fsync": 1,
    "fallocate": 4, "fstat": 5, "seek": 3, "seekdata": 2, "copy": 3, "mapwrite": 4, "mapread": 3, "map": 2,
    "heldwrite": 2, "heldread": 2, "flock": 2, "lock": 3, "fsetxattr": 2, "fgetxattr": 1, "close": 3, "linkfd": 2,
    "getdents": 8, "fchdir": 2, "dontneed": 2,
}
# What outside programs do is over when the call returns: nobody inside holds what they replace.
AT_ONCE = [
    "put", "cat", "truncate", "unlink", "mkdir", "rmdir", "symlink", "readlink", "chmod", "utimens", "listdir", "rename",
    "setxattr", "getxattr", "removexattr", "access", "stat",
]


class Generator:
    def __init__(self, seed, mode, user):
        self.random = random.Random(f"{seed} {mode} {user}")
        self.mode, self.user = mode, user
        self.pool, self.directories = names.POOLS[mode], names.DIRECTORIES[mode]
        self.used = {}
        self.n = 0

    def pick(self, of):
        return self.random.choice(of)

    def chance(self, share):
        return self.random.random() < share

    def slot(self, worker):
        return self.pick(sorted(self.used.get(worker) or [0]))

    def new_slot(self, worker):
        slot = self.random.randrange(SLOTS)
        self.used.setdefault(worker, set()).add(slot)
        return slot

    def place(self, worker, path=None):
        path = self.pick(self.pool) if path is None else path
        if self.mode == "outside" or self.chance(0.75):
            return ["root", path]
        at = "cwd" if self.chance(0.5) else self.slot(worker)
        if self.mode == "protected":
            # Where this leads is not known here: these names are protected anywhere.
            return [at, self.pick(["x.jsonl", "../x.jsonl", "sub/x.jsonl", "x.jsonl-wal", "DELIVERABLES.md"])]
        relative = os.path.basename(path)
        return [at, self.pick([relative, relative, relative, "../" + relative, path.partition("/")[2] or relative])]

    def directory(self, worker):
        return ["root", self.pick(self.directories)]

    def next(self):
        worker = self.random.randrange(WORKERS)
        op = {"n": self.n, "worker": worker, "pause": self.chance(0.2), "looks": self.chance(0.3)}
        self.n += 1
        if self.mode == "outside":
            op["do"] = self.pick(AT_ONCE)
            op["outside"] = self.chance(0.6)
            op["worker"] = 0 if op["outside"] else worker
        elif self.used.get(worker) and self.chance(0.4):
            op["do"] = self.random.choices(list(ON_SLOTS), ON_SLOTS.values())[0]
            op["slot"] = self.slot(worker)
        else:
            op["do"] = self.random.choices(list(ON_PATHS), ON_PATHS.values())[0]
        op.update(getattr(self, "with_" + op["do"], self.with_path)(worker))
        if "xattr" in op["do"] and op.get("size") == 0:
            op["pause"] = False  # ext4 leaves the ctime where the value is what it was, tmpfs does not
        return op

    # What each operation takes besides a slot.

    def nothing(self, worker):
        return {}

    def with_path(self, worker):
        return {"place": self.place(worker)}

    with_read = with_fsync = with_fstat = with_mapread = with_map = with_heldread = nothing
    with_fgetxattr = with_close = with_fchdir = with_dontneed = with_getcwd = nothing

    def with_open(self, worker):
        flags = self.pick([os.O_RDONLY, os.O_RDWR, os.O_RDWR, os.O_WRONLY])
        for share, flag in [(0.5, os.O_CREAT), (0.15, os.O_EXCL), (0.2, os.O_TRUNC), (0.2, os.O_APPEND),
                            (0.05, os.O_DIRECTORY), (0.1, os.O_NOFOLLOW), (0.05, os.O_SYNC), (0.03, os.O_PATH)]:
            if self.chance(share):
                flags |= flag
        return {"place": self.place(worker), "flags": flags, "mode": self.pick(MODES), "slot": self.new_slot(worker)}

    def with_truncate_open(self, worker):
        flags = os.O_RDWR | os.O_TRUNC | self.pick([0, os.O_CREAT])
        return {"place": self.place(worker), "flags": flags, "mode": 0o644, "slot": self.new_slot(worker)}

    def with_opendir(self, worker):
        return {"place": self.directory(worker), "flags": os.O_RDONLY | os.O_DIRECTORY, "mode": 0,
                "slot": self.new_slot(worker)}

    def with_tmpfile(self, worker):
        flags = os.O_TMPFILE | os.O_RDWR | (os.O_EXCL if self.chance(0.2) else 0)
        return {"place": self.directory(worker), "flags": flags, "mode": self.pick(MODES), "slot": self.new_slot(worker)}

    def with_put(self, worker):
        how = self.pick([os.O_TRUNC, os.O_TRUNC, os.O_APPEND, 0, os.O_EXCL])
        return {"place": self.place(worker), "flags": os.O_WRONLY | os.O_CREAT | how, "mode": self.pick(MODES),
                "size": self.pick(SIZES)}

    def with_truncate(self, worker):
        return {"place": self.place(worker), "length": self.pick(LENGTHS)}

    def with_mkdir(self, worker):
        return {"place": self.place(worker), "mode": self.pick([0o777, 0o755, 0o700, 0o2777, 0o1777])}

    def with_symlink(self, worker):
        targets = ["a", "../src/a", "x", "d1", "nowhere/x", "sub/w"]
        if self.mode == "protected":
            targets = ["x.jsonl", "DELIVERABLES.md", "nowhere/x"]
        return {"place": self.place(worker), "target": self.pick(targets)}

    def with_mkfifo(self, worker):
        return {"place": self.place(worker), "mode": self.pick([0o666, 0o600])}

    def with_chmod(self, worker):
        return {"place": self.place(worker), "mode": self.pick(MODES)}

    def owner(self):
        if self.user != "root":
            return {"uid": self.pick([-1, "own"]), "gid": self.pick([-1, "own"])}
        uid, gid = self.pick([-1, 0, 1001]), self.pick([-1, 0, 1001])
        # Of a file with setuid the kernel of a plain filesystem asks who that is; fs/fuse does not.
        return {"uid": uid, "gid": 1001 if uid == gid == -1 else gid}

    def with_chown(self, worker):
        return {"place": self.place(worker), **self.owner()}

    def times(self):
        def one():
            return self.pick(["now", "omit", 946_684_800_000_000_001 + self.random.randrange(10**17)])
        return {"atime": one(), "mtime": one()}

    def with_utimens(self, worker):
        times = self.times()
        if self.mode == "outside" and times["mtime"] == "omit":
            # The kernel tells watchers of an atime set alone as of a read (fsnotify_change), which nobody can watch.
            times["mtime"] = "now"
        return {"place": self.place(worker), **times}

    def with_listdir(self, worker):
        return {"place": self.directory(worker)}

    with_chdir = with_listdir

    def two(self, worker):
        if self.mode in ("protected", "unprotected", "outside") or self.chance(0.6):
            return {"place": self.place(worker), "to": self.place(worker)}
        first = self.pick(self.pool)
        beside = [path for path in self.pool if names.is_protected(path) != names.is_protected(first)]
        return {"place": self.place(worker, first), "to": self.place(worker, self.pick(beside))}

    def with_rename(self, worker):
        return {**self.two(worker), "flags": self.pick([0, 0, 0, 1, 2])}

    def with_link(self, worker):
        return {**self.two(worker), "flags": self.pick([0, 0, 0x400])}

    def with_setxattr(self, worker):
        return {"place": self.place(worker), "name": self.pick(["user.a", "user.b"]),
                "size": self.pick([0, 9, 100, 900]), "flags": self.pick([0, 0, 1, 2])}

    def with_getxattr(self, worker):
        return {"place": self.place(worker), "name": self.pick(["user.a", "user.b", "security.capability"])}

    def with_removexattr(self, worker):
        return {"place": self.place(worker), "name": self.pick(["user.a", "user.b"])}

    def with_access(self, worker):
        return {"place": self.place(worker), "mode": self.pick([4, 2, 1, 0, 6])}

    def with_umask(self, worker):
        return {"mode": self.pick([0o022, 0o022, 0o077, 0])}

    def with_write(self, worker):
        return {"size": self.pick(SIZES)}

    def with_pwrite(self, worker):
        return {"size": self.pick(SIZES), "offset": self.pick(OFFSETS)}

    def with_pread(self, worker):
        return {"size": self.pick([100, 4096, 30000]), "offset": self.pick(OFFSETS)}

    def with_ftruncate(self, worker):
        return {"length": self.pick(LENGTHS)}

    def with_fchmod(self, worker):
        return {"mode": self.pick(MODES)}

    def with_fchown(self, worker):
        return self.owner()

    def with_futimens(self, worker):
        return self.times()

    def with_fallocate(self, worker):
        how = self.pick([0, KEEP_SIZE, PUNCH_HOLE | KEEP_SIZE, PUNCH_HOLE | KEEP_SIZE, ZERO_RANGE, PUNCH_HOLE])
        return {"mode": how, "offset": self.pick(OFFSETS), "length": self.pick(LENGTHS)}

    def with_seek(self, worker):
        return {"offset": self.pick(OFFSETS + [-10]), "whence": self.pick([0, 1, 2])}

    def with_seekdata(self, worker):
        return {"offset": self.pick(OFFSETS), "whence": self.pick([os.SEEK_DATA, os.SEEK_HOLE])}

    def with_copy(self, worker):
        return {"other": self.slot(worker), "size": self.pick(LENGTHS), "offset": self.pick(OFFSETS),
                "to": self.pick(OFFSETS)}

    def with_mapwrite(self, worker):
        return {"offset": self.random.randrange(40000), "sync": self.chance(0.5)}

    def with_heldwrite(self, worker):
        return {"offset": self.random.randrange(40000)}

    def with_flock(self, worker):
        return {"how": self.pick([1, 2, 8])}

    def with_lock(self, worker):
        return {"how": self.pick([0, 1, 2, 3, 4]), "offset": self.pick(OFFSETS), "length": self.pick(LENGTHS)}

    def with_fsetxattr(self, worker):
        return {"name": self.pick(["user.a", "user.b"]), "size": self.pick([0, 9, 100]), "flags": self.pick([0, 0, 1, 2])}

    def with_linkfd(self, worker):
        return {"to": self.place(worker)}

    def with_getdents(self, worker):
        return {"size": self.pick([60, 60, 100, 4096]), "rewind": self.chance(0.15)}


def main():
    seed, count, mode, user = sys.argv[1:5]
    generator = Generator(seed, mode, user)
    json.dump([generator.next() for _ in range(int(count))], sys.stdout)


if __name__ == "__main__":
    main()
