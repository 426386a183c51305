"""Time stamps: what sets them, and to what."""
import errno
import os
import time

from calls import AT_SYMLINK_NOFOLLOW, UTIME_NOW, UTIME_OMIT, statx, utimensat
from table import as_user, check, equal, fails, make, opened, read, tick, true


def old_file():
    make("old", b"content")
    os.utime("old", ns=(1_600_000_000_111_111_111, 1_700_000_000_123_456_789))


def changed(act, path, fields, what):
    """`act` must move these of a path's times forward, and leave the others."""
    first = os.lstat(path)
    tick()
    act()
    second = os.lstat(path)
    for field in ("st_mtime_ns", "st_ctime_ns"):
        before, after = getattr(first, field), getattr(second, field)
        if field in fields:
            true(after > before, f"{what}: {field} of {path} stood still")
            true(abs(after - time.time_ns()) < 5 * 10**9, f"{what}: {field} of {path} is not about now")
        else:
            equal(after, before, f"{what}: {field} of {path}")


MTIME, CTIME = "st_mtime_ns", "st_ctime_ns"


@check(before=old_file)
def times_are_kept_to_the_nanosecond():
    """utimensat sets both times to the nanosecond, before 1970 and after 2038 too."""
    equal(os.stat("old").st_mtime_ns, 1_700_000_000_123_456_789, "time from before")
    make("new")
    for name in ("old", "new"):
        for atime, mtime in ((1, 2), (10**9 * 2**32 + 7, 5_000_000_000_999_999_999), (-(10**9) + 5, -1)):
            os.utime(name, ns=(atime, mtime))
            seen = os.stat(name)
            equal((seen.st_atime_ns, seen.st_mtime_ns), (atime, mtime), name)


@check(before=old_file)
def one_time_is_set_alone():
    """UTIME_OMIT leaves a time, UTIME_NOW sets the clock's."""
    utimensat("old", ((0, UTIME_OMIT), (5, 6)))
    seen = os.stat("old")
    equal((seen.st_atime_ns, seen.st_mtime_ns), (1_600_000_000_111_111_111, 5_000_000_006), "mtime alone")
    utimensat("old", ((7, 8), (0, UTIME_OMIT)))
    seen = os.stat("old")
    equal((seen.st_atime_ns, seen.st_mtime_ns), (7_000_000_008, 5_000_000_006), "atime alone")
    before = time.time_ns() - 20_000_000
    utimensat("old", ((0, UTIME_NOW), (0, UTIME_OMIT)))
    true(before <= os.stat("old").st_atime_ns <= time.time_ns(), "atime is not now")
    equal(os.stat("old").st_mtime_ns, 5_000_000_006, "mtime")
    utimensat("old", None)
    true(before <= os.stat("old").st_mtime_ns <= time.time_ns(), "mtime is not now")
    fails(errno.EINVAL, utimensat, "old", ((0, 10**9), (0, 0)))


@check()
def times_of_links_directories_and_descriptors():
    """A link's own times, a directory's, and those of an open or unlinked file are set."""
    os.mkdir("d")
    make("f")
    os.symlink("f", "s")
    utimensat("s", ((1, 2), (3, 4)), AT_SYMLINK_NOFOLLOW)
    equal(os.lstat("s").st_mtime_ns, 3_000_000_004, "the link")
    true(os.stat("f").st_mtime_ns > 10**18, "the target was changed")
    utimensat("d", ((1, 2), (5, 6)))
    equal(os.stat("d").st_mtime_ns, 5_000_000_006, "the directory")
    with opened("f") as fd:
        os.unlink("f")
        os.utime(fd, ns=(1, 9))
        equal(os.fstat(fd).st_mtime_ns, 9, "the unlinked file")


@check(before=old_file)
def setting_times_changes_ctime():
    """utimensat sets ctime to now."""
    changed(lambda: os.utime("old", ns=(1, os.stat("old").st_mtime_ns)), "old", (CTIME,), "utimensat")


@check(before=old_file)
def writing_stamps_the_file():
    """write, truncate to another size and O_TRUNC change mtime and ctime; reading changes neither."""
    for name in ("old", "new"):
        if name == "new":
            make("new", b"content")
        changed(lambda: read(name), name, (), "read")
        with opened(name, os.O_WRONLY) as fd:
            changed(lambda: os.write(fd, b"x"), name, (MTIME, CTIME), "write")
            changed(lambda: os.write(fd, b""), name, (), "a write of nothing")
            changed(lambda: os.ftruncate(fd, 3), name, (MTIME, CTIME), "ftruncate")
        changed(lambda: os.truncate(name, 5), name, (MTIME, CTIME), "truncate")
        changed(lambda: os.close(os.open(name, os.O_WRONLY | os.O_TRUNC)), name, (MTIME, CTIME), "O_TRUNC")
        changed(lambda: os.close(os.open(name, os.O_WRONLY | os.O_TRUNC)), name, (MTIME, CTIME), "O_TRUNC when empty")


@check(before=old_file)
def attributes_stamp_ctime_alone():
    """chmod, chown, link, unlink of another name and rename change ctime, and not mtime."""
    for name in ("old", "new"):
        if name == "new":
            make("new")
        changed(lambda: os.chmod(name, 0o600), name, (CTIME,), "chmod")
        changed(lambda: os.chown(name, -1, os.getgid()), name, (CTIME,), "chown")
        changed(lambda: os.link(name, "second"), name, (CTIME,), "link")
        changed(lambda: os.unlink("second"), name, (CTIME,), "unlink")
        first = os.stat(name)
        tick()
        os.rename(name, "other")
        true(os.stat("other").st_ctime_ns > first.st_ctime_ns, "rename: ctime stood still")
        equal(os.stat("other").st_mtime_ns, first.st_mtime_ns, "rename: mtime")
        os.unlink("other")


def old_directory():
    os.mkdir("d")
    make("d/old", b"x")
    os.mkdir("d/sub")


@check(before=old_directory)
def names_stamp_their_directory():
    """Making, linking, renaming and removing names change the directory's mtime and ctime."""
    both = (MTIME, CTIME)
    changed(lambda: make("d/f"), "d", both, "creation")
    changed(lambda: os.mkdir("d/e"), "d", both, "mkdir")
    changed(lambda: os.symlink("x", "d/s"), "d", both, "symlink")
    changed(lambda: os.link("d/f", "d/l"), "d", both, "link")
    changed(lambda: os.mkfifo("d/p"), "d", both, "mkfifo")
    changed(lambda: os.rename("d/l", "d/m"), "d", both, "rename")
    changed(lambda: os.unlink("d/old"), "d", both, "unlink")
    changed(lambda: os.rmdir("d/sub"), "d", both, "rmdir")


@check(before=old_directory)
def other_acts_leave_the_directory_alone():
    """Writing to a file, reading, opening and failing leave the directory's times."""

    def write():
        with opened("d/old", os.O_WRONLY) as fd:
            os.write(fd, b"y")

    changed(write, "d", (), "a write to a file in it")
    changed(lambda: os.chmod("d/old", 0o600), "d", (), "chmod of a file in it")
    changed(lambda: os.listdir("d"), "d", (), "listing")
    changed(lambda: os.close(os.open("d/old", os.O_RDWR | os.O_CREAT)), "d", (), "O_CREAT of what is there")
    changed(lambda: fails(errno.EEXIST, os.mkdir, "d/sub"), "d", (), "mkdir that fails")
    changed(lambda: fails(errno.ENOENT, os.unlink, "d/none"), "d", (), "unlink that fails")
    changed(lambda: make("d/sub/f"), "d", (), "creation below")


@check()
def new_files_have_the_time_of_now():
    """A new file's four times are one and the same, the clock's at its creation."""
    before = time.time_ns() - 20_000_000
    make("f")
    os.mkdir("d")
    os.symlink("x", "s")
    for name in ("f", "d", "s"):
        seen = os.lstat(name)
        for value in (seen.st_atime_ns, seen.st_mtime_ns, seen.st_ctime_ns):
            true(before <= value <= time.time_ns(), f"a time of {name} is not now")


@check(before=old_file)
def time_of_birth_is_told():
    """statx tells a time of birth that writes and renames leave alone."""
    make("new")
    for name in ("old", "new"):
        first = statx(name)
        true(first["mask"] & 0x800, f"{name} has no time of birth")
        true(0 < first["btime"] <= time.time_ns(), f"the birth of {name} is at {first['btime']}")
        with opened(name, os.O_WRONLY) as fd:
            os.write(fd, b"x")
        os.rename(name, "moved")
        equal(statx("moved")["btime"], first["btime"], f"birth of {name} after a write and a rename")
        os.rename("moved", name)


@check(before=old_file)
def reading_stamps_the_access():
    """A read sets atime where it is older than mtime (relatime), in a file and in a directory."""
    if os.statvfs(".").f_flag & os.ST_NOATIME:
        return "mounted noatime"
    make("new", b"x")
    os.mkdir("d")
    make("d/f")
    for name in ("old", "new", "d"):
        os.utime(name, ns=(1_000_000_000, 2_000_000_000))
        os.listdir(name) if name == "d" else read(name)
        true(os.stat(name).st_atime_ns > 10**18, f"atime of {name} stood still")


@check(before=old_file)
def noatime_leaves_the_access():
    """A read through O_NOATIME leaves atime."""
    os.utime("old", ns=(1_000_000_000, 2_000_000_000))
    with opened("old", os.O_RDONLY | os.O_NOATIME) as fd:
        os.read(fd, 9)
    equal(os.stat("old").st_atime_ns, 1_000_000_000, "atime")


@check(root=True)
def times_are_set_by_whom_they_may():
    """Who may write a file sets its times to now, only the owner to another time."""
    make("f")
    os.chown("f", 1002, 1002)
    os.chmod("f", 0o666)

    def stranger():
        os.utime("f")
        fails(errno.EPERM, os.utime, "f", ns=(1, 2))
        fails(errno.EPERM, utimensat, "f", ((0, UTIME_NOW), (0, UTIME_OMIT)))

    as_user(1003, stranger)
    os.chmod("f", 0o644)
    as_user(1003, lambda: fails(errno.EACCES, os.utime, "f"))
    as_user(1002, lambda: os.utime("f", ns=(1, 2)))
    equal(os.stat("f").st_mtime_ns, 2, "mtime")


@check()
def times_seen_by_descriptor_and_name_agree():
    """After each of a hundred writes fstat, stat and another process tell the same times and size."""
    with opened("f", os.O_WRONLY | os.O_CREAT) as fd:
        for _ in range(100):
            os.write(fd, b"x" * 100)
            one, two = os.fstat(fd), os.stat("f")
            equal((one.st_mtime_ns, one.st_ctime_ns, one.st_size), (two.st_mtime_ns, two.st_ctime_ns, two.st_size), "stat")
