"""O_TMPFILE: files without a name."""
import errno
import os
import stat

from calls import link_descriptor
from table import check, elsewhere, equal, fails, make, may_be_refused, opened, read, true


def tmpfile(directory=".", flags=os.O_RDWR, mode=0o640):
    with may_be_refused("O_TMPFILE", errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT):
        return os.open(directory, os.O_TMPFILE | flags, mode)


@check()
def nameless_file_is_read_and_written():
    """An O_TMPFILE file has no name and no link, mode as asked for, and keeps what is written."""
    fd = tmpfile()
    os.write(fd, b"content")
    seen = os.fstat(fd)
    equal((seen.st_nlink, seen.st_size, stat.S_IMODE(seen.st_mode)), (0, 7, 0o640), "links, size, mode")
    equal((os.pread(fd, 9, 0), os.listdir(".")), (b"content", []), "content and names")
    os.ftruncate(fd, 3)
    os.fchmod(fd, 0o600)
    equal((os.fstat(fd).st_size, stat.S_IMODE(os.fstat(fd).st_mode)), (3, 0o600), "size and mode after a change")
    with opened(f"/proc/self/fd/{fd}") as again:
        equal(os.read(again, 9), b"con", "content by /proc")


@check()
def nameless_file_is_given_a_name():
    """linkat gives an O_TMPFILE file a name, once it is whole; a name that is taken is EEXIST."""
    make("taken")
    fd = tmpfile()
    os.write(fd, b"content")
    fails(errno.EEXIST, link_descriptor, fd, "taken")
    link_descriptor(fd, "f")
    equal((read("f"), os.stat("f").st_nlink, os.stat("f").st_ino), (b"content", 1, os.fstat(fd).st_ino), "the file")
    link_descriptor(fd, "g")
    os.write(fd, b" more")
    equal((os.stat("f").st_nlink, read("g")), (2, b"content more"), "after a second link")
    equal(sorted(os.listdir(".")), ["f", "g", "taken"], "names")


@check()
def nameless_file_may_be_for_good():
    """With O_EXCL an O_TMPFILE file can never be given a name."""
    fd = tmpfile(flags=os.O_RDWR | os.O_EXCL)
    fails(errno.ENOENT, link_descriptor, fd, "f")
    equal(os.listdir("."), [], "names")


@check(before=lambda: os.mkdir("d"))
def nameless_files_have_their_refusals():
    """O_TMPFILE for reading is EINVAL, in a file ENOTDIR, in nothing ENOENT; many have each their own content."""
    make("f")
    fails(errno.EINVAL, os.open, ".", os.O_TMPFILE | os.O_RDONLY)
    fails(errno.ENOTDIR, os.open, "f", os.O_TMPFILE | os.O_RDWR)
    fails(errno.ENOENT, os.open, "none", os.O_TMPFILE | os.O_RDWR)
    fds = [tmpfile("d") for _ in range(50)]
    for number, fd in enumerate(fds):
        os.write(fd, b"%d" % number)
    equal([int(os.pread(fd, 9, 0)) for fd in fds], list(range(50)), "contents")
    true(len({os.fstat(fd).st_ino for fd in fds}) == 50, "inode numbers are not distinct")
    equal(os.listdir("d"), [], "names")
    elsewhere(lambda: os.rmdir("d"))
