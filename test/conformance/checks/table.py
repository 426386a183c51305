"""The table: what a check is, and the words that checks are written in.

A check is a function of a module of this directory, named as a fact. It runs in a process of its own, as whoever runs
the table, in a fresh directory that is its working directory, with umask 022, and passes unless it raises.
`before` is run in that directory earlier: in the lower, before a window opens, where the target wants that.
"""
import contextlib
import errno
import json
import os
import signal
import time
import traceback

CHECKS = {}


class Refused(Exception):
    """The base cannot do what is checked at all: right only if the plain directory refuses the same."""


class Check:
    def __init__(self, run, before, root, group):
        self.name = run.__name__
        self.says = " ".join((run.__doc__ or "").split())
        self.run = run
        self.before = before
        self.root = root
        self.group = group


def check(before=None, root=False):
    """Enters a function into the table. `root`: it acts as several users, or needs root's powers."""

    def enter(run):
        name = run.__name__
        assert name not in CHECKS, f"two checks are named {name}"
        assert run.__doc__, f"{name} does not say what it checks"
        CHECKS[name] = Check(run, before, root, run.__module__)
        return run

    return enter


def shown(value):
    if isinstance(value, int) and not isinstance(value, bool) and value > 4095:
        return f"{value} ({value:#o})" if value < 0o200000 else str(value)
    text = repr(value)
    return text if len(text) < 300 else f"{text[:140]} ... {text[-140:]}"


def equal(got, wanted, what):
    if got != wanted:
        raise AssertionError(f"{what}: {shown(got)}, wanted {shown(wanted)}")


def true(condition, what):
    if not condition:
        raise AssertionError(what)


def name_of(code):
    return errno.errorcode.get(code, str(code))


def fails(codes, call, *args, **named):
    """The call must fail with this errno, or one of these."""
    wanted = codes if isinstance(codes, tuple) else (codes,)
    try:
        got = call(*args, **named)
    except OSError as error:
        if error.errno in wanted:
            return
        got = name_of(error.errno)
    else:
        got = shown(got)
    what = getattr(call, "__name__", "call")
    raise AssertionError(f"{what}{shown(args)}: {got}, wanted {' or '.join(map(name_of, wanted))}")


@contextlib.contextmanager
def may_be_refused(what, *codes):
    """Around the first use of something that not every filesystem has."""
    try:
        yield
    except OSError as error:
        if error.errno in codes:
            raise Refused(f"{what}: {name_of(error.errno)}") from error
        raise


def make(path, data=b"", mode=0o644):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        write(fd, data)
        os.fchmod(fd, mode)
    finally:
        os.close(fd)


def write(fd, data):
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]


def read(path):
    with open(path, "rb") as file:
        return file.read()


@contextlib.contextmanager
def opened(path, flags=os.O_RDONLY, mode=0o644, **named):
    fd = os.open(path, flags, mode, **named)
    try:
        yield fd
    finally:
        os.close(fd)


class Process:
    """A forked process that runs `body`; `result` waits, raises what it raised, and gives what it returned."""

    def __init__(self, body, *args):
        self.reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.reading)
            try:
                told = {"value": body(*args)}
            except Refused as refused:
                told = {"refused": str(refused)}
            except BaseException as error:  # noqa: B902: whatever it was belongs to the parent
                told = {"error": f"in a process: {describe(error)}"}
            os.write(writing, json.dumps(told).encode())
            os._exit(0)
        os.close(writing)

    def status(self):
        """How it ended, as `os.waitpid` has it; for processes that are expected to die."""
        os.close(self.reading)
        return os.waitpid(self.pid, 0)[1]

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        return self.status()

    def result(self):
        told = b""
        while piece := os.read(self.reading, 65536):
            told += piece
        status = self.status()
        true(told, f"a process ended with status {status:#x}")
        answer = json.loads(told)
        if "refused" in answer:
            raise Refused(answer["refused"])
        true("error" not in answer, answer.get("error"))
        return answer["value"]


def describe(error):
    at = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in at if not frame.filename.endswith("table.py")] or at
    place = f"{os.path.basename(own[-1].filename)}:{own[-1].lineno}" if own else "?"
    text = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
    return f"{text} ({place})"


def elsewhere(body, *args):
    """The result of `body` in another process."""
    return Process(body, *args).result()


def become(uid, gid=None, groups=()):
    os.setgroups(list(groups))
    gid = uid if gid is None else gid
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def as_user(uid, body, gid=None, groups=()):
    """The result of `body` in a process of that user, which has no capability."""

    def run():
        become(uid, gid, groups)
        return body()

    return elsewhere(run)


class Gate:
    """Holds processes back until it is opened by another."""

    def __init__(self):
        self.reading, self.writing = os.pipe()

    def open(self, times=1):
        os.write(self.writing, b"x" * times)

    def wait(self):
        os.read(self.reading, 1)


def until(condition, what, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        true(time.monotonic() < end, f"{what} did not come true within {seconds} s")
        time.sleep(0.005)


def tick():
    """Lets the clock that the kernel stamps files with go on: it may stand for a timer tick, 10 ms at the most."""
    time.sleep(0.012)
