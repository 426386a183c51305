"""Hard and symbolic links."""
import errno
import os
import stat

from calls import AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_FOLLOW, linkat
from table import check, elsewhere, equal, fails, make, opened, read, tick, true


def old_pair():
    os.mkdir("d")
    make("a", b"content")
    os.link("a", "d/b")


@check()
def hard_links_are_one_file():
    """Hard links share content, mode, inode number and count."""
    make("a", b"one")
    os.mkdir("d")
    os.link("a", "d/b")
    os.link("d/b", "c")
    os.chmod("c", 0o600)
    with opened("d/b", os.O_WRONLY | os.O_APPEND) as fd:
        os.write(fd, b" two")
    for name in ("a", "d/b", "c"):
        seen = os.stat(name)
        equal((read(name), seen.st_nlink, stat.S_IMODE(seen.st_mode)), (b"one two", 3, 0o600), name)
        equal(seen.st_ino, os.stat("a").st_ino, f"inode number of {name}")
    os.unlink("a")
    equal((os.stat("c").st_nlink, read("d/b")), (2, b"one two"), "after an unlink")


@check(before=old_pair)
def existing_hard_links_stay_one_file():
    """Links from before are still one file after a write by one name, and after a third is made."""
    ino = os.stat("a").st_ino
    equal((os.stat("d/b").st_nlink, os.stat("d/b").st_ino), (2, ino), "links and inode number")
    with opened("d/b", os.O_WRONLY) as fd:
        os.pwrite(fd, b"CON", 0)
    equal((read("a"), os.stat("a").st_nlink, os.stat("a").st_ino), (b"CONtent", 2, ino), "by the other name")
    os.link("d/b", "c")
    equal(elsewhere(lambda: os.stat("a").st_nlink), 3, "links after a third was made")
    os.unlink("a")
    with opened("c", os.O_WRONLY) as fd:
        os.pwrite(fd, b"tent", 3)
    equal((read("d/b"), os.stat("d/b").st_nlink, os.stat("d/b").st_ino), (b"CONtent", 2, ino), "after an unlink")


@check(before=old_pair)
def existing_hard_link_not_looked_up():
    """A link from before that nobody has looked up counts, and has what was written by another that is gone by now."""
    ino = os.stat("a").st_ino
    with opened("a", os.O_WRONLY) as fd:
        os.pwrite(fd, b"CON", 0)
        equal(os.fstat(fd).st_nlink, 2, "links")
        make("new", b"new")
        os.rename("new", "a")
        equal(os.fstat(fd).st_nlink, 1, "links after a rename over it")
    equal((read("d/b"), os.stat("d/b").st_ino, os.stat("d/b").st_nlink), (b"CONtent", ino, 1), "by the other name")
    os.unlink("d/b")
    equal((sorted(os.listdir(".")), os.listdir("d")), (["a", "d"], []), "names")


@check(before=old_pair)
def existing_link_replaced_leaves_the_other():
    """Renaming a new file over one of two links from before leaves the other as it was."""
    make("new", b"new")
    with opened("a") as fd:
        os.rename("new", "a")
        equal(os.fstat(fd).st_nlink, 1, "links of the file renamed over")
    equal((read("a"), read("d/b"), os.stat("d/b").st_nlink), (b"new", b"content", 1), "contents and links")


@check()
def link_unlink_rename_keeps_the_content():
    """A file linked under a second name, unlinked under the first, renamed to the first, is still the file."""
    make("a", b"content")
    os.link("a", "b")
    os.unlink("a")
    os.rename("b", "a")
    equal((read("a"), os.stat("a").st_nlink, os.listdir(".")), (b"content", 1, ["a"]), "content, links, names")


@check()
def renaming_one_link_to_the_other_does_nothing():
    """rename between two names of one file leaves both, as POSIX has it."""
    make("a", b"x")
    os.link("a", "b")
    os.rename("a", "b")
    equal((sorted(os.listdir(".")), os.stat("a").st_nlink), (["a", "b"], 2), "names and links")


@check()
def link_count_falls_to_zero_under_a_rename():
    """A file whose last name is renamed over has no link; with another name left, one."""
    make("a")
    make("b")
    make("c")
    os.link("c", "d")
    with opened("b") as last, opened("c") as other:
        os.rename("a", "b")
        os.rename("b", "c")
        equal((os.fstat(last).st_nlink, os.fstat(other).st_nlink), (0, 1), "links")


@check()
def linking_has_its_refusals():
    """link over a name is EEXIST, of a directory EPERM, of nothing ENOENT, into a file ENOTDIR."""
    make("a")
    make("b")
    os.mkdir("d")
    fails(errno.EEXIST, os.link, "a", "b")
    fails(errno.EEXIST, os.link, "a", "a")
    fails(errno.EPERM, os.link, "d", "e")
    fails(errno.ENOENT, os.link, "none", "e")
    fails(errno.ENOENT, os.link, "a", "none/e")
    fails(errno.ENOTDIR, os.link, "a", "b/e")
    equal(os.stat("a").st_nlink, 1, "links")


@check()
def linking_a_symlink():
    """link(2) links a symbolic link itself; with AT_SYMLINK_FOLLOW, its target."""
    make("f", b"x")
    os.symlink("f", "s")
    os.link("s", "t", follow_symlinks=False)
    true(os.path.islink("t"), "not a link")
    equal((os.lstat("t").st_ino, os.lstat("s").st_nlink), (os.lstat("s").st_ino, 2), "inode number and links")
    linkat(AT_FDCWD, "s", "u", AT_SYMLINK_FOLLOW)
    equal(os.lstat("u").st_ino, os.stat("f").st_ino, "with AT_SYMLINK_FOLLOW")


@check(root=True)
def linking_a_bare_descriptor():
    """linkat with AT_EMPTY_PATH gives root's descriptor a name."""
    make("f", b"x")
    with opened("f", os.O_PATH) as fd:
        linkat(fd, "", "g", AT_EMPTY_PATH)
    equal((read("g"), os.stat("f").st_nlink), (b"x", 2), "content and links")


@check()
def symlinks_tell_their_target():
    """A symbolic link's size is its target's length, its mode 0777, and readlink of a file EINVAL."""
    make("f")
    for target in (b"x", b"../a/./b//c", b"not-utf8-\xff\xfe\n", b"/" + b"long" * 200):
        os.symlink(target, b"link")
        seen = os.lstat("link")
        equal((os.readlink(b"link"), seen.st_size), (target, len(target)), "target and size")
        equal(seen.st_mode, stat.S_IFLNK | 0o777, "mode")
        os.unlink("link")
    fails(errno.EINVAL, os.readlink, "f")
    fails(errno.ENOENT, os.readlink, "none")
    fails(errno.ENOENT, os.symlink, "", "empty")


@check()
def longest_symlink_targets():
    """A target of 4,095 bytes is kept; one more is ENAMETOOLONG."""
    target = "t/" * 2047 + "t"
    os.symlink(target, "link")
    equal((os.readlink("link"), os.lstat("link").st_size), (target, 4095), "target")
    fails(errno.ENAMETOOLONG, os.symlink, target + "t", "more")
    os.rename("link", "moved")
    equal(os.readlink("moved"), target, "target after a rename")


@check()
def loops_of_symlinks_end():
    """A loop is ELOOP; 40 links in a row are followed, 41 are not."""
    os.symlink("b", "a")
    os.symlink("a", "b")
    os.symlink("self", "self")
    for name in ("a", "self", "self/x"):
        fails(errno.ELOOP, os.stat, name)
    fails(errno.ELOOP, os.open, "a", os.O_WRONLY | os.O_CREAT)
    make("0", b"x")
    for number in range(1, 42):
        os.symlink(str(number - 1), str(number))
    equal(read("40"), b"x", "the end of 40 links")
    fails(errno.ELOOP, os.stat, "41")


@check()
def symlinks_are_not_followed_by_what_names_them():
    """lstat, unlink, rename, lchown and chmod's kin act on the link or its target as each should."""
    make("f", b"x")
    os.symlink("f", "s")
    os.chmod("s", 0o600)
    equal(stat.S_IMODE(os.stat("f").st_mode), 0o600, "mode of the target")
    os.chown("s", -1, os.getgid(), follow_symlinks=False)
    os.utime("s", ns=(1, 2), follow_symlinks=False)
    equal(os.lstat("s").st_mtime_ns, 2, "time of the link")
    true(os.stat("f").st_mtime_ns > 2, "time of the target")
    os.rename("s", "t")
    equal((os.readlink("t"), read("t")), ("f", b"x"), "after a rename")
    make("u")
    os.rename("u", "t")
    equal((os.path.islink("t"), read("f")), (False, b"x"), "renamed over")
    os.symlink("f", "s")
    os.unlink("s")
    equal(sorted(os.listdir(".")), ["f", "t"], "names")


def old_symlinks():
    os.mkdir("d")
    make("d/f", b"content")
    os.symlink("d/f", "file")
    os.symlink("d", "directory")
    os.symlink("missing", "dangling")


@check(before=old_symlinks)
def writing_through_existing_symlinks():
    """Links from before lead writes to their targets, and can be replaced and renamed."""
    with opened("file", os.O_WRONLY | os.O_APPEND) as fd:
        os.write(fd, b" more")
    make("directory/g", b"new")
    equal((read("d/f"), sorted(os.listdir("d"))), (b"content more", ["f", "g"]), "target and names")
    os.rename("directory", "way")
    equal((os.readlink("way"), read("way/g")), ("d", b"new"), "a renamed link")
    os.unlink("file")
    os.symlink("d/g", "file")
    equal(read("file"), b"new", "a replaced link")
    fails(errno.ENOENT, os.open, "dangling", os.O_RDONLY)


@check()
def links_change_the_time_of_change():
    """link and unlink change the ctime of the file, and not its mtime."""
    make("a")
    first = os.stat("a")
    tick()
    os.link("a", "b")
    second = os.stat("a")
    true(second.st_ctime_ns > first.st_ctime_ns, "ctime stood still at link")
    tick()
    os.unlink("b")
    third = os.stat("a")
    true(third.st_ctime_ns > second.st_ctime_ns, "ctime stood still at unlink")
    equal(third.st_mtime_ns, first.st_mtime_ns, "mtime")
