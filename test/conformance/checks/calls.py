"""System calls that Python does not have, as functions that raise OSError."""
import ctypes
import os
import struct

libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW = 0x100
AT_EACCESS = 0x200
AT_SYMLINK_FOLLOW = 0x400
AT_EMPTY_PATH = 0x1000

RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT = 1, 2, 4
FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_COLLAPSE_RANGE, FALLOC_ZERO_RANGE, FALLOC_INSERT_RANGE = 1, 2, 8, 16, 32
RESOLVE_NO_XDEV, RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH, RESOLVE_IN_ROOT = 1, 2, 4, 8, 16

# Numbers from 424 on are the same on every architecture; getdents64 is not.
SYS_OPENAT2, SYS_FACCESSAT2 = 437, 439
SYS_GETDENTS64 = {"x86_64": 217, "aarch64": 61}[os.uname().machine]

for function in ("opendir", "fdopendir", "readdir"):
    getattr(libc, function).restype = ctypes.c_void_p
libc.telldir.restype = ctypes.c_long


def checked(result, *names):
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), *names[:1])
    return result


def renameat2(old, new, flags):
    checked(libc.renameat2(AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new), flags), old)


def linkat(old_fd, old, new, flags):
    checked(libc.linkat(old_fd, os.fsencode(old), AT_FDCWD, os.fsencode(new), flags), new)


def link_descriptor(fd, new):
    """Gives an open file a name, as a user without capabilities can: through /proc."""
    linkat(AT_FDCWD, f"/proc/self/fd/{fd}", new, AT_SYMLINK_FOLLOW)


def fallocate(fd, mode, offset, length):
    checked(libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)))


def syncfs(fd):
    checked(libc.syncfs(fd))


def readahead(fd, offset, count):
    checked(libc.readahead(fd, ctypes.c_long(offset), ctypes.c_size_t(count)))


def utimensat(path, times, flags=0, fd=AT_FDCWD):
    """`times`: two of (seconds, nanoseconds), which may be UTIME_NOW or UTIME_OMIT."""
    packed = struct.pack("=qqqq", *times[0], *times[1]) if times else None
    checked(libc.utimensat(fd, os.fsencode(path), packed, flags), path)


UTIME_NOW, UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2


def openat2(path, flags, resolve, dir_fd=AT_FDCWD, mode=0):
    how = struct.pack("=QQQ", flags, mode, resolve)
    return checked(libc.syscall(SYS_OPENAT2, dir_fd, os.fsencode(path), how, len(how)), path)


def faccessat2(path, mode, flags):
    checked(libc.syscall(SYS_FACCESSAT2, AT_FDCWD, os.fsencode(path), mode, flags), path)


def mount_id(fd):
    with open(f"/proc/self/fdinfo/{fd}") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("mnt_id:"))


STATX_BTIME = 0x800
STATX_BASIC = 0x7FF


def statx(path, mask=STATX_BASIC | STATX_BTIME):
    buffer = ctypes.create_string_buffer(256)
    checked(libc.statx(AT_FDCWD, os.fsencode(path), AT_SYMLINK_NOFOLLOW, mask, buffer), path)
    head = struct.unpack_from("=IIQIIIHHQQQQ", buffer.raw)
    names = "mask blksize attributes nlink uid gid mode pad ino size blocks attributes_mask".split()
    found = dict(zip(names, head))
    for index, name in enumerate(("atime", "btime", "ctime", "mtime")):
        seconds, nanoseconds = struct.unpack_from("=qI", buffer.raw, 64 + 16 * index)
        found[name] = seconds * 10**9 + nanoseconds
    return found


def name_to_handle(path):
    """The handle as bytes (its header included), to be given to `open_by_handle`."""
    buffer = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0) + bytes(128), 136)
    mount = ctypes.c_int()
    checked(libc.name_to_handle_at(AT_FDCWD, os.fsencode(path), buffer, ctypes.byref(mount), 0), path)
    return buffer.raw[: 8 + struct.unpack_from("=I", buffer.raw)[0]]


def open_by_handle(mount_fd, handle, flags):
    return checked(libc.open_by_handle_at(mount_fd, ctypes.create_string_buffer(handle, len(handle)), flags))


def getdents(fd, size):
    """One getdents64 with a buffer of that size: (inode, offset, type, name) of each entry."""
    buffer = ctypes.create_string_buffer(size)
    filled = checked(libc.syscall(SYS_GETDENTS64, fd, buffer, size))
    entries, at = [], 0
    while at < filled:
        ino, offset, length, kind = struct.unpack_from("=QqHB", buffer.raw, at)
        entries.append((ino, offset, kind, buffer.raw[at + 19 : at + length].split(b"\0", 1)[0]))
        at += length
    return entries


def entries_of(path, size=32768):
    """All entries of a directory, "." and ".." too."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        found = []
        while some := getdents(fd, size):
            found += some
        return found
    finally:
        os.close(fd)


class Directory:
    """A C library's DIR, with telldir and seekdir."""

    def __init__(self, path):
        self.handle = ctypes.c_void_p(libc.opendir(os.fsencode(path)))
        if not self.handle:
            raise OSError(ctypes.get_errno(), "opendir", path)

    def next(self):
        """The next name but "." and "..", or None at the end."""
        while at := libc.readdir(self.handle):
            length = struct.unpack("=H", ctypes.string_at(at + 16, 2))[0]
            name = ctypes.string_at(at + 19, length - 19).split(b"\0", 1)[0]
            if name not in (b".", b".."):
                return name
        return None

    def rest(self):
        names = []
        while (name := self.next()) is not None:
            names.append(name)
        return names

    def tell(self):
        return libc.telldir(self.handle)

    def seek(self, position):
        libc.seekdir(self.handle, ctypes.c_long(position))

    def rewind(self):
        libc.rewinddir(self.handle)

    def close(self):
        libc.closedir(self.handle)
