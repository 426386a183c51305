"""Holes, sizes and allocation."""
import errno
import os
import resource
import signal

from calls import (
    FALLOC_COLLAPSE_RANGE,
    FALLOC_INSERT_RANGE,
    FALLOC_KEEP_SIZE,
    FALLOC_PUNCH_HOLE,
    FALLOC_ZERO_RANGE,
    fallocate,
)
from table import Process, check, elsewhere, equal, fails, make, may_be_refused, opened, read, true, write

MIB = 2**20


def blocks(path):
    return os.stat(path).st_blocks * 512


@check()
def holes_are_zeros_and_take_no_space():
    """What lies between two writes far apart reads as zeros and takes no blocks."""
    with opened("f", os.O_RDWR | os.O_CREAT) as fd:
        os.pwrite(fd, b"a", 0)
        os.pwrite(fd, b"z", 64 * MIB)
        equal(os.fstat(fd).st_size, 64 * MIB + 1, "size")
        equal(os.pread(fd, 8192, 32 * MIB), bytes(8192), "content of the hole")
        true(blocks("f") < MIB, f"{blocks('f')} bytes of blocks")


@check()
def holes_are_found():
    """SEEK_DATA and SEEK_HOLE find the data of a sparse file, and beyond its end ENXIO."""
    with opened("f", os.O_RDWR | os.O_CREAT) as fd:
        os.pwrite(fd, b"x" * 65536, 0)
        os.pwrite(fd, b"x" * 65536, 8 * MIB)
        os.ftruncate(fd, 16 * MIB)
        equal(os.lseek(fd, 0, os.SEEK_DATA), 0, "first data")
        equal(os.lseek(fd, 0, os.SEEK_HOLE), 65536, "first hole")
        equal(os.lseek(fd, 65536, os.SEEK_DATA), 8 * MIB, "second data")
        equal(os.lseek(fd, 8 * MIB, os.SEEK_HOLE), 8 * MIB + 65536, "second hole")
        fails(errno.ENXIO, os.lseek, fd, 9 * MIB, os.SEEK_DATA)
        fails(errno.ENXIO, os.lseek, fd, 16 * MIB, os.SEEK_HOLE)


def old_sparse():
    with opened("old", os.O_WRONLY | os.O_CREAT) as fd:
        os.pwrite(fd, b"a" * 65536, 0)
        os.pwrite(fd, b"m" * 65536, 20 * MIB)
        os.pwrite(fd, b"z" * 65536, 40 * MIB - 65536)
        os.ftruncate(fd, 60 * MIB)


@check(before=old_sparse)
def existing_sparse_file_stays_sparse():
    """A sparse file from before has the same holes, content and size after a write to it."""
    with opened("old", os.O_RDWR) as fd:
        os.pwrite(fd, b"B", 1)
        equal(os.fstat(fd).st_size, 60 * MIB, "size")
        equal(os.pread(fd, 3, 0) + os.pread(fd, 1, 20 * MIB) + os.pread(fd, 1, 40 * MIB - 1), b"aBamz", "content")
        equal(os.lseek(fd, 65536, os.SEEK_DATA), 20 * MIB, "second data")
        equal(os.lseek(fd, 20 * MIB, os.SEEK_HOLE), 20 * MIB + 65536, "second hole")
        fails(errno.ENXIO, os.lseek, fd, 40 * MIB, os.SEEK_DATA)
        true(blocks("old") < MIB, f"{blocks('old')} bytes of blocks")


@check(before=old_sparse)
def punched_hole_gives_its_space_back():
    """A punched hole reads as zeros, frees blocks and leaves the size; without KEEP_SIZE it is refused."""
    make("new", b"x" * MIB)
    for name, start in (("new", 65536), ("old", 20 * MIB)):
        with opened(name, os.O_RDWR) as fd:
            before, size = blocks(name), os.fstat(fd).st_size
            fallocate(fd, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, start, 65536)
            equal(os.pread(fd, 65536, start), bytes(65536), f"content of the hole in {name}")
            equal(os.fstat(fd).st_size, size, f"size of {name}")
            true(blocks(name) <= before - 61440, f"{name} went from {before} to {blocks(name)} bytes of blocks")
            fails((errno.EOPNOTSUPP, errno.EINVAL), fallocate, fd, FALLOC_PUNCH_HOLE, 0, 4096)
    equal(read("new")[65535:65537] + read("new")[131071:131073], b"x\0\0x", "the hole's edges")


@check(before=old_sparse)
def allocation_makes_room_and_size():
    """fallocate grows a file with zeros and blocks, with KEEP_SIZE blocks alone; content stays."""
    for name in ("old", "new"):
        with opened(name, os.O_RDWR | os.O_CREAT) as fd:
            size = os.fstat(fd).st_size
            before = blocks(name)
            fallocate(fd, FALLOC_KEEP_SIZE, 61 * MIB, MIB)
            equal(os.fstat(fd).st_size, size, f"size of {name} with KEEP_SIZE")
            true(blocks(name) >= before + MIB, f"{name} has {blocks(name)} bytes of blocks, of {before}")
            fallocate(fd, 0, 62 * MIB, MIB)
            equal(os.fstat(fd).st_size, 63 * MIB, f"size of {name}")
            equal(os.pread(fd, 4096, 62 * MIB + 99), bytes(4096), f"content of {name}")
            os.posix_fallocate(fd, 0, 4096)
    with opened("old") as fd:
        equal(os.pread(fd, 1, 0), b"a", "content that was there")


@check()
def allocation_has_its_refusals():
    """fallocate of a descriptor for reading is EBADF, of no length or a negative offset EINVAL, too far EFBIG."""
    make("f", b"x")
    with opened("f") as fd:
        fails(errno.EBADF, fallocate, fd, 0, 0, 10)
    with opened("f", os.O_RDWR) as fd:
        fails(errno.EINVAL, fallocate, fd, 0, 0, 0)
        fails(errno.EINVAL, fallocate, fd, 0, -1, 10)
        fails(errno.EFBIG, fallocate, fd, 0, 2**63 - 4096, 4096 * 2)
        equal(os.fstat(fd).st_size, 1, "size")


@check()
def zeroed_range():
    """FALLOC_FL_ZERO_RANGE makes zeros of content and leaves what is around."""
    make("f", b"x" * 20000)
    with opened("f", os.O_RDWR) as fd:
        with may_be_refused("FALLOC_FL_ZERO_RANGE", errno.EOPNOTSUPP):
            fallocate(fd, FALLOC_ZERO_RANGE, 5000, 10000)
    equal(read("f"), b"x" * 5000 + bytes(10000) + b"x" * 5000, "content")


@check()
def collapsed_and_inserted_range():
    """FALLOC_FL_COLLAPSE_RANGE takes a block out, FALLOC_FL_INSERT_RANGE puts one in."""
    make("f", b"a" * 4096 + b"b" * 4096 + b"c" * 4096)
    with opened("f", os.O_RDWR) as fd:
        with may_be_refused("FALLOC_FL_COLLAPSE_RANGE", errno.EOPNOTSUPP):
            fallocate(fd, FALLOC_COLLAPSE_RANGE, 4096, 4096)
        equal(read("f"), b"a" * 4096 + b"c" * 4096, "content without")
        fallocate(fd, FALLOC_INSERT_RANGE, 4096, 4096)
    equal(read("f"), b"a" * 4096 + bytes(4096) + b"c" * 4096, "content with")


@check(before=lambda: make("old", b"0123456789" * 1000))
def shrunk_and_grown_file_has_zeros():
    """A file cut and grown again has zeros where its content was, by truncate and by a far write."""
    make("new", b"0123456789" * 1000)
    for name in ("old", "new"):
        os.truncate(name, 5)
        os.truncate(name, 9000)
        equal(read(name), b"01234" + bytes(8995), name)
        os.truncate(name, 3)
        with opened(name, os.O_WRONLY) as fd:
            os.pwrite(fd, b"end", 6000)
        equal(read(name), b"012" + bytes(5997) + b"end", f"{name} after a far write")
        os.truncate(name, 0)
        equal((read(name), blocks(name)), (b"", 0), f"{name} emptied")


@check()
def truncate_has_its_refusals():
    """truncate of a directory is EISDIR, to less than nothing EINVAL, of nothing ENOENT, past the largest size EFBIG."""
    make("f", b"x")
    os.mkdir("d")
    fails(errno.EISDIR, os.truncate, "d", 0)
    fails(errno.EINVAL, os.truncate, "f", -1)
    fails(errno.ENOENT, os.truncate, "none", 0)
    os.mkfifo("p")
    fails(errno.EINVAL, os.truncate, "p", 0)
    equal(os.stat("f").st_size, 1, "size")


@check()
def blocks_follow_the_content():
    """st_blocks grows with what is written, also by another process, and falls with truncation."""
    make("f")
    equal(blocks("f"), 0, "of an empty file")
    with opened("f", os.O_WRONLY) as fd:
        write(fd, os.urandom(MIB))
        os.fsync(fd)
    true(MIB <= blocks("f") <= MIB + 65536, f"{blocks('f')} bytes of blocks for 1 MiB")
    elsewhere(lambda: os.truncate("f", 4096))
    true(blocks("f") <= 8192, f"{blocks('f')} bytes of blocks for 4 KiB")


@check()
def limit_of_file_size():
    """Beyond RLIMIT_FSIZE a write is cut short, then EFBIG with SIGXFSZ; truncate likewise."""

    def limited(act):
        def run():
            resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
            act()

        return run

    def refused():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with opened("f", os.O_RDWR | os.O_CREAT) as fd:
            equal(os.write(fd, b"x" * 20_000), 10_000, "bytes written")
            fails(errno.EFBIG, os.write, fd, b"x")
            fails(errno.EFBIG, os.ftruncate, fd, 10_001)
            fails(errno.EFBIG, fallocate, fd, 0, 0, 10_001)

    elsewhere(limited(refused))
    equal(os.stat("f").st_size, 10_000, "size")

    def killed():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        with opened("f", os.O_RDWR) as fd:
            os.pwrite(fd, b"x", 10_000)

    status = Process(limited(killed)).status()
    equal(os.WTERMSIG(status), signal.SIGXFSZ, "signal")


@check()
def greatest_offsets_are_refused():
    """A write at the end of the offsets is EFBIG or EINVAL, and leaves the file alone."""
    make("f", b"x")
    with opened("f", os.O_RDWR) as fd:
        fails((errno.EFBIG, errno.EINVAL), os.pwrite, fd, b"xx", 2**63 - 2)
        fails(errno.EINVAL, os.pwrite, fd, b"x", -1)
        equal(os.pread(fd, 9, 0), b"x", "content")
