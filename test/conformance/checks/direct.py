"""O_DIRECT, and its agreement with the page cache."""
import errno
import mmap
import os

from table import check, elsewhere, equal, make, may_be_refused, opened, read

BLOCK = 4096


def direct(path, flags):
    with may_be_refused("O_DIRECT", errno.EINVAL):
        return opened_direct(path, flags)


def opened_direct(path, flags):
    return os.open(path, flags | os.O_DIRECT, 0o644)


def aligned(content):
    buffer = mmap.mmap(-1, len(content))
    buffer[:] = content
    return buffer


def read_direct(fd, length, offset):
    buffer = mmap.mmap(-1, length)
    return bytes(buffer[: os.preadv(fd, [buffer], offset)])


@check(before=lambda: make("old", b"o" * 4 * BLOCK))
def direct_io_reads_and_writes():
    """O_DIRECT writes and reads whole blocks, to the end of the file."""
    make("new", b"o" * 4 * BLOCK)
    for name in ("old", "new"):
        fd = direct(name, os.O_RDWR)
        equal(os.pwritev(fd, [aligned(b"D" * BLOCK)], BLOCK), BLOCK, "bytes written")
        equal(read_direct(fd, 2 * BLOCK, BLOCK), b"D" * BLOCK + b"o" * BLOCK, f"{name} by the same descriptor")
        equal(read_direct(fd, 2 * BLOCK, 3 * BLOCK), b"o" * BLOCK, f"the end of {name}")
        equal(read_direct(fd, BLOCK, 4 * BLOCK), b"", f"behind the end of {name}")
        os.close(fd)


@check(before=lambda: make("old", b"o" * 4 * BLOCK))
def direct_io_agrees_with_the_cache():
    """What was written past the page cache is read through it, and the other way round; a map too."""
    make("new", b"o" * 4 * BLOCK)
    for name in ("old", "new"):
        read(name)  # into the cache
        fd = direct(name, os.O_RDWR)
        with opened(name, os.O_RDWR) as cached:
            own = mmap.mmap(cached, 4 * BLOCK)
            own[0:1]
            os.pwritev(fd, [aligned(b"D" * BLOCK)], 0)
            equal(os.pread(cached, BLOCK, 0), b"D" * BLOCK, f"{name} through the cache")
            equal(own[0:2], b"DD", f"{name} through a map")
            os.pwrite(cached, b"C" * BLOCK, BLOCK)
            equal(read_direct(fd, BLOCK, BLOCK), b"C" * BLOCK, f"{name} past the cache")
            own[2 * BLOCK : 2 * BLOCK + 2] = b"MM"
            equal(read_direct(fd, BLOCK, 2 * BLOCK)[:3], b"MMo", f"{name} stored in a map, past the cache")
            own.close()
        os.close(fd)


@check()
def direct_io_extends_and_appends():
    """O_DIRECT writes behind the end grow a file; with O_APPEND they go to its end."""
    fd = direct("f", os.O_RDWR | os.O_CREAT)
    os.pwritev(fd, [aligned(b"a" * BLOCK)], 2 * BLOCK)
    equal(os.fstat(fd).st_size, 3 * BLOCK, "size")
    os.close(fd)
    fd = direct("f", os.O_WRONLY | os.O_APPEND)
    os.writev(fd, [aligned(b"b" * BLOCK)])
    os.close(fd)
    equal(read("f"), bytes(2 * BLOCK) + b"a" * BLOCK + b"b" * BLOCK, "content")


@check()
def direct_io_is_seen_elsewhere():
    """Another process sees size and content of a direct write at once."""
    fd = direct("f", os.O_RDWR | os.O_CREAT)
    for turn in range(20):
        os.pwritev(fd, [aligned(bytes([65 + turn]) * BLOCK)], turn * BLOCK)
        equal(elsewhere(lambda: read("f")[-1]), 65 + turn, f"last byte after write {turn}")
    os.close(fd)
