"""Running programs that stand here."""
import ctypes
import errno
import os
import re
import shutil
import signal
import stat
import subprocess
import time

from table import Process, as_user, check, equal, fails, make, opened, true, until

PROGRAM = os.path.realpath(shutil.which("sleep"))
ID = os.path.realpath(shutil.which("id"))


def output(*argv, **named):
    return subprocess.run(argv, stdout=subprocess.PIPE, check=True, **named).stdout.decode().strip()


def old_programs():
    shutil.copy(ID, "id")
    make("script", b"#!/bin/sh\necho script $0 $@\n", 0o755)


@check(before=old_programs)
def programs_run():
    """A program and a script run from here, ones from before and copies made now, after a rename too."""
    shutil.copy(ID, "new-id")
    make("new-script", b"#!/bin/sh\necho script $0 $@\n", 0o755)
    for program, script in (("id", "script"), ("new-id", "new-script")):
        equal(output(f"./{program}", "-u"), str(os.getuid()), program)
        equal(output(f"./{script}", "a"), f"script ./{script} a", script)
        os.rename(program, "renamed")
        equal(output("./renamed", "-u"), str(os.getuid()), f"{program} renamed")


@check()
def interpreter_stands_here_too():
    """A script whose interpreter is a program in this directory runs."""
    shutil.copy(ID, "inter")
    make("script", f"#!{os.getcwd()}/inter -u\n".encode(), 0o755)
    # id takes the script's name for a user's, and says that there is none: so it ran.
    ran = subprocess.run(["./script"], capture_output=True)
    true(b"script" in ran.stderr, f"the interpreter said {ran.stderr}")


@check(before=lambda: make("old", b"#!/bin/sh\nexit 7\n", 0o644))
def running_needs_the_bit():
    """Without an execute bit running is EACCES, for root too; with it at once possible; without a format ENOEXEC."""
    fails(errno.EACCES, os.execv, "./old", ["old"])
    os.chmod("old", 0o755)
    equal(subprocess.run(["./old"]).returncode, 7, "exit code")
    make("text", b"no program\n", 0o755)
    fails(errno.ENOEXEC, os.execv, "./text", ["text"])
    os.mkdir("d")
    fails(errno.EACCES, os.execv, "./d", ["d"])
    fails(errno.ENOENT, os.execv, "./none", ["none"])
    make("lost", b"#!/no/such/interpreter\n", 0o755)
    fails(errno.ENOENT, os.execv, "./lost", ["lost"])


def running(path):
    process = subprocess.Popen([path, "60"])
    until(lambda: os.readlink(f"/proc/{process.pid}/exe") == os.path.realpath(path), f"{path} running")
    return process


@check(before=lambda: shutil.copy(PROGRAM, "old"))
def running_program_is_not_written():
    """Opening a running program for writing, and truncating it, is ETXTBSY until it ends."""
    shutil.copy(PROGRAM, "new")
    for name in ("old", "new"):
        process = running(f"./{name}")
        try:
            fails(errno.ETXTBSY, os.open, name, os.O_WRONLY)
            fails(errno.ETXTBSY, os.truncate, name, 0)
        finally:
            process.kill()
            process.wait()
        os.close(os.open(name, os.O_WRONLY | os.O_APPEND))


@check(before=lambda: shutil.copy(PROGRAM, "old"))
def file_open_for_writing_is_not_run():
    """Running a program that someone has open for writing is ETXTBSY until it is closed."""
    shutil.copy(PROGRAM, "new")
    for name in ("old", "new"):
        with opened(name, os.O_WRONLY | os.O_APPEND):
            fails(errno.ETXTBSY, os.execv, f"./{name}", [name])
        equal(subprocess.run([f"./{name}", "0"]).returncode, 0, f"exit code of {name}")


@check(before=lambda: shutil.copy(PROGRAM, "old"))
def running_program_is_replaced():
    """A running program is unlinked or renamed over and goes on; its /proc/exe says so, and can be run."""
    shutil.copy(PROGRAM, "new")
    for name in ("old", "new"):
        process = running(f"./{name}")
        try:
            make("next", b"#!/bin/sh\nexit 3\n", 0o755)
            os.rename("next", name)
            equal(subprocess.run([f"./{name}"]).returncode, 3, "exit code of what replaced it")
            true(os.readlink(f"/proc/{process.pid}/exe").endswith(" (deleted)"), "its name in /proc")
            equal(subprocess.run([f"/proc/{process.pid}/exe", "0"]).returncode, 0, "exit code of the old one")
            equal(process.poll(), None, "whether it ended")
        finally:
            process.kill()
            process.wait()


@check()
def programs_run_by_descriptor():
    """fexecve runs an open program, and one without a name."""
    shutil.copy(ID, "id")
    with opened("id") as fd:
        os.unlink("id")

        def run():
            null = os.open("/dev/null", os.O_WRONLY)
            os.dup2(null, 1)
            os.execve(fd, ["id"], {})

        equal(Process(run).status(), 0, "exit status")


@check()
def libraries_are_loaded():
    """A shared library that stands here is loaded and called."""
    with open("/proc/self/maps") as maps:
        source = next(match for line in maps if (match := re.search(r"/\S*/libc[.-]\S*so\S*", line)))[0]
    wanted = os.path.join(os.path.dirname(source), "libm.so.6")
    shutil.copy(wanted if os.path.exists(wanted) else source, "library.so")
    loaded = ctypes.CDLL(os.path.abspath("library.so"))
    with open("/proc/self/maps") as maps:
        true(any("library.so" in line and "r-xp" in line for line in maps), "not mapped for execution")
    if os.path.exists(wanted):
        loaded.cos.restype, loaded.cos.argtypes = ctypes.c_double, [ctypes.c_double]
        equal(loaded.cos(0.0), 1.0, "cos(0)")


@check(root=True, before=lambda: os.getuid() or make_setuid("old"))
def setuid_programs_change_the_user():
    """A setuid program runs as its owner, and a setgid one as its group, where the mount allows it."""
    make_setuid("new")
    allowed = not os.statvfs(".").f_flag & os.ST_NOSUID
    for name in ("old", "new"):
        ids = as_user(1002, lambda: [output(f"./{name}", "-u"), output(f"./{name}", "-g")])
        equal(ids, ["1003", "1004"] if allowed else ["1002", "1002"], f"user and group of {name}")
    return "mounted nosuid" if not allowed else None


def make_setuid(name):
    shutil.copy(ID, name)
    os.chown(name, 1003, 1004)
    os.chmod(name, 0o6755)


@check()
def exit_by_signal_leaves_the_file():
    """A process killed in the middle of writes leaves what it had written, and no lock."""

    def run():
        with opened("f", os.O_WRONLY | os.O_CREAT | os.O_APPEND) as fd:
            while True:
                os.write(fd, b"0123456789abcdef")

    process = Process(run)
    until(lambda: os.path.exists("f") and os.stat("f").st_size > 16_000, "writing")
    equal(process.kill(), signal.SIGKILL, "status")
    with open("f", "rb") as file:
        content = file.read()
    equal(len(content) % 16, 0, "bytes of a torn write")
    true(content == b"0123456789abcdef" * (len(content) // 16), "other content")
    time.sleep(0)
    equal(stat.S_IMODE(os.stat("f").st_mode), 0o644, "mode")
