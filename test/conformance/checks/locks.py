"""Locks of the three kinds, and leases."""
import errno
import fcntl
import os
import signal
import struct
import time

from table import Gate, Process, check, elsewhere, equal, fails, make, may_be_refused, opened, read, true


def old_file():
    make("f", b"0123456789")


def posix_lock(fd, kind, start=0, length=0, command=fcntl.F_SETLK):
    """A record lock; with an F_OFD_ command, one of the open file description."""
    packed = struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0)
    answer = fcntl.fcntl(fd, command, packed)
    kind, _, start, length, pid = struct.unpack("hhqqi4x", answer)
    return kind, start, length, pid


BUSY = (errno.EAGAIN, errno.EACCES)


def other_may(act):
    """Whether another process, with a descriptor of its own, gets what it tries without waiting."""

    def run():
        with opened("f", os.O_RDWR) as fd:
            try:
                act(fd)
            except OSError as error:
                true(error.errno in BUSY, f"the lock failed with {errno.errorcode[error.errno]}")
                return False
            return True

    return elsewhere(run)


def flock_may(kind):
    return other_may(lambda fd: fcntl.flock(fd, kind | fcntl.LOCK_NB))


@check(before=old_file)
def flock_shuts_others_out():
    """flock: exclusive keeps others out, shared lets shared in, and an upgrade and unlock count at once."""
    with opened("f") as fd:
        fcntl.flock(fd, fcntl.LOCK_SH)
        equal((flock_may(fcntl.LOCK_SH), flock_may(fcntl.LOCK_EX)), (True, False), "beside a shared lock")
        fcntl.flock(fd, fcntl.LOCK_EX)
        equal(flock_may(fcntl.LOCK_SH), False, "beside an exclusive lock")
        fcntl.flock(fd, fcntl.LOCK_UN)
        equal(flock_may(fcntl.LOCK_EX), True, "after unlocking")


@check(before=old_file)
def flock_belongs_to_the_open_file():
    """flock goes with the open file: duplicates and children share it, the last close ends it."""
    fd = os.open("f", os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    twin = os.dup(fd)
    os.close(fd)
    equal(flock_may(fcntl.LOCK_EX), False, "with a duplicate open")
    elsewhere(lambda: os.close(twin))
    equal(flock_may(fcntl.LOCK_EX), False, "after a child closed its own")
    with opened("f") as second:
        fails(BUSY, fcntl.flock, second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(twin)
    equal(flock_may(fcntl.LOCK_EX), True, "after the last close")


@check(before=old_file)
def locks_stay_across_changes_of_the_file():
    """Each kind of lock holds while the file is first written, renamed, linked and truncated."""
    kinds = {
        "flock": (lambda fd: fcntl.flock(fd, fcntl.LOCK_EX), lambda: flock_may(fcntl.LOCK_SH)),
        "posix": (
            lambda fd: posix_lock(fd, fcntl.F_WRLCK, 0, 4),
            lambda: other_may(lambda fd: posix_lock(fd, fcntl.F_RDLCK, 0, 4)),
        ),
        "ofd": (
            lambda fd: posix_lock(fd, fcntl.F_WRLCK, 20, 4, fcntl.F_OFD_SETLK),
            lambda: other_may(lambda fd: posix_lock(fd, fcntl.F_RDLCK, 20, 4)),
        ),
    }

    def change():
        with opened("f", os.O_WRONLY) as own:
            os.write(own, b"changed")
        os.rename("f", "g")
        os.link("g", "f")
        os.chmod("f", 0o666)
        os.truncate("f", 3)

    held = []
    for lock, _ in kinds.values():
        held.append(os.open("f", os.O_RDWR))
        lock(held[-1])
    elsewhere(change)
    for name, (_, another) in kinds.items():
        equal(another(), False, f"another's {name} lock afterwards")
    for fd in held:
        os.close(fd)
    for name, (_, another) in kinds.items():
        equal(another(), True, f"another's {name} lock after closing")


@check(before=old_file)
def record_locks_have_ranges():
    """fcntl locks of ranges conflict where they overlap, are split and joined, and F_GETLK names the holder."""
    with opened("f", os.O_RDWR) as fd:
        posix_lock(fd, fcntl.F_WRLCK, 100, 100)
        may = lambda kind, start, length: other_may(lambda own: posix_lock(own, kind, start, length))  # noqa: E731
        equal((may(fcntl.F_RDLCK, 0, 100), may(fcntl.F_RDLCK, 199, 1)), (True, False), "before, and at the last byte")
        posix_lock(fd, fcntl.F_UNLCK, 140, 10)
        equal((may(fcntl.F_WRLCK, 140, 10), may(fcntl.F_WRLCK, 139, 1)), (True, False), "in the middle, and beside it")
        posix_lock(fd, fcntl.F_RDLCK, 150, 50)
        equal((may(fcntl.F_RDLCK, 150, 50), may(fcntl.F_WRLCK, 150, 50)), (True, False), "beside a lock for reading")
        pid = os.getpid()

        def ask():
            with opened("f", os.O_RDWR) as own:
                return posix_lock(own, fcntl.F_WRLCK, 0, 0, fcntl.F_GETLK)

        equal(elsewhere(ask), [fcntl.F_WRLCK, 100, 40, pid], "what F_GETLK says")
        posix_lock(fd, fcntl.F_WRLCK, 1000, 0)
        equal(may(fcntl.F_WRLCK, 2**40, 1), False, "far behind a lock to the end")


@check(before=old_file)
def record_locks_belong_to_the_process():
    """fcntl locks go with the process: no child inherits them, and any close of the file ends them."""
    with opened("f", os.O_RDWR) as fd:
        posix_lock(fd, fcntl.F_WRLCK)
        fails(BUSY, elsewhere_lock, fd)
        with opened("f", os.O_RDWR) as second:
            posix_lock(second, fcntl.F_WRLCK)
        equal(other_may(lambda own: posix_lock(own, fcntl.F_WRLCK)), True, "after a close of another descriptor")
    with opened("f") as fd:
        fails(errno.EBADF, posix_lock, fd, fcntl.F_WRLCK)


def elsewhere_lock(fd):
    """A child's lock through the parent's descriptor."""

    def run():
        try:
            posix_lock(fd, fcntl.F_WRLCK)
        except OSError as error:
            return error.errno

    code = elsewhere(run)
    if code:
        raise OSError(code, os.strerror(code))


@check(before=old_file)
def descriptions_have_their_own_locks():
    """OFD locks belong to the open file: they conflict within a process, and with fcntl's, and outlive other closes."""
    ofd = fcntl.F_OFD_SETLK
    with opened("f", os.O_RDWR) as fd:
        posix_lock(fd, fcntl.F_WRLCK, 0, 10, ofd)
        with opened("f", os.O_RDWR) as second:
            fails(BUSY, posix_lock, second, fcntl.F_WRLCK, 5, 10, ofd)
            fails(BUSY, posix_lock, second, fcntl.F_RDLCK, 0, 10)
            posix_lock(second, fcntl.F_WRLCK, 10, 10, ofd)
        equal(other_may(lambda own: posix_lock(own, fcntl.F_WRLCK, 0, 10)), False, "after another descriptor's close")
        equal(other_may(lambda own: posix_lock(own, fcntl.F_WRLCK, 10, 10)), True, "where that one's was")
        elsewhere(lambda: posix_lock(fd, fcntl.F_UNLCK, 0, 0, ofd) and None)
        equal(other_may(lambda own: posix_lock(own, fcntl.F_WRLCK)), True, "after a child unlocked it")


@check(before=old_file)
def waiting_for_a_lock_ends_with_it():
    """A process that waits for a lock of any kind gets it when the holder lets go, or is killed."""
    waits = (
        lambda fd: fcntl.flock(fd, fcntl.LOCK_EX),
        lambda fd: posix_lock(fd, fcntl.F_WRLCK, 0, 0, fcntl.F_SETLKW),
        lambda fd: posix_lock(fd, fcntl.F_WRLCK, 0, 0, fcntl.F_OFD_SETLKW),
    )
    for number, wait in enumerate(waits):
        for ending in ("unlocked", "killed"):
            held, going = Gate(), Gate()

            def holder():
                with opened("f", os.O_RDWR) as fd:
                    wait(fd)
                    held.open()
                    time.sleep(0.03 if ending == "unlocked" else 60)

            def waiter():
                with opened("f", os.O_RDWR) as fd:
                    going.open()
                    wait(fd)
                    return "got it"

            first = Process(holder)
            held.wait()
            second = Process(waiter)
            going.wait()
            if ending == "killed":
                time.sleep(0.01)
                first.kill()
            equal(second.result(), "got it", f"kind {number}, {ending}")
            if ending == "unlocked":
                first.result()


@check(before=old_file)
def waiting_in_a_circle_is_edeadlk():
    """Two processes that wait for each other's fcntl locks: one gets EDEADLK."""
    one, two = Gate(), Gate()

    def run(mine, other, own_start, wanted):
        with opened("f", os.O_RDWR) as fd:
            posix_lock(fd, fcntl.F_WRLCK, own_start, 1)
            mine.open()
            other.wait()
            try:
                posix_lock(fd, fcntl.F_WRLCK, wanted, 1, fcntl.F_SETLKW)
            except OSError as error:
                return error.errno
            return 0

    answers = [process.result() for process in (Process(run, one, two, 0, 1), Process(run, two, one, 1, 0))]
    equal(sorted(answers), [0, errno.EDEADLK], "answers")


@check(before=old_file)
def locks_of_directories_and_readers():
    """flock works on a directory, and exclusively on a descriptor for reading; a signal ends a wait."""
    os.mkdir("d")
    with opened("d", os.O_RDONLY | os.O_DIRECTORY) as fd, opened("d", os.O_RDONLY | os.O_DIRECTORY) as other:
        fcntl.flock(fd, fcntl.LOCK_EX)
        fails(BUSY, fcntl.flock, other, fcntl.LOCK_SH | fcntl.LOCK_NB)

        def interrupted():
            signal.signal(signal.SIGALRM, raise_timeout)
            signal.setitimer(signal.ITIMER_REAL, 0.03)
            try:
                fcntl.flock(other, fcntl.LOCK_SH)
            except TimeoutError:
                return "interrupted"

        equal(elsewhere(interrupted), "interrupted", "a wait")


def raise_timeout(*_):
    raise TimeoutError


@check(before=old_file)
def counting_under_each_kind_of_lock():
    """Four processes that add to a number in a file under a lock lose nothing, with each kind of lock."""
    kinds = (
        (lambda fd: fcntl.flock(fd, fcntl.LOCK_EX), lambda fd: fcntl.flock(fd, fcntl.LOCK_UN)),
        (lambda fd: fcntl.lockf(fd, fcntl.LOCK_EX), lambda fd: fcntl.lockf(fd, fcntl.LOCK_UN)),
        (
            lambda fd: posix_lock(fd, fcntl.F_WRLCK, 0, 0, fcntl.F_OFD_SETLKW),
            lambda fd: posix_lock(fd, fcntl.F_UNLCK, 0, 0, fcntl.F_OFD_SETLK),
        ),
    )
    for number, (lock, unlock) in enumerate(kinds):
        make(f"count{number}", b"0")

        def run():
            for _ in range(40):
                with opened(f"count{number}", os.O_RDWR) as fd:
                    lock(fd)
                    value = int(os.pread(fd, 20, 0)) + 1
                    os.pwrite(fd, b"%d" % value, 0)
                    unlock(fd)

        for process in [Process(run) for _ in range(4)]:
            process.result()
        equal(read(f"count{number}"), b"160", f"count with kind {number}")


@check(before=old_file)
def lease_is_broken_by_a_writer():
    """A read lease holds until another opens for writing: then its holder gets a signal and lets go."""
    if os.getuid() == 0:
        os.chown("f", os.geteuid(), -1)
    with opened("f") as fd:
        told = []
        signal.signal(signal.SIGIO, lambda *_: told.append(fcntl.fcntl(fd, fcntl.F_GETLEASE)))
        with may_be_refused("F_SETLEASE", errno.EINVAL):
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        equal(fcntl.fcntl(fd, fcntl.F_GETLEASE), fcntl.F_RDLCK, "the lease")

        def writer():
            fails(errno.EAGAIN, os.open, "f", os.O_WRONLY | os.O_NONBLOCK)
            os.close(os.open("f", os.O_WRONLY))

        process = Process(writer)
        end = time.monotonic() + 10
        while not told and time.monotonic() < end:
            time.sleep(0.005)
        true(told, "no signal came")
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        process.result()
