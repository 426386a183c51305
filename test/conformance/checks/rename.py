"""rename(2) and its flags."""
import errno
import os
import stat

from calls import RENAME_EXCHANGE, RENAME_NOREPLACE, RENAME_WHITEOUT, renameat2
from table import Gate, Process, check, equal, fails, make, may_be_refused, opened, read, tick, true


def old_names():
    make("file", b"old file")
    os.mkdir("directory")
    make("directory/inner", b"inner")


@check(before=old_names)
def noreplace_refuses_what_is_there():
    """RENAME_NOREPLACE is EEXIST where a name is, and a rename where none is."""
    make("new", b"new")
    fails(errno.EEXIST, renameat2, "new", "file", RENAME_NOREPLACE)
    fails(errno.EEXIST, renameat2, "new", "directory", RENAME_NOREPLACE)
    equal((read("new"), read("file")), (b"new", b"old file"), "contents")
    renameat2("file", "free", RENAME_NOREPLACE)
    equal((read("free"), os.path.exists("file")), (b"old file", False), "renamed")
    renameat2("new", "file", RENAME_NOREPLACE)
    equal(read("file"), b"new", "over a name that is free again")


@check(before=old_names)
def exchange_swaps_two_names():
    """RENAME_EXCHANGE swaps files, and a file with a directory; each keeps its inode number."""
    make("new", b"new")
    inos = {name: os.stat(name).st_ino for name in ("new", "file", "directory")}
    renameat2("new", "file", RENAME_EXCHANGE)
    equal((read("new"), read("file")), (b"old file", b"new"), "two files")
    renameat2("file", "directory", RENAME_EXCHANGE)
    equal((read("file/inner"), read("directory")), (b"inner", b"new"), "a file and a directory")
    equal([os.stat(n).st_ino for n in ("directory", "new", "file")], list(inos.values()), "inode numbers")
    equal(sorted(os.listdir(".")), ["directory", "file", "new"], "names")


@check()
def exchange_has_its_refusals():
    """RENAME_EXCHANGE with a name that is free is ENOENT, with a directory above EINVAL, with NOREPLACE EINVAL."""
    os.makedirs("a/b")
    make("f")
    fails(errno.ENOENT, renameat2, "f", "none", RENAME_EXCHANGE)
    fails(errno.EINVAL, renameat2, "a", "a/b", RENAME_EXCHANGE)
    fails((errno.EINVAL, errno.ENOTEMPTY), renameat2, "a/b", "a", RENAME_EXCHANGE)
    fails(errno.EINVAL, renameat2, "f", "a", RENAME_EXCHANGE | RENAME_NOREPLACE)
    fails(errno.EINVAL, renameat2, "f", "g", 1 << 10)


@check(before=old_names)
def whiteout_is_left_behind():
    """RENAME_WHITEOUT leaves a character device 0/0 under the old name."""
    make("new", b"new")
    for name, content in (("new", b"new"), ("file", b"old file")):
        with may_be_refused("RENAME_WHITEOUT", errno.EINVAL, errno.EPERM):
            renameat2(name, "moved", RENAME_WHITEOUT)
        seen = os.lstat(name)
        equal((stat.S_ISCHR(seen.st_mode), seen.st_rdev), (True, 0), f"what is left of {name}")
        equal(read("moved"), content, "content")
        os.unlink(name)
        os.unlink("moved")
    equal(os.listdir("."), ["directory"], "names")
    fails(errno.EINVAL, renameat2, "directory", "x", RENAME_WHITEOUT | RENAME_EXCHANGE)


@check()
def rename_has_its_refusals():
    """rename of nothing is ENOENT, into nothing ENOENT, into a file ENOTDIR, to itself nothing."""
    make("f", b"x")
    fails(errno.ENOENT, os.rename, "none", "g")
    fails(errno.ENOENT, os.rename, "f", "none/g")
    fails(errno.ENOTDIR, os.rename, "f", "f/g")
    fails(errno.ENOENT, os.rename, "f", "")
    os.rename("f", "f")
    os.rename("f", "./f")
    equal((os.listdir("."), read("f")), (["f"], b"x"), "names and content")


@check(before=old_names)
def rename_keeps_the_inode():
    """A renamed file or directory keeps inode number, mtime and mode; the names change hands at once."""
    for name in ("file", "directory"):
        first = os.stat(name)
        os.rename(name, "moved")
        second = os.stat("moved")
        for field in ("st_ino", "st_mode", "st_nlink", "st_mtime_ns"):
            equal(getattr(second, field), getattr(first, field), f"{field} of {name}")
        fails(errno.ENOENT, os.stat, name)
        os.rename("moved", name)
    equal((read("file"), read("directory/inner")), (b"old file", b"inner"), "contents")


@check(before=old_names)
def rename_stamps_the_parents():
    """rename changes mtime and ctime of both parents, and the ctime of what was renamed."""
    os.mkdir("other")
    tick()
    first = [os.stat(name) for name in (".", "other", "file")]
    os.rename("file", "other/file")
    second = [os.stat(name) for name in (".", "other", "other/file")]
    for index in (0, 1):
        true(second[index].st_mtime_ns > first[index].st_mtime_ns, f"mtime of parent {index} stood still")
        true(second[index].st_ctime_ns > first[index].st_ctime_ns, f"ctime of parent {index} stood still")
    true(second[2].st_ctime_ns > first[2].st_ctime_ns, "ctime of the file stood still")
    equal(second[2].st_mtime_ns, first[2].st_mtime_ns, "mtime of the file")


@check(before=old_names)
def moved_and_back_is_the_same():
    """A file moved through three directories, written on the way, and back, has what was written."""
    os.makedirs("x/y")
    os.rename("file", "x/file")
    with opened("x/file", os.O_WRONLY | os.O_APPEND) as fd:
        os.write(fd, b" one")
        os.rename("x/file", "x/y/file")
        os.write(fd, b" two")
        os.rename("x/y/file", "directory/inner")
        os.write(fd, b" three")
    os.rename("directory/inner", "file")
    equal((read("file"), os.listdir("directory"), os.listdir("x/y")), (b"old file one two three", [], []), "all")


@check(before=old_names)
def replacing_is_never_seen_half():
    """Readers of a name that is replaced by rename a few hundred times always find one whole content."""
    going, stop = Gate(), Gate()
    os.set_blocking(stop.reading, False)

    def reader():
        going.open()
        seen = 0
        while True:
            try:
                stop.wait()
                return seen
            except BlockingIOError:
                pass
            content = read("file")
            if content != b"old file":
                equal((len(content), content), (40_000, content[:1] * 40_000), "content")
                seen += 1

    process = Process(reader)
    going.wait()
    for turn in range(200):
        make("next", bytes([65 + turn % 26]) * 40_000)
        os.rename("next", "file")
    stop.open()
    true(process.result() > 0, "the reader saw none of them")


@check()
def names_may_differ_in_case_only():
    """Names that differ in case are different, and a rename may change only that."""
    make("name", b"lower")
    make("NAME", b"upper")
    equal((read("name"), read("NAME"), len(os.listdir("."))), (b"lower", b"upper", 2), "contents")
    os.unlink("NAME")
    os.rename("name", "Name")
    equal(os.listdir("."), ["Name"], "names")


@check()
def file_swapped_under_two_directories():
    """Two processes that rename files to and fro between two directories lose none."""
    os.mkdir("a")
    os.mkdir("b")
    for number in range(10):
        make(f"a/{number}", str(number).encode())

    def run(source, target):
        for _ in range(60):
            for name in os.listdir(source):
                try:
                    os.rename(f"{source}/{name}", f"{target}/{name}")
                except FileNotFoundError:
                    pass

    for process in [Process(run, "a", "b"), Process(run, "b", "a")]:
        process.result()
    names = os.listdir("a") + os.listdir("b")
    equal(sorted(map(int, names)), list(range(10)), "names")
    for directory in "ab":
        for name in os.listdir(directory):
            equal(read(f"{directory}/{name}"), name.encode(), "content")
