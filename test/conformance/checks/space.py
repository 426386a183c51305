"""Running out of space. For a small filesystem: each of these fills it."""
import errno
import mmap
import os
import signal

from calls import fallocate
from table import Process, check, equal, fails, make, opened, read, true, until

PIECE = b"x" * 65536
PLENTY = 2**28


def fill(fd):
    """Writes until there is no more space; the number of bytes written."""
    done = 0
    while True:
        try:
            done += os.write(fd, PIECE)
        except OSError as error:
            equal(error.errno, errno.ENOSPC, "errno")
            return done
        true(done < PLENTY, "this filesystem is not small")


def refill(name):
    """Space comes back when the kernel has forgotten an unlinked file, which may be a moment later."""
    with opened(name, os.O_WRONLY | os.O_CREAT) as fd:
        return fill(fd)


def old_file():
    make("old", b"from before")


@check(before=old_file)
def full_filesystem_is_enospc():
    """Writing past the space is ENOSPC; what was written before stays whole, and reading goes on."""
    with opened("f", os.O_RDWR | os.O_CREAT) as fd:
        done = fill(fd)
        true(done > 2**20, f"only {done} bytes could be written")
        equal(os.fstat(fd).st_size, done, "size")
        for offset in range(0, done - 65536, 2**20):
            equal(os.pread(fd, 65536, offset) == PIECE, True, f"content at {offset}")
        fails(errno.ENOSPC, os.write, fd, PIECE)
    equal(read("old"), b"from before", "a file from before")
    equal(os.listdir(".") != [], True, "names")
    os.unlink("f")


@check(before=old_file)
def space_comes_back():
    """Space comes back with truncation, and with unlink when the last descriptor is closed."""
    first = refill("f")
    os.truncate("f", 0)
    second = refill("f")
    true(second >= first * 0.95, f"{second} bytes after truncation, {first} before")
    with opened("f"):
        os.unlink("f")
        with opened("g", os.O_WRONLY | os.O_CREAT) as fd:
            true(fill(fd) < first / 2, "space came back while the file was open")
    until(lambda: refill("h") >= first * 0.9, "getting the space back")
    os.unlink("h")


@check(before=old_file)
def full_filesystem_still_deletes_and_renames():
    """On a full filesystem files are renamed, truncated and deleted, ones from before too."""
    refill("f")
    os.rename("f", "g")
    os.chmod("g", 0o600)
    os.unlink("old")
    os.truncate("g", 10)
    make("after", b"x" * 1000)
    equal((read("g"), read("after")), (b"x" * 10, b"x" * 1000), "contents")


@check(before=old_file)
def file_from_before_is_renamed_without_space():
    """A file from before is renamed on a full filesystem."""
    refill("f")
    os.rename("old", "older")
    equal(read("older"), b"from before", "content")


@check()
def too_large_an_allocation_is_enospc():
    """fallocate of more than there is is ENOSPC, and leaves the file usable and its space free."""
    with opened("f", os.O_RDWR | os.O_CREAT) as fd:
        fails(errno.ENOSPC, fallocate, fd, 0, 0, PLENTY)
        os.ftruncate(fd, 0)
        equal(os.write(fd, PIECE), len(PIECE), "bytes written")
    true(refill("g") > 2**20, "the space did not come back")


@check()
def map_without_space_is_sigbus():
    """Storing in a hole of a map that no space is left for is SIGBUS, or fails at msync; the process is told."""

    def run():
        signal.signal(signal.SIGBUS, signal.SIG_DFL)
        with opened("f", os.O_RDWR | os.O_CREAT) as fd:
            os.ftruncate(fd, PLENTY)
            own = mmap.mmap(fd, PLENTY)
            for offset in range(0, PLENTY, mmap.PAGESIZE):
                own[offset] = 1
            own.flush()

    process = Process(run)
    try:
        process.result()
        told = "nothing"
    except AssertionError as error:
        told = str(error)
    true("status 0x7" in told or "OSError" in told, f"the process was told {told}")
    os.unlink("f")


@check(before=lambda: make("old", PIECE * 16))
def failed_write_to_an_old_file_leaves_it():
    """A write to a file from before that finds no space leaves its content."""
    refill("f")
    with opened("old", os.O_RDWR) as fd:
        try:
            os.pwrite(fd, b"Y", 0)
            wanted = b"Y"
        except OSError as error:
            equal(error.errno, errno.ENOSPC, "errno")
            wanted = b"x"
    content = read("old")
    equal((content[:1], content[1:] == (PIECE * 16)[1:]), (wanted, True), "first byte, and the rest")
    os.unlink("f")
    until(lambda: can_write("old"), "writing once space is back")
    equal(read("old")[:1], b"Z", "content after a write")


def can_write(name):
    with opened(name, os.O_WRONLY) as fd:
        try:
            return os.pwrite(fd, b"Z", 0) == 1
        except OSError:
            return False
