"""Memory maps: shared, private, across a copy-up, and past the end."""
import ctypes
import errno
import fcntl
import mmap
import os
import signal
import struct
import time

from table import Gate, Process, check, elsewhere, equal, fails, make, opened, read, tick, true

PAGE = mmap.PAGESIZE
PROT_NONE = 0
libc = ctypes.CDLL(None, use_errno=True)


def old_pages():
    make("old", bytes([97 + page for page in range(8) for _ in range(PAGE)]))


def mapped(fd, length, writable=True, shared=True):
    return mmap.mmap(
        fd,
        length,
        mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE,
        mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0),
    )


@check()
def shared_map_is_shared_between_processes():
    """What one process stores in a shared map another reads in its own, without msync."""
    with opened("f", os.O_RDWR | os.O_CREAT) as fd:
        os.ftruncate(fd, 4 * PAGE)
        own = mapped(fd, 4 * PAGE)
        own[0:3] = b"one"

        def other():
            with opened("f", os.O_RDWR) as again:
                theirs = mapped(again, 4 * PAGE)
                equal(theirs[0:3], b"one", "seen by the other")
                theirs[3 * PAGE : 3 * PAGE + 3] = b"two"

        elsewhere(other)
        equal(own[3 * PAGE : 3 * PAGE + 3], b"two", "seen by the first")


@check(before=old_pages)
def map_and_calls_see_each_other():
    """write(2) shows in a shared map, and a store in the map shows in read(2)."""
    for name in ("old", "new"):
        if name == "new":
            make("new", bytes(8 * PAGE))
        with opened(name, os.O_RDWR) as fd:
            own = mapped(fd, 8 * PAGE)
            os.pwrite(fd, b"written", PAGE - 3)
            equal(own[PAGE - 3 : PAGE + 4], b"written", f"in the map of {name}")
            own[2 * PAGE - 2 : 2 * PAGE + 2] = b"kept"
            equal(os.pread(fd, 4, 2 * PAGE - 2), b"kept", f"by read of {name}")
            equal(elsewhere(lambda: read(name)[2 * PAGE - 2 : 2 * PAGE + 2].decode()), "kept", "by another process")
            own.close()
        equal(read(name)[2 * PAGE - 2 : 2 * PAGE + 2], b"kept", f"{name} after unmapping")


@check(before=old_pages)
def map_for_reading_sees_writes_across_copy_up():
    """A shared map made for reading before anything was written sees what another process writes."""
    with opened("old") as fd:
        own = mapped(fd, 8 * PAGE, writable=False)
        equal(own[0:1] + own[5 * PAGE : 5 * PAGE + 1], b"af", "before")

        def other():
            with opened("old", os.O_RDWR) as again:
                os.pwrite(again, b"WRITTEN", 5 * PAGE)
                theirs = mapped(again, 8 * PAGE)
                theirs[0:6] = b"STORED"
                theirs.flush()

        elsewhere(other)
        equal(own[5 * PAGE : 5 * PAGE + 7], b"WRITTEN", "a page that was read before")
        equal(own[0:6], b"STORED", "a page that was stored to")
        os.close(os.dup(fd))


@check(before=old_pages)
def two_maps_of_an_existing_file_count_together():
    """Two processes that count in a shared map of a file from before, under a lock, lose no count."""
    ready = Gate()

    def run():
        with opened("old", os.O_RDWR) as fd:
            own = mapped(fd, PAGE)
            ready.wait()
            for _ in range(500):
                fcntl.lockf(fd, fcntl.LOCK_EX)
                own[0:8] = struct.pack("=Q", struct.unpack("=Q", own[0:8])[0] + 1)
                fcntl.lockf(fd, fcntl.LOCK_UN)

    with opened("old", os.O_RDWR) as fd:
        os.pwrite(fd, struct.pack("=Q", 0), 0)
        processes = [Process(run) for _ in range(2)]
        ready.open(2)
        for process in processes:
            process.result()
        equal(struct.unpack("=Q", os.pread(fd, 8, 0))[0], 1000, "count")


@check(before=old_pages)
def private_map_is_private():
    """Stores in a private map reach neither the file nor others."""
    with opened("old") as fd:
        own = mapped(fd, 8 * PAGE, shared=False)
        own[0:5] = b"STORE"
        equal(own[0:6], b"STOREa", "in the map")
        equal(os.pread(fd, 5, 0), b"aaaaa", "in the file")
        equal(elsewhere(lambda: read("old")[:5].decode()), "aaaaa", "for another process")


@check(before=old_pages)
def map_past_the_end_is_sigbus():
    """Touching a page that truncation took away is SIGBUS; the rest of the last page is zeros."""

    def touch(name, offset):
        def run():
            signal.signal(signal.SIGBUS, signal.SIG_DFL)
            with opened(name, os.O_RDWR) as fd:
                own = mapped(fd, 8 * PAGE)
                equal(len(own[0:10]), 10, "readable bytes")
                elsewhere(lambda: os.truncate(name, PAGE + 10))
                equal(own[PAGE + 10 : 2 * PAGE], bytes(PAGE - 10), "rest of the last page")
                own[offset]

        return os.WTERMSIG(Process(run).status())

    make("new", b"n" * 8 * PAGE)
    for name in ("old", "new"):
        equal(touch(name, 2 * PAGE), signal.SIGBUS, f"signal for {name}")
        os.truncate(name, 8 * PAGE)


@check()
def bytes_past_the_end_are_not_written():
    """What is stored behind the file's end, in its last page, is not in the file, nor when it grows."""
    with opened("f", os.O_RDWR | os.O_CREAT) as fd:
        os.ftruncate(fd, PAGE)
        own = mapped(fd, PAGE)
        os.ftruncate(fd, 0)
        os.write(fd, b"short")
        own[0:9] = b"SHORTmore"
        own.flush()
        equal((os.fstat(fd).st_size, os.pread(fd, 99, 0)), (5, b"SHORT"), "size and content")
        own.close()
        os.ftruncate(fd, 9)
        equal(os.pread(fd, 99, 0), b"SHORT\0\0\0\0", "content after it grew")


@check()
def map_of_a_growing_file():
    """Pages behind the end become the file's when it grows."""
    with opened("f", os.O_RDWR | os.O_CREAT) as fd:
        os.ftruncate(fd, 3 * PAGE)
        own = mapped(fd, 3 * PAGE)  # Python lets none be made that is longer than the file
        os.ftruncate(fd, 0)
        os.write(fd, b"x")
        os.ftruncate(fd, 3 * PAGE)
        os.pwrite(fd, b"end", 3 * PAGE - 3)
        equal(own[3 * PAGE - 3 :], b"end", "in the map")
        own[2 * PAGE : 2 * PAGE + 1] = b"y"
        equal(os.pread(fd, 1, 2 * PAGE), b"y", "in the file")


@check(before=old_pages)
def map_outlives_descriptor_and_name():
    """A map goes on when the descriptor is closed and the file unlinked or renamed over."""
    fd = os.open("old", os.O_RDWR)
    own = mapped(fd, 8 * PAGE)
    with opened("old") as second:
        os.close(fd)
        make("new", b"new")
        os.rename("new", "old")
        own[0:4] = b"kept"
        own.flush()
        equal((own[0:5], own[7 * PAGE : 7 * PAGE + 1]), (b"kepta", b"h"), "in the map")
        equal(os.pread(second, 4, 0), b"kept", "by a descriptor")
    equal(read("old"), b"new", "by name")


@check()
def map_needs_the_right_descriptor():
    """A shared, writable map of a descriptor for reading is EACCES, a private one is not."""
    make("f", b"x" * PAGE)
    with opened("f") as fd:
        fails(errno.EACCES, mapped, fd, PAGE)
        own = mapped(fd, PAGE, shared=False)
        own[0:1] = b"y"
    with opened("f", os.O_WRONLY) as fd:
        fails(errno.EACCES, mapped, fd, PAGE, False)
    equal(read("f"), b"x" * PAGE, "content")


@check(before=old_pages)
def stores_in_a_map_stamp_the_file():
    """After stores in a shared map and msync, mtime and ctime are new."""
    make("new", bytes(PAGE))
    for name in ("old", "new"):
        first = os.stat(name)
        tick()
        with opened(name, os.O_RDWR) as fd:
            own = mapped(fd, PAGE)
            own[0:1] = b"S"
            own.flush()
        second = os.stat(name)
        true(second.st_mtime_ns > first.st_mtime_ns, f"mtime of {name} stood still")
        true(second.st_ctime_ns > first.st_ctime_ns, f"ctime of {name} stood still")
        true(abs(second.st_mtime_ns - time.time_ns()) < 5 * 10**9, f"mtime of {name} is not about now")


@check(before=old_pages)
def map_of_what_another_maps_away():
    """msync of a map, and fsync of its file, are seen whole by a process that starts afterwards."""
    with opened("old", os.O_RDWR) as fd:
        own = mapped(fd, 8 * PAGE)
        for page in range(0, 8, 2):
            own[page * PAGE : (page + 1) * PAGE] = bytes([65 + page]) * PAGE
        own.flush(0, 4 * PAGE)
        os.fsync(fd)
        wanted = b"".join(bytes([(65 if page % 2 == 0 else 97) + page]) * PAGE for page in range(8))
        true(elsewhere(lambda: read("old") == wanted), "other content for another process")
        own.close()
    true(read("old") == wanted, "other content after unmapping")


@check()
def map_locked_into_memory():
    """mlock of a map of a file, PROT_NONE and back, and MADV_DONTNEED leave its content."""
    make("f", b"x" * 4 * PAGE)
    with opened("f", os.O_RDWR) as fd:
        own = mapped(fd, 4 * PAGE)
        address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(own)))
        length = ctypes.c_size_t(4 * PAGE)
        equal(libc.mlock(address, length), 0, "mlock")
        own[0:1] = b"y"
        equal(libc.munlock(address, length), 0, "munlock")
        equal(libc.mprotect(address, length, PROT_NONE), 0, "mprotect")
        equal(libc.mprotect(address, length, mmap.PROT_READ | mmap.PROT_WRITE), 0, "mprotect back")
        equal(libc.madvise(address, length, mmap.MADV_DONTNEED), 0, "madvise")
        equal(bytes(own[0:2]), b"yx", "content")
