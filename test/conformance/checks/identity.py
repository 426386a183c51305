"""Which file is which: inode numbers, devices, handles."""
import errno
import os

from calls import entries_of, mount_id, name_to_handle, open_by_handle, openat2, RESOLVE_NO_XDEV, statx, STATX_BASIC
from table import check, elsewhere, equal, make, may_be_refused, opened, read, true


def old_files():
    make("old", b"content")
    os.mkdir("d")
    make("d/inner")
    os.symlink("old", "s")


@check(before=old_files)
def inode_number_stays():
    """A file's inode number stays across its first write, chmod, rename, link, for every process."""
    for name in ("old", "d", "d/inner", "s"):
        ino = os.lstat(name).st_ino
        if name == "old":
            with opened(name, os.O_WRONLY) as fd:
                os.write(fd, b"C")
                equal(os.fstat(fd).st_ino, ino, "by descriptor")
        os.utime(name, follow_symlinks=False)
        equal(os.lstat(name).st_ino, ino, f"{name} after a change")
        os.rename(name, "moved")
        equal(elsewhere(lambda: os.lstat("moved").st_ino), ino, f"{name} after a rename, for another")
        equal([e[0] for e in entries_of(".") if e[3] == b"moved"], [ino], f"d_ino of {name}")
        os.rename("moved", name)
        equal(os.lstat(name).st_ino, ino, f"{name} after a rename back")


@check(before=old_files)
def inode_numbers_are_different():
    """Files that live at once have different inode numbers, none of them 0, on one device."""
    for number in range(300):
        make(f"f{number}")
    os.mkdir("e")
    fds = []
    for number in range(100):
        fds.append(os.open(f"f{number}", os.O_RDONLY))
        os.unlink(f"f{number}")
        make(f"f{number}")
    seen = [os.fstat(fd) for fd in fds] + [os.lstat(name) for name in os.listdir(".")] + [os.stat("d/inner")]
    equal(len({one.st_ino for one in seen}), len(seen), "different numbers")
    true(all(one.st_ino for one in seen), "a number is 0")
    equal(len({one.st_dev for one in seen}), 1, "devices")


@check(before=old_files)
def whole_tree_is_one_filesystem():
    """Directories, old and new files are on one device and one mount, for find -xdev and openat2."""
    make("d/new")
    os.mkdir("e")
    device = os.stat(".").st_dev
    for name in (".", "old", "d", "d/inner", "d/new", "e", "s"):
        equal(os.lstat(name).st_dev, device, f"device of {name}")
    with opened(".", os.O_RDONLY | os.O_DIRECTORY) as here:
        for name in ("old", "d/inner", "d/new", "e"):
            fd = openat2(name, os.O_RDONLY, RESOLVE_NO_XDEV, here)
            equal(mount_id(fd), mount_id(here), f"mount of {name}")
            os.close(fd)


@check(before=old_files)
def statx_agrees_with_stat():
    """statx tells all the basic fields, and what stat tells."""
    make("new", b"x" * 5000)
    for name in ("old", "new", "d", "s"):
        one, two = statx(name), os.lstat(name)
        equal(one["mask"] & STATX_BASIC, STATX_BASIC, f"fields of {name}")
        equal(
            [one[field] for field in ("ino", "nlink", "uid", "gid", "mode", "size", "blocks", "mtime", "ctime")],
            [two.st_ino, two.st_nlink, two.st_uid, two.st_gid, two.st_mode, two.st_size, two.st_blocks, two.st_mtime_ns, two.st_ctime_ns],
            name,
        )


@check(before=old_files)
def handle_names_the_file():
    """name_to_handle_at gives one handle to a file, across its first write and a rename."""
    with may_be_refused("name_to_handle_at", errno.EOPNOTSUPP):
        first = name_to_handle("old")
    with opened("old", os.O_WRONLY) as fd:
        os.write(fd, b"C")
    os.rename("old", "moved")
    equal(name_to_handle("moved"), first, "handle")
    true(name_to_handle("d") != first, "two files with one handle")


@check(root=True, before=old_files)
def handle_opens_the_file():
    """open_by_handle_at opens what the handle names, after a rename and a write too."""
    with may_be_refused("name_to_handle_at", errno.EOPNOTSUPP):
        handle = name_to_handle("old")
    with opened("old", os.O_WRONLY) as fd:
        os.write(fd, b"CON")
    os.rename("old", "d/moved")
    with opened(".", os.O_RDONLY | os.O_DIRECTORY) as mount:
        with may_be_refused("open_by_handle_at", errno.EPERM):
            fd = open_by_handle(mount, handle, os.O_RDONLY)
        equal((os.read(fd, 99), os.fstat(fd).st_ino), (b"CONtent", os.stat("d/moved").st_ino), "content and number")
        os.close(fd)
    equal(read("s") if os.path.exists("s") else b"", b"", "a link to the old name")
