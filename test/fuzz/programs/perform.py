"""A worker: performs operations on one side (a plain directory, or the mount) in a process of its own.

It is asked by pickled objects over a socket and answers with what the call returned, how the files it touched look
before and after, and on the plain side by which names they go. State: open slots, maps, the working directory, the umask.
"""
import ctypes
import errno
import fcntl
import mmap
import os
import pickle
import socket
import stat
import struct
import sys
import zlib

libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100
AT_SYMLINK_FOLLOW = 0x400
# Times before this were set by utimens and must be equal; later ones are "now", and only their changes are compared.
SET_BEFORE = 1_500_000_000_000_000_000


class NoSlot(Exception):
    """The slot holds nothing: the operation falls away, on both sides alike."""


def call(function, *args):
    result = getattr(libc, function)(*[ctypes.c_long(a) if isinstance(a, int) and abs(a) > 2**30 else a for a in args])
    if result < 0:
        raise OSError(ctypes.get_errno(), function)
    return result


def shown(data):
    return data if len(data) <= 48 else (len(data), zlib.crc32(data), data[:24], data[-24:])


def token(n):
    """What operation n writes, over and over: it is found again wherever its bytes go."""
    return b"<%07d>" % n


def data_of(op, size):
    return (token(op["n"]) * (size // 9 + 1))[:size]


def time_of(ns):
    return ns if ns < SET_BEFORE else "now"


def look_of(st):
    """What must be equal on both sides, and what is compared by its changes."""
    directory = stat.S_ISDIR(st.st_mode)
    return {
        "mode": oct(st.st_mode), "nlink": st.st_nlink, "size": None if directory else st.st_size, "uid": st.st_uid,
        "gid": st.st_gid, "mtime": "a fifo's" if stat.S_ISFIFO(st.st_mode) else time_of(st.st_mtime_ns),
    }, (st.st_ino, st.st_mtime_ns, st.st_ctime_ns)


class Worker:
    def __init__(self, root, path, plain):
        self.root, self.top, self.plain = root, os.path.realpath(path), plain
        self.slots, self.maps, self.umask = {}, {}, 0o022
        os.umask(self.umask)
        os.fchdir(root)

    def fd(self, slot):
        if slot not in self.slots:
            raise NoSlot
        return self.slots[slot]

    def base(self, at):
        return None if at == "cwd" else self.root if at == "root" else self.fd(at)

    def where(self, place):
        """(dir_fd, path) for the calls that take both. Nothing leads out of the top."""
        base, path = self.base(place[0]), place[1] or "."
        if path[:2] == ".." and os.path.samestat(os.stat(".", dir_fd=base), os.stat(".", dir_fd=self.root)):
            path = path[3:] or "."
        return base, path.encode("latin1")

    def path(self, place):
        """One path for the calls that take no directory."""
        base, path = self.where(place)
        return path if base is None else b"/proc/self/fd/%d/%s" % (base, path)

    def name(self, place, follow=False):
        """The name by which a place goes, from the top; None where a directory on the way is gone."""
        base, path = self.where(place)
        above = os.readlink(b"/proc/self/cwd" if base is None else b"/proc/self/fd/%d" % base)
        if above.endswith(b" (deleted)"):
            return None
        full = os.path.join(above, path)
        full = os.path.realpath(full) if follow or path in (b".", b"..") else os.path.join(
            os.path.realpath(os.path.dirname(full)), os.path.basename(full))
        top = os.fsencode(self.top)
        return "" if full == top else full[len(top) + 1:].decode("latin1") if full.startswith(top + b"/") else None

    def keep(self, slot, fd):
        if slot in self.slots:
            os.close(self.slots[slot])
        self.slots[slot] = fd

    # What is looked at besides the result.

    def subjects(self, op):
        places = [op[key] for key in ("place", "to") if isinstance(op.get(key), list)]
        return places + [[at, os.path.dirname(path)] for at, path in places]

    def look(self, op):
        looks = {}
        for place in self.subjects(op):
            try:
                looks[str(place)] = look_of(os.stat(self.where(place)[1], dir_fd=self.where(place)[0], follow_symlinks=False))
            except (OSError, NoSlot) as error:
                looks[str(place)] = error.__class__.__name__, None
        for slot in (op.get("slot"), op.get("other")):
            if slot in self.slots:
                looks[f"slot {slot}"] = look_of(os.fstat(self.slots[slot]))
        return looks

    def names(self, op):
        found = {}
        for key in ("place", "to"):
            if isinstance(op.get(key), list):
                try:
                    found[key] = self.name(op[key])
                    found[key + " followed"] = self.name(op[key], follow=True)
                except (OSError, NoSlot):
                    found[key] = None
        return found

    def answer(self, op):
        out = {}
        if self.plain:
            out["names"] = self.names(op)
        if self.plain or op.get("looks") or op.get("pause"):
            out["before"] = self.look(op)
        self.touched = None
        try:
            out["result"] = getattr(self, "do_" + op["do"])(op)
        except NoSlot:
            out["result"] = "no slot"
        except OSError as error:
            out["result"] = errno.errorcode.get(error.errno, str(error.errno))
        except ValueError as error:
            out["result"] = str(error)
        out["touched"] = self.touched
        out["after"] = self.look(op)
        return out

    # The operations. What they return must be equal on both sides.

    def opened(self, op):
        base, path = self.where(op["place"])
        # Never waits for the other end of a fifo.
        fd = os.open(path, op["flags"] | os.O_NONBLOCK | os.O_CLOEXEC, op.get("mode", 0o644), dir_fd=base)
        self.touched = os.fstat(fd).st_ino
        return fd

    def do_open(self, op):
        self.keep(op["slot"], self.opened(op))

    do_truncate_open = do_opendir = do_tmpfile = do_open

    def do_put(self, op):
        fd = self.opened(op)
        try:
            return os.write(fd, data_of(op, op["size"]))
        finally:
            os.close(fd)

    def do_cat(self, op):
        fd = self.opened({**op, "flags": os.O_RDONLY})
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                return "fifo"
            return shown(os.read(fd, 1 << 24))
        finally:
            os.close(fd)

    def do_truncate(self, op):
        os.truncate(self.path(op["place"]), op["length"])

    def do_unlink(self, op):
        base, path = self.where(op["place"])
        os.unlink(path, dir_fd=base)

    def do_rmdir(self, op):
        base, path = self.where(op["place"])
        os.rmdir(path, dir_fd=base)

    def do_mkdir(self, op):
        base, path = self.where(op["place"])
        os.mkdir(path, op["mode"], dir_fd=base)

    def do_mkfifo(self, op):
        base, path = self.where(op["place"])
        os.mkfifo(path, op["mode"], dir_fd=base)

    def do_symlink(self, op):
        base, path = self.where(op["place"])
        os.symlink(op["target"], path, dir_fd=base)

    def do_readlink(self, op):
        base, path = self.where(op["place"])
        return os.readlink(path, dir_fd=base)

    def do_chmod(self, op):
        base, path = self.where(op["place"])
        mode = op["mode"]
        # An ordinary user must stay able to list and remove the directories.
        if stat.S_ISDIR(os.stat(path, dir_fd=base).st_mode):
            mode |= 0o700
        os.chmod(path, mode, dir_fd=base)

    def owner(self, op):
        return [os.getuid() if id == "own" else id for id in (op["uid"], op["gid"])]

    def do_chown(self, op):
        base, path = self.where(op["place"])
        os.chown(path, *self.owner(op), dir_fd=base, follow_symlinks=False)

    def times(self, op):
        UTIME_NOW, UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2
        pairs = []
        for which in ("atime", "mtime"):
            ns = op[which]
            pairs += [0, UTIME_NOW] if ns == "now" else [0, UTIME_OMIT] if ns == "omit" else divmod(ns, 10**9)
        return struct.pack("qqqq", *pairs)

    def times_after(self, op, st):
        return [time_of(ns) if op[which] not in ("now", "omit") else None
                for which, ns in (("atime", st.st_atime_ns), ("mtime", st.st_mtime_ns))]

    def do_utimens(self, op):
        base, path = self.where(op["place"])
        call("utimensat", AT_FDCWD if base is None else base, path, self.times(op), 0x100)
        return self.times_after(op, os.stat(path, dir_fd=base, follow_symlinks=False))

    def do_futimens(self, op):
        fd = self.fd(op["slot"])
        call("futimens", fd, self.times(op))
        return self.times_after(op, os.fstat(fd))

    def do_listdir(self, op):
        return sorted(os.fsencode(name) for name in os.listdir(self.path(op["place"])))

    def do_rename(self, op):
        (base, path), (to, target) = self.where(op["place"]), self.where(op["to"])
        call("renameat2", AT_FDCWD if base is None else base, path, AT_FDCWD if to is None else to, target, op["flags"])

    def do_link(self, op):
        (base, path), (to, target) = self.where(op["place"]), self.where(op["to"])
        call("linkat", AT_FDCWD if base is None else base, path, AT_FDCWD if to is None else to, target, op["flags"])

    def do_linkfd(self, op):
        fd = self.fd(op["slot"])
        to, target = self.where(op["to"])
        self.touched = os.fstat(fd).st_ino
        call("linkat", AT_FDCWD, b"/proc/self/fd/%d" % fd, AT_FDCWD if to is None else to, target, AT_SYMLINK_FOLLOW)

    def do_setxattr(self, op):
        os.setxattr(self.path(op["place"]), op["name"], data_of(op, op["size"]), op["flags"])

    def do_getxattr(self, op):
        return shown(os.getxattr(self.path(op["place"]), op["name"]))

    def do_listxattr(self, op):
        return sorted(os.listxattr(self.path(op["place"])))

    def do_removexattr(self, op):
        os.removexattr(self.path(op["place"]), op["name"])

    def do_fsetxattr(self, op):
        os.setxattr(self.fd(op["slot"]), op["name"], data_of(op, op["size"]), op["flags"])

    def do_fgetxattr(self, op):
        return sorted((n, shown(os.getxattr(self.fd(op["slot"]), n))) for n in os.listxattr(self.fd(op["slot"])))

    def do_access(self, op):
        base, path = self.where(op["place"])
        return os.access(path, op["mode"], dir_fd=base, effective_ids=True)

    def do_stat(self, op):
        base, path = self.where(op["place"])
        return look_of(os.stat(path, dir_fd=base))[0]

    def do_chdir(self, op):
        os.chdir(self.path(op["place"]))

    def do_fchdir(self, op):
        os.fchdir(self.fd(op["slot"]))

    def do_getcwd(self, op):
        cwd = os.getcwd()
        return cwd[len(self.top):] if cwd.startswith(self.top) else cwd

    def do_umask(self, op):
        os.umask(op["mode"])

    def do_write(self, op):
        self.touched = os.fstat(self.fd(op["slot"])).st_ino
        return os.write(self.fd(op["slot"]), data_of(op, op["size"]))

    def do_pwrite(self, op):
        self.touched = os.fstat(self.fd(op["slot"])).st_ino
        return os.pwrite(self.fd(op["slot"]), data_of(op, op["size"]), op["offset"])

    def do_read(self, op):
        fd = self.fd(op["slot"])
        # EINVAL where the directory's own offset is near the end of numbers, EISDIR elsewhere.
        return "directory" if stat.S_ISDIR(os.fstat(fd).st_mode) else shown(os.read(fd, 1000))

    def do_pread(self, op):
        return shown(os.pread(self.fd(op["slot"]), op["size"], op["offset"]))

    def do_ftruncate(self, op):
        os.ftruncate(self.fd(op["slot"]), op["length"])

    def do_fchmod(self, op):
        fd = self.fd(op["slot"])
        os.fchmod(fd, op["mode"] | (0o700 if stat.S_ISDIR(os.fstat(fd).st_mode) else 0))

    def do_fchown(self, op):
        os.fchown(self.fd(op["slot"]), *self.owner(op))

    def do_fsync(self, op):
        os.fsync(self.fd(op["slot"]))

    def do_fallocate(self, op):
        fd = self.fd(op["slot"])
        if libc.fallocate(fd, op["mode"], ctypes.c_long(op["offset"]), ctypes.c_long(op["length"])) < 0:
            raise OSError(ctypes.get_errno(), "fallocate")

    def do_fstat(self, op):
        st = os.fstat(self.fd(op["slot"]))
        return look_of(st)[0]

    def do_seek(self, op):
        fd = self.fd(op["slot"])
        # A directory's offsets are the filesystem's own.
        return "directory" if stat.S_ISDIR(os.fstat(fd).st_mode) else os.lseek(fd, op["offset"], op["whence"])

    def do_seekdata(self, op):
        fd = self.fd(op["slot"])
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return "not a file"
        before = os.lseek(fd, 0, os.SEEK_CUR)
        size = os.fstat(fd).st_size
        try:
            hole = self.hole(fd, op["offset"], op["whence"], size)
        except OSError as error:
            if error.errno != errno.ENXIO or op["offset"] >= size:
                raise
            hole = (op["offset"], size)  # no data from there on
        finally:
            os.lseek(fd, before, os.SEEK_SET)
        # Where a filesystem keeps holes is its own affair, and on ext4 a matter of what has been written back by now.
        if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
            return "not read"
        return "zeros" if not os.pread(fd, hole[1] - hole[0], hole[0]).strip(b"\0") else f"data in the hole {hole}"

    def hole(self, fd, offset, whence, size):
        found = os.lseek(fd, offset, whence)
        if whence == os.SEEK_DATA:
            return offset, found
        try:
            return found, os.lseek(fd, found, os.SEEK_DATA) if found < size else found
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return found, size

    def do_copy(self, op):
        source, target = self.fd(op["slot"]), self.fd(op["other"])
        self.touched = os.fstat(target).st_ino
        return os.copy_file_range(source, target, op["size"], op["offset"], op["to"])

    def mapped(self, op, access):
        fd = self.fd(op["slot"])
        st = os.fstat(fd)
        if not stat.S_ISREG(st.st_mode) or st.st_size == 0:
            return None
        return mmap.mmap(fd, st.st_size, mmap.MAP_SHARED, access)

    def do_mapwrite(self, op):
        area = self.mapped(op, mmap.PROT_READ | mmap.PROT_WRITE)
        if area is None:
            return "empty"
        if self.loses_setid(self.fd(op["slot"])):
            return "setuid"
        area[op["offset"] % len(area)] = 35
        if op["sync"] or os.getuid() != 0:
            area.flush()
        area.close()

    def do_mapread(self, op):
        area = self.mapped(op, mmap.PROT_READ)
        if area is None:
            return "empty"
        with area:
            return shown(area[:])

    def loses_setid(self, fd):
        """differences.py, "Written through a map": such writes are left out."""
        return os.getuid() != 0 and os.fstat(fd).st_mode & 0o6000 != 0

    def do_map(self, op):
        area = self.mapped(op, mmap.PROT_READ | mmap.PROT_WRITE)
        if area is not None:
            self.maps[op["slot"]] = os.dup(self.fd(op["slot"])), area

    def held_map(self, op):
        """A map made before, and how much of it is still in the file: what lies past that is SIGBUS."""
        if op["slot"] not in self.maps:
            raise NoSlot
        fd, area = self.maps[op["slot"]]
        return area, min(len(area), os.fstat(fd).st_size)

    def do_heldwrite(self, op):
        area, size = self.held_map(op)
        if size == 0:
            return "empty"
        if self.loses_setid(self.maps[op["slot"]][0]):
            return "setuid"
        area[op["offset"] % size] = 37
        area.flush()

    def do_heldread(self, op):
        area, size = self.held_map(op)
        return shown(area[:size])

    def do_flock(self, op):
        fcntl.flock(self.fd(op["slot"]), op["how"] | fcntl.LOCK_NB)

    def do_lock(self, op):
        fd = self.fd(op["slot"])
        kind = [fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK][op["how"] % 3]
        open_file = op["how"] > 2
        lock = struct.pack("hhqqi", kind, 0, op["offset"], op["length"], 0)
        fcntl.fcntl(fd, 37 if open_file else fcntl.F_SETLK, lock)

    def do_close(self, op):
        os.close(self.fd(op["slot"]))
        del self.slots[op["slot"]]

    def do_dontneed(self, op):
        os.posix_fadvise(self.fd(op["slot"]), 0, 0, os.POSIX_FADV_DONTNEED)

    def do_getdents(self, op):
        """Some entries, and whether that was the end."""
        fd = self.fd(op["slot"])
        if op["rewind"]:
            os.lseek(fd, 0, os.SEEK_SET)
        buffer = ctypes.create_string_buffer(op["size"])
        size = call("syscall", 217 if os.uname().machine == "x86_64" else 61, fd, buffer, op["size"])
        found, at = [], 0
        while at < size:
            length = struct.unpack_from("H", buffer, at + 16)[0]
            found.append(buffer.raw[at + 19:at + length].split(b"\0")[0])
            at += length
        return found

    # Not operations: asked by the coordinator for itself.

    def do_tree(self, op):
        return tree(self.root)

    def do_look(self, op):
        return None

    def do_listslot(self, op):
        os.lseek(self.fd(op["slot"]), 0, os.SEEK_SET)
        return [os.fsencode(name) for name in os.listdir(self.fd(op["slot"]))]


def content(at, name, st):
    if stat.S_ISLNK(st.st_mode):
        return os.readlink(name, dir_fd=at)
    if not stat.S_ISREG(st.st_mode):
        return None
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=at)
    except PermissionError:
        return "unreadable"
    with os.fdopen(fd, "rb") as f:
        return shown(f.read())


def attributes(at, name, st):
    if stat.S_ISLNK(st.st_mode) or stat.S_ISFIFO(st.st_mode):
        return None
    path = b"/proc/self/fd/%d/%s" % (at, name)
    try:
        return sorted((n, shown(os.getxattr(path, n))) for n in os.listxattr(path))
    except PermissionError:
        return "unreadable"


def tree(root):
    """Every path with its look, its content and its extended attributes; hard links as the first of their names."""
    out, inodes = {}, {}

    def walk(fd, above):
        for name in sorted(os.fsencode(n) for n in os.listdir(fd)):
            st = os.stat(name, dir_fd=fd, follow_symlinks=False)
            path = above + name.decode("latin1")
            first = inodes.setdefault(st.st_ino, path)
            out[path] = {**look_of(st)[0], "file": first, "content": content(fd, name, st),
                         "attributes": attributes(fd, name, st), "ino": st.st_ino}
            if stat.S_ISDIR(st.st_mode):
                below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
                try:
                    walk(below, path + "/")
                finally:
                    os.close(below)

    top = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=root)
    try:
        walk(top, "")
    finally:
        os.close(top)
    return out


def serve(channel, worker):
    """Answers until the other end closes."""
    with channel.makefile("rwb") as stream:
        while True:
            try:
                op = pickle.load(stream)
            except EOFError:
                return
            pickle.dump(worker.answer(op), stream)
            stream.flush()


def main():
    """perform.py SOCKET DIRECTORY: a worker for one directory, asked over a socket that it listens on."""
    at, directory = sys.argv[1:3]
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(at)
    listening.listen(1)
    root = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    print("ready", flush=True)
    channel, _ = listening.accept()
    serve(channel, Worker(root, directory, False))


if __name__ == "__main__":
    main()
