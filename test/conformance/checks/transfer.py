"""Moving bytes within the kernel: copy_file_range, sendfile, splice."""
import ctypes
import errno
import fcntl
import os
import socket

from table import check, elsewhere, equal, fails, make, may_be_refused, opened, read, write

PATTERN = bytes(range(256)) * 1024


def old_source():
    make("old", PATTERN)


@check(before=old_source)
def range_is_copied():
    """copy_file_range copies between files, old and new, from and to any offset, and stops at the end."""
    make("new", PATTERN)
    for source in ("old", "new"):
        with opened(source) as one, opened(f"copy-{source}", os.O_RDWR | os.O_CREAT) as two:
            done = 0
            while piece := os.copy_file_range(one, two, 2**20):
                done += piece
            equal(done, len(PATTERN), "bytes copied")
            equal(os.copy_file_range(one, two, 5, 100, 10), 5, "bytes copied at offsets")
            equal(os.pread(two, 20, 5), PATTERN[5:10] + PATTERN[100:105] + PATTERN[15:25], "content at the offset")
        equal(read(f"copy-{source}")[15:], PATTERN[15:], f"copy of {source}")
    equal(read("old"), PATTERN, "the source")


@check(before=old_source)
def range_is_copied_within_and_into_an_old_file():
    """copy_file_range works within one file, and into a file from before; overlapping ranges are EINVAL."""
    with opened("old", os.O_RDWR) as fd:
        equal(os.copy_file_range(fd, fd, 100, 0, 1000), 100, "bytes copied")
        equal(os.pread(fd, 102, 999), PATTERN[999:1000] + PATTERN[:100] + PATTERN[1100:1101], "content")
        fails(errno.EINVAL, os.copy_file_range, fd, fd, 100, 0, 50)
        with opened("old") as reading:
            fails(errno.EBADF, os.copy_file_range, fd, reading, 5)
    make("new", b"N" * 50)
    with opened("new") as one, opened("old", os.O_WRONLY) as two:
        os.copy_file_range(one, two, 50, 0, len(PATTERN))
    equal(read("old")[-51:], PATTERN[-1:] + b"N" * 50, "content behind the old end")


@check(before=old_source)
def range_is_copied_across_filesystems():
    """copy_file_range from and to a file elsewhere works, or is EXDEV for the caller to copy by itself."""
    elsewhere_fd = os.memfd_create("elsewhere")
    with opened("old") as fd:
        with may_be_refused("copy_file_range across filesystems", errno.EXDEV, errno.EINVAL):
            os.copy_file_range(fd, elsewhere_fd, 1000, 10, 0)
    equal(os.pread(elsewhere_fd, 2000, 0), PATTERN[10:1010], "content")


@check(before=old_source)
def file_is_sent():
    """sendfile sends a file to a file, a pipe and a socket."""
    with opened("old") as one, opened("copy", os.O_WRONLY | os.O_CREAT) as two:
        done = 0
        while piece := os.sendfile(two, one, done, 100_000):
            done += piece
    equal(read("copy") == PATTERN, True, "the copy is equal")
    left, right = socket.socketpair()
    reading, writing = os.pipe()
    with opened("copy") as fd:
        os.sendfile(left.fileno(), fd, 256, 16)
        os.sendfile(writing, fd, 512, 16)
    equal((right.recv(99), os.read(reading, 99)), (PATTERN[:16], PATTERN[:16]), "content by socket and pipe")


@check(before=old_source)
def file_is_spliced():
    """splice moves bytes from a file through a pipe into a file."""
    reading, writing = os.pipe()
    with opened("old") as one, opened("copy", os.O_WRONLY | os.O_CREAT) as two:
        done = 0
        while moved := os.splice(one, writing, 65536):
            while moved:
                piece = os.splice(reading, two, moved)
                moved -= piece
                done += piece
    equal((done, read("copy") == PATTERN), (len(PATTERN), True), "bytes, and whether they are equal")
    with opened("old", os.O_WRONLY) as fd:
        os.write(writing, b"spliced")
        os.splice(reading, fd, 7, offset_dst=10)
    equal(read("old")[9:18], PATTERN[9:10] + b"spliced" + PATTERN[17:18], "an old file")


@check(before=old_source)
def clone_is_whole_or_refused():
    """FICLONE makes an equal file, where the base can share blocks."""
    with opened("old") as one, opened("clone", os.O_RDWR | os.O_CREAT) as two:
        with may_be_refused("FICLONE", errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL):
            fcntl.ioctl(two, 0x40049409, one)
    equal(read("clone") == PATTERN, True, "the clone is equal")


@check(before=old_source)
def large_reads_and_writes():
    """One write and one read of 8 MiB, and vectors of a thousand pieces, are whole."""
    data = os.urandom(2**23)
    with opened("f", os.O_RDWR | os.O_CREAT) as fd:
        equal(os.write(fd, data), 2**23, "bytes written")
        equal(os.pread(fd, 2**24, 0) == data, True, "the content is equal")
        pieces = [bytes([number % 256]) * 33 for number in range(1000)]
        equal(os.pwritev(fd, pieces, 77), 33_000, "bytes written as a vector")
        equal(os.pread(fd, 33_000, 77) == b"".join(pieces), True, "the vector is equal")
    buffer = ctypes.create_string_buffer(10)
    with opened("old", os.O_RDWR) as fd:
        write(fd, data[:300_000])
        equal(os.pread(fd, 400_000, 0) == data[:300_000], True, "an old file is equal")
        equal(os.preadv(fd, [buffer], 299_995), 5, "bytes at the end")
