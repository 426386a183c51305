"""Directories: reading them while they change, and what may stand in them."""
import errno
import os
import shutil
import stat

from calls import Directory, entries_of, getdents
from table import Process, check, elsewhere, equal, fails, make, opened, read, true


def files(directory, names):
    os.makedirs(directory, exist_ok=True)
    with opened(directory, os.O_RDONLY | os.O_DIRECTORY) as fd:
        for name in names:
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=fd))


def numbered(first, last):
    return [f"n{number}" for number in range(first, last)]


def old_directory():
    files("d", numbered(0, 600))


def old_tree():
    for directory in ("top/a/b", "top/c"):
        os.makedirs(directory)
        for number in range(5):
            make(f"{directory}/f{number}", directory.encode())
    os.symlink("a/b/f0", "top/link")
    os.chmod("top/c", 0o2750)


@check(before=old_directory)
def merged_directory_has_no_duplicates():
    """Old, new, deleted, replaced and renamed names of one directory are listed each once."""
    files("d", numbered(600, 1100))
    for name in numbered(0, 200):
        os.unlink(f"d/{name}")
    files("d", numbered(50, 100))
    for name in numbered(300, 350):
        os.rename(f"d/{name}", f"d/moved-{name}")
    for name in numbered(400, 450):
        make(f"d/{name}.new", b"new")
        os.rename(f"d/{name}.new", f"d/{name}")
    for name in numbered(500, 520):
        os.unlink(f"d/{name}")
        os.mkdir(f"d/{name}")
    wanted = sorted(numbered(50, 100) + numbered(200, 300) + numbered(350, 1100) + [f"moved-{n}" for n in numbered(300, 350)])
    for _ in range(2):
        equal(sorted(os.listdir("d")), wanted, "names")
        equal(sorted(name.decode() for _, _, _, name in entries_of("d", 1024)), sorted([*wanted, ".", ".."]), "in small pieces")
    equal(read("d/n400"), b"new", "a replaced file")


@check(before=old_directory)
def deleting_while_reading_deletes_all():
    """Reading a directory and unlinking each name as it comes leaves nothing behind (rm -r)."""
    files("d", numbered(600, 1200))
    directory = Directory("d")
    count = 0
    while (name := directory.next()) is not None:
        os.unlink(b"d/" + name)
        count += 1
    directory.close()
    equal(count, 1200, "names read")
    equal(os.listdir("d"), [], "names left")
    os.rmdir("d")


@check(before=old_directory)
def position_returns_to_the_same_names():
    """seekdir to what telldir said gives the same names again; rewinddir gives all."""
    directory = Directory("d")
    first = [directory.next() for _ in range(200)]
    position = directory.tell()
    rest = directory.rest()
    directory.seek(position)
    equal(directory.rest(), rest, "the names after the position")
    directory.rewind()
    equal(sorted(directory.rest()), sorted(first + rest), "all names")
    directory.close()


@check(before=old_directory)
def position_holds_while_names_are_deleted():
    """seekdir after the names before the position were unlinked loses and repeats none of the others."""
    files("d", numbered(600, 900))
    directory = Directory("d")
    first = [directory.next() for _ in range(300)]
    position = directory.tell()
    for name in first:
        os.unlink(b"d/" + name)
    directory.rest()
    directory.seek(position)
    equal(sorted(directory.rest() + first), sorted(name.encode() for name in numbered(0, 900)), "names")
    directory.close()


@check(before=old_directory)
def names_made_while_reading_disturb_nothing():
    """Names that are there throughout are read once each while others come and go."""
    directory = Directory("d")
    seen = []
    for turn in range(10_000):
        if (name := directory.next()) is None:
            break
        seen.append(name)
        if turn % 10 == 0:
            make(f"d/x{turn}")
        if turn % 20 == 10:
            os.unlink(f"d/x{turn - 10}")
    directory.close()
    equal(sorted(name for name in seen if name[:1] == b"n"), sorted(n.encode() for n in numbered(0, 600)), "lasting names")
    equal(len(seen), len(set(seen)), "different names")


@check()
def rewinding_shows_new_names():
    """rewinddir shows what was made since the directory was opened."""
    make("one")
    directory = Directory(".")
    equal(directory.rest(), [b"one"], "before")
    make("two")
    os.unlink("one")
    directory.rewind()
    equal(directory.rest(), [b"two"], "after")
    directory.close()


@check()
def entries_come_in_small_pieces():
    """getdents64 with room for one long name works, and with too little is EINVAL."""
    long = "l" * 255
    files("d", [long, "a", "b"])
    equal(sorted(e[3].decode() for e in entries_of("d", 280)), sorted([long, "a", "b", ".", ".."]), "names")
    with opened("d", os.O_RDONLY | os.O_DIRECTORY) as fd:
        fails(errno.EINVAL, getdents, fd, 16)


@check(before=old_tree)
def entries_tell_inode_and_type():
    """d_ino is st_ino and d_type the type, for each kind of file and for "." and ".."."""
    make("top/file")
    os.mkdir("top/new")
    os.mkfifo("top/fifo")
    kinds = {stat.S_IFREG: 8, stat.S_IFDIR: 4, stat.S_IFLNK: 10, stat.S_IFIFO: 1}
    for _ in range(2):
        entries = entries_of("top")
        equal(len(entries), 8, "entries")
        for ino, _, kind, name in entries:
            seen = os.lstat(b"top/" + name)
            equal((ino, kind), (seen.st_ino, kinds[stat.S_IFMT(seen.st_mode)]), f"inode and type of {name}")
        elsewhere(lambda: [os.lstat(b"top/" + e[3]) for e in entries] and None)


@check()
def deleted_working_directory_is_empty():
    """In a deleted working directory getcwd is ENOENT, nothing is listed and nothing can be made."""
    os.mkdir("d")
    os.chdir("d")
    os.rmdir("../d")
    fails(errno.ENOENT, os.getcwd)
    equal(os.listdir("."), [], "names")
    fails(errno.ENOENT, os.open, "f", os.O_WRONLY | os.O_CREAT)
    fails(errno.ENOENT, os.mkdir, "e")
    fails(errno.ENOENT, os.symlink, "x", "l")
    fails(errno.ENOENT, os.stat, "f")
    equal(os.stat(".").st_nlink, 0, "links")
    os.chdir("..")
    equal(os.listdir("."), [], "names in its parent")


@check(before=old_tree)
def deleted_existing_working_directory_is_empty():
    """So it is with a directory from before, deleted by another process with all that was in it."""
    os.chdir("top/a")
    here = os.open("../..", os.O_PATH)
    elsewhere(lambda: shutil.rmtree("../../top"))
    fails(errno.ENOENT, os.getcwd)
    equal(os.listdir("."), [], "names")
    fails(errno.ENOENT, os.open, "f", os.O_WRONLY | os.O_CREAT)
    fails(errno.ENOENT, os.stat, "b/f0")
    os.fchdir(here)
    equal(os.listdir("."), [], "names above")


@check()
def descriptor_of_a_removed_directory():
    """A removed directory's descriptor lists nothing and makes nothing, though its name was made again."""
    os.mkdir("d")
    with opened("d", os.O_RDONLY | os.O_DIRECTORY) as fd:
        os.rmdir("d")
        os.mkdir("d")
        make("d/new")
        equal(os.listdir(fd), [], "names")
        fails(errno.ENOENT, os.open, "f", os.O_WRONLY | os.O_CREAT, dir_fd=fd)
        fails(errno.ENOENT, os.stat, "new", dir_fd=fd)
        equal(os.fstat(fd).st_nlink, 0, "links")
        true(os.fstat(fd).st_ino != os.stat("d").st_ino, "two directories with one inode number")


@check(before=old_tree)
def removed_directory_made_again_is_empty():
    """A directory from before that is removed and made again has nothing of its past in it."""
    shutil.rmtree("top")
    equal(os.listdir("."), [], "names")
    os.mkdir("top")
    equal(os.listdir("top"), [], "names in the new directory")
    os.makedirs("top/a/b")
    equal(os.listdir("top/a/b"), [], "names below")
    make("top/a/b/f1", b"new")
    equal((os.listdir("top/a/b"), read("top/a/b/f1")), (["f1"], b"new"), "after one was made again")
    fails(errno.ENOENT, os.stat, "top/a/b/f0")


@check(before=old_tree)
def existing_tree_is_renamed_whole():
    """A directory from before is renamed with all below it, and its old name is gone."""
    ino = os.stat("top").st_ino
    make("top/a/new", b"new")
    os.unlink("top/a/b/f4")
    os.rename("top", "other")
    equal(os.listdir("."), ["other"], "names")
    equal(sorted(os.listdir("other")), ["a", "c", "link"], "names in it")
    equal(sorted(os.listdir("other/a/b")), ["f0", "f1", "f2", "f3"], "names below")
    equal((read("other/link"), read("other/a/new")), (b"top/a/b", b"new"), "contents")
    equal((os.stat("other").st_ino, stat.S_IMODE(os.stat("other/c").st_mode)), (ino, 0o2750), "inode number and mode")
    fails(errno.ENOENT, os.stat, "top/a/b/f0")
    os.mkdir("top")
    equal(os.listdir("top"), [], "names in a new directory of the old name")


@check()
def directory_is_renamed_over_an_empty_one():
    """rename of a directory replaces an empty directory, and no other one, and no file."""
    os.makedirs("a/inner")
    os.mkdir("empty")
    os.makedirs("full/x")
    make("file")
    fails((errno.ENOTEMPTY, errno.EEXIST), os.rename, "a", "full")
    fails(errno.ENOTDIR, os.rename, "a", "file")
    fails(errno.EISDIR, os.rename, "file", "a")
    os.rename("a", "empty")
    equal((sorted(os.listdir(".")), os.listdir("empty")), (["empty", "file", "full"], ["inner"]), "names")


@check(before=old_tree)
def emptied_existing_directory_is_replaced():
    """A directory from before that was emptied is removed, or renamed over; with a name in it, it is not."""
    os.mkdir("a")
    fails((errno.ENOTEMPTY, errno.EEXIST), os.rename, "a", "top/c")
    fails(errno.ENOTEMPTY, os.rmdir, "top/c")
    for name in os.listdir("top/c"):
        os.unlink(f"top/c/{name}")
    make("a/inside")
    os.rename("a", "top/c")
    equal(os.listdir("top/c"), ["inside"], "names")
    os.unlink("top/c/inside")
    os.rmdir("top/c")
    equal(sorted(os.listdir("top")), ["a", "link"], "names left")


@check()
def directory_cannot_go_into_itself():
    """rename of a directory below itself is EINVAL, over its own ancestor ENOTEMPTY."""
    os.makedirs("a/b/c")
    fails(errno.EINVAL, os.rename, "a", "a/b/x")
    fails(errno.EINVAL, os.rename, "a/b", "a/b/c/d")
    fails(errno.ENOTEMPTY, os.rename, "a/b/c", "a")
    equal(os.listdir("a/b"), ["c"], "names")


@check()
def dots_are_not_removed_or_renamed():
    """rmdir of "." is EINVAL, of ".." ENOTEMPTY; renaming either is EBUSY; making either EEXIST."""
    os.makedirs("d/e")
    fails(errno.EINVAL, os.rmdir, "d/.")
    fails(errno.ENOTEMPTY, os.rmdir, "d/e/..")
    fails(errno.EBUSY, os.rename, "d/.", "x")
    fails(errno.EBUSY, os.rename, "d/e/..", "x")
    fails(errno.EEXIST, os.mkdir, "d/.")
    fails(errno.EEXIST, os.mkdir, "d/..")


@check()
def removal_needs_the_right_kind():
    """rmdir of a file is ENOTDIR, unlink of a directory EISDIR, rmdir of a full one ENOTEMPTY."""
    make("f")
    os.makedirs("d/e")
    os.symlink("d", "link")
    fails(errno.ENOTDIR, os.rmdir, "f")
    fails(errno.ENOTDIR, os.rmdir, "link")
    fails(errno.EISDIR, os.unlink, "d")
    fails(errno.ENOTEMPTY, os.rmdir, "d")
    fails(errno.ENOENT, os.rmdir, "none")
    fails(errno.ENOENT, os.unlink, "none")


@check()
def making_what_is_there():
    """mkdir, mkfifo and symlink over anything, a dangling link too, are EEXIST."""
    make("f")
    os.mkdir("d")
    os.symlink("nowhere", "l")
    for name in "fdl":
        fails(errno.EEXIST, os.mkdir, name)
        fails(errno.EEXIST, os.mkfifo, name)
        fails(errno.EEXIST, os.symlink, "x", name)
    equal(sorted(os.listdir(".")), ["d", "f", "l"], "names")


@check()
def links_of_a_directory_count_its_subdirectories():
    """A directory's link count is two more than its subdirectories, whatever comes, goes and moves."""
    os.mkdir("d")
    make("d/file")
    equal(os.stat("d").st_nlink, 2, "without any")
    os.mkdir("d/a")
    os.mkdir("d/b")
    equal(os.stat("d").st_nlink, 4, "with two")
    os.mkdir("e")
    os.rename("d/a", "e/a")
    equal((os.stat("d").st_nlink, os.stat("e").st_nlink), (3, 3), "after one moved")
    os.rmdir("d/b")
    equal(os.stat("d").st_nlink, 2, "after one went")


@check()
def trailing_slashes_mean_directories():
    """A slash at a name's end asks for a directory, in each call."""
    make("f")
    os.mkdir("d")
    os.symlink("d", "l")
    fails(errno.ENOTDIR, os.stat, "f/")
    fails(errno.ENOTDIR, os.open, "f/", os.O_RDONLY)
    fails(errno.ENOTDIR, os.unlink, "f/")
    fails(errno.EISDIR, os.open, "new/", os.O_WRONLY | os.O_CREAT)
    fails(errno.ENOTDIR, os.rename, "f", "g/")
    fails(errno.ENOTDIR, os.rmdir, "l/")
    fails(errno.ENOENT, os.symlink, "x", "s/")
    os.mkdir("e/")
    os.rename("e/", "h/")
    os.rmdir("h//")
    equal(os.lstat("l/").st_ino, os.stat("d").st_ino, "lstat with a slash follows")
    equal(sorted(os.listdir(".")), ["d", "f", "l"], "names")


@check(before=old_directory)
def four_processes_share_a_directory():
    """Names made, renamed and unlinked by four processes at once are all right in the end."""

    def run(who):
        for number in range(80):
            make(f"d/{who}-{number}", b"x")
            os.rename(f"d/{who}-{number}", f"d/{who}+{number}")
            if number % 2:
                os.unlink(f"d/{who}+{number}")
            os.unlink(f"d/n{who * 100 + number}")

    for process in [Process(run, who) for who in range(4)]:
        process.result()
    wanted = {f"{who}+{number}" for who in range(4) for number in range(0, 80, 2)}
    gone = {f"n{who * 100 + number}" for who in range(4) for number in range(80)}
    equal(sorted(os.listdir("d")), sorted(wanted | (set(numbered(0, 600)) - gone)), "names")


@check()
def rename_moves_a_directory_under_readers():
    """The parent of a moved directory is its new one, for those who stand in it too."""
    os.makedirs("a/d")
    os.mkdir("b")
    with opened("a/d", os.O_RDONLY | os.O_DIRECTORY) as fd:
        os.rename("a/d", "b/d")
        equal(os.stat("..", dir_fd=fd).st_ino, os.stat("b").st_ino, "its parent")
        inode = next(e[0] for e in entries_of("b/d") if e[3] == b"..")
        equal(inode, os.stat("b").st_ino, 'd_ino of ".."')
        os.fchdir(fd)
        true(os.getcwd().endswith("/b/d"), f"getcwd says {os.getcwd()}")
