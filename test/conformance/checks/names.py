"""What names and paths may be."""
import errno
import os
import unicodedata

from table import check, equal, fails, make, opened, read

LONG = b"n" * 255


@check()
def longest_names():
    """Names of 255 bytes work in every call, of 256 are ENAMETOOLONG in every call."""
    make(LONG, b"x")
    os.rename(LONG, b"r" * 255)
    os.link(b"r" * 255, LONG)
    os.mkdir(b"d" * 255)
    os.symlink(b"n" * 255, b"s" * 255)
    equal(read(b"s" * 255), b"x", "content through a link")
    equal(sorted(map(len, os.listdir(b"."))), [255] * 4, "lengths of names")
    more = b"m" * 256
    for call in (os.stat, os.listdir, os.unlink, os.rmdir, os.mkdir, os.mkfifo, os.readlink):
        fails(errno.ENAMETOOLONG, call, more)
    fails(errno.ENAMETOOLONG, os.open, more, os.O_WRONLY | os.O_CREAT)
    fails(errno.ENAMETOOLONG, os.symlink, b"x", more)
    for call in (os.rename, os.link):
        fails(errno.ENAMETOOLONG, call, LONG, more)
        fails(errno.ENAMETOOLONG, call, more, b"x")
    for call in (os.stat, os.mkdir):
        fails(errno.ENAMETOOLONG, call, more + b"/x")


def old_names():
    for name in (b"not-utf8-\xff\xfe", b"new\nline", b" spaces ", b"\xc3\x28"):
        make(name, name)


@check(before=old_names)
def names_are_bytes():
    """Names are bytes: newlines, controls, spaces, and what is no UTF-8 are kept, whoever made them."""
    for name in (b"not-utf8-\xff\xfe", b"new\nline", b" spaces ", b"\xc3\x28"):
        with opened(name, os.O_WRONLY | os.O_APPEND) as fd:
            os.write(fd, b"+")
        equal(read(name), name + b"+", f"content of {name}")
        os.rename(name, name + b"\x80")
    names = {bytes([first, second]) for first in range(1, 256) for second in (0xFF, 0x0A, 0x20) if first != 47}
    os.mkdir("d")
    for name in names:
        make(b"d/" + name, name)
    equal(set(os.listdir(b"d")), names, "names")
    for name in names:
        equal(read(b"d/" + name), name, f"content of {name}")
        os.unlink(b"d/" + name)
    equal(sorted(os.listdir(b".")), sorted([b"not-utf8-\xff\xfe\x80", b"new\nline\x80", b" spaces \x80", b"\xc3\x28\x80", b"d"]), "renamed names")


@check()
def names_that_look_alike_differ():
    """Composed and decomposed accents, case and trailing spaces and dots make different names."""
    names = [unicodedata.normalize(form, "é") for form in ("NFC", "NFD")] + ["e", "E", "e ", "e.", " e"]
    for name in names:
        make(name, name.encode())
    equal(sorted(os.listdir(".")), sorted(names), "names")
    for name in names:
        equal(read(name), name.encode(), "content")


@check()
def names_that_mean_something_elsewhere():
    """Names that mean something to a shell, or to other overlays, are names here."""
    names = ["-rf", "...", "....", "~", "*", "$(touch x)", ".wh.f", ".wh..wh..opq", ".fuse_hidden0001", ".nfs01", "con", "a:b", "a\\b", "#x#", "\x7f"]
    for name in names:
        make(name, name.encode())
    equal(sorted(os.listdir(".")), sorted(names), "names")
    make("f", b"f")
    os.unlink(".wh.f")
    equal(read("f"), b"f", "content of a name whose whiteout elsewhere was made and unlinked")


@check()
def longest_paths():
    """A path of 4,095 bytes works, one more is ENAMETOOLONG."""
    os.mkdir("d")
    make("d/f", b"x")
    path = "./" * 2045 + "d///f"
    equal(len(path), 4095, "length of the path")
    equal(read(path), b"x", "content")
    fails(errno.ENAMETOOLONG, os.stat, "./" + path[1:])
    fails(errno.ENAMETOOLONG, os.open, "/" + path, os.O_RDONLY)


@check()
def deeper_than_any_path():
    """A tree deeper than a path can say is made, walked, written and removed by steps."""
    name = "d" * 200
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    at = os.dup(here)
    for _ in range(60):
        os.mkdir(name, dir_fd=at)
        deeper = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
        os.close(at)
        at = deeper
    with opened("f", os.O_RDWR | os.O_CREAT, dir_fd=at) as fd:
        os.write(fd, b"deep")
    os.rename("f", "g", src_dir_fd=at, dst_dir_fd=at)
    os.symlink("g", "s", dir_fd=at)
    with opened("s", dir_fd=at) as fd:
        equal(os.read(fd, 9), b"deep", "content")
    os.fchdir(at)
    equal(sorted(os.listdir(".")), ["g", "s"], "names at the bottom")
    for depth in range(60):
        for entry in os.listdir("."):
            os.rmdir(entry) if entry == name else os.unlink(entry)
        os.chdir("..")
    os.rmdir(name)
    os.fchdir(here)
    equal(os.listdir("."), [], "names left")


@check()
def paths_through_what_is_no_directory():
    """A file in the middle of a path is ENOTDIR, a missing name ENOENT, an empty path ENOENT."""
    make("f")
    os.mkdir("d")
    os.symlink("f", "to-file")
    os.symlink("nowhere", "dangling")
    for call in (os.stat, os.listdir, os.unlink, os.mkdir, os.rmdir):
        fails(errno.ENOTDIR, call, "f/x")
        fails(errno.ENOTDIR, call, "to-file/x")
        fails(errno.ENOENT, call, "none/x")
        fails(errno.ENOENT, call, "dangling/x")
        fails(errno.ENOENT, call, "")
    fails(errno.ENOENT, os.stat, "none/../f")
    fails(errno.ENOTDIR, os.stat, "f/../f")
    equal(os.stat("d/../d/./../f").st_ino, os.stat("f").st_ino, "a path with dots")


@check(before=lambda: [make(f"old{n}") for n in range(50)] and None)
def missing_names_are_missed_once_made():
    """A name that was looked for in vain is found as soon as it is made, and missed as soon as it is gone."""
    for number in range(50):
        fails(errno.ENOENT, os.stat, f"new{number}")
        make(f"new{number}", b"x")
        equal(os.stat(f"new{number}").st_size, 1, "size")
        os.unlink(f"old{number}")
        fails(errno.ENOENT, os.stat, f"old{number}")
        os.mkdir(f"old{number}")
        os.rename(f"old{number}", f"dir{number}")
        fails(errno.ENOENT, os.stat, f"old{number}/x")
    equal(len(os.listdir(".")), 100, "names")
