"""Open files: what a descriptor goes on meaning, and what the flags of open(2) ask for."""
import errno
import fcntl
import os
import stat

from calls import link_descriptor, openat2, readahead, syncfs
from table import Gate, Process, check, elsewhere, equal, fails, make, opened, read, true, write


def old_file():
    make("old", b"from before", 0o640)


@check()
def open_unlinked_file_is_read_and_written():
    """A file unlinked while open is read, written, truncated and stat, with no link left."""
    with opened("f", os.O_RDWR | os.O_CREAT, 0o640) as fd:
        os.write(fd, b"before")
        os.unlink("f")
        equal(os.listdir("."), [], "names left")
        write(fd, b" after")
        os.ftruncate(fd, 9)
        os.fchmod(fd, 0o600)
        os.utime(fd, ns=(1, 2))
        seen = os.fstat(fd)
        equal(os.pread(fd, 99, 0), b"before af", "content")
        equal((seen.st_nlink, seen.st_size, stat.S_IMODE(seen.st_mode), seen.st_mtime_ns), (0, 9, 0o600, 2), "stat")


@check(before=old_file)
def existing_open_unlinked_file_is_read_and_written():
    """So is a file that was there before."""
    with opened("old", os.O_RDWR) as fd:
        os.unlink("old")
        equal(os.pread(fd, 99, 0), b"from before", "content")
        os.pwrite(fd, b"FROM", 0)
        equal(os.pread(fd, 99, 0), b"FROM before", "content after a write")
        equal(os.fstat(fd).st_nlink, 0, "links")
    fails(errno.ENOENT, os.stat, "old")


@check(before=old_file)
def existing_file_read_after_unlink_and_recreation():
    """A descriptor of an unlinked file is not that of the new file with its name."""
    with opened("old") as fd:
        os.unlink("old")
        make("old", b"another")
        equal(os.pread(fd, 99, 0), b"from before", "the old file")
        equal(read("old"), b"another", "the new file")
        true(os.fstat(fd).st_ino != os.stat("old").st_ino, "two files with one inode number")


@check()
def unlinked_file_is_opened_again_through_proc():
    """/proc/self/fd opens an unlinked file once more, for reading and writing."""
    with opened("f", os.O_RDWR | os.O_CREAT) as fd:
        write(fd, b"content")
        os.unlink("f")
        with opened(f"/proc/self/fd/{fd}", os.O_RDWR) as again:
            equal(os.read(again, 99), b"content", "content")
            os.pwrite(again, b"C", 0)
            equal(os.fstat(again).st_ino, os.fstat(fd).st_ino, "inode number")
        equal(os.pread(fd, 99, 0), b"Content", "content seen by the first descriptor")


@check()
def unlinked_file_cannot_be_linked_again():
    """linkat through /proc of a file whose last name is gone is ENOENT."""
    with opened("f", os.O_RDWR | os.O_CREAT) as fd:
        os.unlink("f")
        fails(errno.ENOENT, link_descriptor, fd, "again")
        fails(errno.ENOENT, os.stat, "again")


@check()
def open_file_is_linked_through_proc():
    """linkat through /proc of a file that has a name gives it a second one."""
    with opened("f", os.O_RDWR | os.O_CREAT) as fd:
        link_descriptor(fd, "g")
        equal(os.stat("g").st_nlink, 2, "links")
        equal(os.stat("g").st_ino, os.fstat(fd).st_ino, "inode number")


@check()
def rename_over_open_file_leaves_its_content():
    """A descriptor of a file that was renamed over keeps it, with no link left."""
    make("old", b"old")
    make("new", b"new")
    with opened("old", os.O_RDWR) as fd:
        os.rename("new", "old")
        equal((os.pread(fd, 9, 0), os.fstat(fd).st_nlink), (b"old", 0), "the file renamed over")
        os.pwrite(fd, b"OLD", 0)
        equal((os.pread(fd, 9, 0), read("old")), (b"OLD", b"new"), "both after a write to the old one")


@check(before=old_file)
def rename_over_existing_open_file_leaves_its_content():
    """So it is with a file from before, open for reading and in another process."""
    begin, done = Gate(), Gate()

    def reader():
        with opened("old") as fd:
            begin.open()
            done.wait()
            return [os.pread(fd, 99, 0).decode(), os.fstat(fd).st_nlink]

    process = Process(reader)
    begin.wait()
    make("new", b"new")
    os.rename("new", "old")
    done.open()
    equal(process.result(), ["from before", 0], "the reader")
    equal(read("old"), b"new", "the name")


@check(before=old_file)
def descriptor_for_reading_sees_later_writes():
    """A descriptor opened for reading sees what another process writes afterwards (across a copy-up)."""
    with opened("old") as fd:
        equal(os.pread(fd, 4, 0), b"from", "first")

        def writer():
            with opened("old", os.O_RDWR) as own:
                os.pwrite(own, b"FROM", 0)
                os.ftruncate(own, 6)

        elsewhere(writer)
        equal(os.pread(fd, 99, 0), b"FROM b", "afterwards")
        equal(os.fstat(fd).st_size, 6, "size")
        equal(os.fstat(fd).st_ino, os.stat("old").st_ino, "inode number of descriptor and name")


@check(before=old_file)
def descriptor_survives_renames_of_file_and_directory():
    """A descriptor stays with its file when the file and then its directory are renamed."""
    os.mkdir("d")
    os.rename("old", "d/one")
    with opened("d/one", os.O_RDWR) as fd:
        os.rename("d/one", "d/two")
        os.rename("d", "e")
        os.pwrite(fd, b"FROM", 0)
        equal(read("e/two"), b"FROM before", "content by name")
        equal(os.fstat(fd).st_nlink, 1, "links")


@check()
def directory_descriptor_survives_rename():
    """*at calls on a descriptor of a directory that was renamed reach the directory."""
    os.makedirs("a/b")
    with opened("a/b", os.O_RDONLY | os.O_DIRECTORY) as fd:
        os.rename("a", "c")
        make_at = os.open("f", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=fd)
        os.close(make_at)
        os.mkdir("d", dir_fd=fd)
        equal(sorted(os.listdir("c/b")), ["d", "f"], "names")
        equal(os.stat("..", dir_fd=fd).st_ino, os.stat("c").st_ino, "the parent")


@check()
def reading_and_writing_need_the_right_descriptor():
    """Writing to a descriptor opened for reading, and reading from one opened for writing, is EBADF."""
    make("f", b"x")
    with opened("f") as fd:
        fails(errno.EBADF, os.write, fd, b"y")
        fails((errno.EBADF, errno.EINVAL), os.ftruncate, fd, 0)
    with opened("f", os.O_WRONLY) as fd:
        fails(errno.EBADF, os.read, fd, 1)
    equal(read("f"), b"x", "content")


@check()
def shared_offset_of_dup_and_fork():
    """dup and fork share the offset; a second open has its own."""
    make("f", b"0123456789")
    with opened("f") as fd, opened("f") as other:
        twin = os.dup(fd)
        equal(os.read(fd, 3), b"012", "first")
        equal(os.read(twin, 3), b"345", "by the duplicate")
        equal(elsewhere(lambda: os.read(fd, 2).decode()), "67", "by a child")
        equal(os.read(fd, 3), b"89", "after the child")
        equal(os.read(other, 2), b"01", "by another open")


@check()
def pread_and_pwrite_leave_the_offset():
    """pread, pwrite, preadv and pwritev do not move the offset."""
    with opened("f", os.O_RDWR | os.O_CREAT) as fd:
        write(fd, b"0123456789")
        equal(os.pwritev(fd, [b"ab", b"cd"], 2), 4, "bytes written by pwritev")
        os.pwrite(fd, b"z", 9)
        pieces = [bytearray(3), bytearray(9)]
        equal(os.preadv(fd, pieces, 0), 10, "bytes read by preadv")
        equal(bytes(pieces[0] + pieces[1][:7]), b"01abcd678z", "content")
        equal(os.lseek(fd, 0, os.SEEK_CUR), 10, "offset")


@check()
def seeking_past_the_end_and_before_the_start():
    """lseek beyond the end is allowed, before the start EINVAL; SEEK_END knows the size of now."""
    with opened("f", os.O_RDWR | os.O_CREAT) as fd:
        equal(os.lseek(fd, 100, os.SEEK_SET), 100, "beyond the end")
        equal(os.read(fd, 1), b"", "read beyond the end")
        equal(os.fstat(fd).st_size, 0, "size")
        fails(errno.EINVAL, os.lseek, fd, -1, os.SEEK_SET)
        elsewhere(lambda: os.truncate("f", 77))
        equal(os.lseek(fd, 0, os.SEEK_END), 77, "the end")


@check()
def exclusive_creation_refuses_whatever_is_there():
    """O_CREAT|O_EXCL is EEXIST for a file, a directory, a link and a link that leads nowhere."""
    make("file")
    os.mkdir("directory")
    os.symlink("file", "link")
    os.symlink("nowhere", "dangling")
    for name in ("file", "directory", "link", "dangling"):
        fails(errno.EEXIST, os.open, name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    fails(errno.ENOENT, os.stat, "nowhere")


@check()
def exclusive_creation_has_one_winner():
    """Of eight processes that create one name with O_EXCL, one succeeds, each of forty times."""

    def run():
        won = 0
        for turn in range(40):
            try:
                os.close(os.open(f"lock-{turn}", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
                won += 1
            except FileExistsError:
                pass
        return won

    equal(sum(one.result() for one in [Process(run) for _ in range(8)]), 40, "winners")


@check()
def creation_through_a_dangling_link():
    """O_CREAT on a symbolic link that leads nowhere makes the file it names."""
    os.symlink("target", "link")
    with opened("link", os.O_WRONLY | os.O_CREAT) as fd:
        write(fd, b"x")
    equal(read("target"), b"x", "the target")
    true(os.path.islink("link"), "the link is gone")


@check(before=old_file)
def truncating_open_empties_and_keeps_the_file():
    """O_TRUNC empties the same file, also for those who have it open."""
    before = os.stat("old")
    with opened("old") as fd, opened("old", os.O_WRONLY | os.O_TRUNC) as new:
        equal(os.pread(fd, 99, 0), b"", "seen by the other descriptor")
        write(new, b"x")
        equal(os.pread(fd, 99, 0), b"x", "after a write")
        equal(os.fstat(new).st_ino, before.st_ino, "inode number")
        equal(stat.S_IMODE(os.fstat(new).st_mode), 0o640, "mode")


@check()
def nofollow_refuses_a_link():
    """O_NOFOLLOW on a symbolic link is ELOOP, and does not matter in the directories before it."""
    os.mkdir("d")
    make("d/f", b"x")
    os.symlink("d/f", "link")
    os.symlink("d", "way")
    fails(errno.ELOOP, os.open, "link", os.O_RDONLY | os.O_NOFOLLOW)
    with opened("way/f", os.O_RDONLY | os.O_NOFOLLOW) as fd:
        equal(os.read(fd, 1), b"x", "content")


@check()
def path_descriptor_of_a_link():
    """O_PATH|O_NOFOLLOW holds a symbolic link itself: fstat and readlinkat answer for it."""
    os.symlink("some/where", "link")
    with opened("link", os.O_PATH | os.O_NOFOLLOW) as fd:
        true(stat.S_ISLNK(os.fstat(fd).st_mode), "not a link")
        equal(os.readlink("", dir_fd=fd), "some/where", "target")


@check()
def path_descriptor_only_names():
    """An O_PATH descriptor is stat and walked from, but not read, written, listed or changed."""
    make("f", b"x", 0o000)
    os.mkdir("d")
    make("d/g", b"y")
    with opened("f", os.O_PATH) as fd:
        equal(os.fstat(fd).st_size, 1, "size")
        fails(errno.EBADF, os.read, fd, 1)
        fails(errno.EBADF, os.fchmod, fd, 0o644)
        fails(errno.EBADF, os.ftruncate, fd, 0)
    with opened("d", os.O_PATH | os.O_DIRECTORY) as fd:
        with opened("g", os.O_RDONLY, dir_fd=fd) as file:
            equal(os.read(file, 1), b"y", "content")
        os.fchdir(fd)
        equal(os.listdir("."), ["g"], "names in the working directory")


@check()
def directory_flag_and_files():
    """O_DIRECTORY on a file is ENOTDIR, with a link to a directory it works."""
    make("f")
    os.mkdir("d")
    os.symlink("d", "link")
    fails(errno.ENOTDIR, os.open, "f", os.O_RDONLY | os.O_DIRECTORY)
    fails(errno.ENOENT, os.open, "none", os.O_RDONLY | os.O_DIRECTORY)
    with opened("link", os.O_RDONLY | os.O_DIRECTORY) as fd:
        true(stat.S_ISDIR(os.fstat(fd).st_mode), "not a directory")


@check()
def directory_is_not_opened_for_writing():
    """Opening a directory for writing, or with O_CREAT, is EISDIR; so is reading it as a file."""
    os.mkdir("d")
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_CREAT, os.O_WRONLY | os.O_TRUNC):
        fails(errno.EISDIR, os.open, "d", flags)
    with opened("d") as fd:
        fails(errno.EISDIR, os.read, fd, 1)


@check()
def flags_are_read_back_and_append_is_switched():
    """F_GETFL tells the flags; O_APPEND set and taken away by F_SETFL counts for the next write."""
    with opened("f", os.O_RDWR | os.O_CREAT) as fd:
        write(fd, b"0123")
        equal(fcntl.fcntl(fd, fcntl.F_GETFL) & (os.O_ACCMODE | os.O_APPEND), os.O_RDWR, "flags")
        fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, b"4")
        fcntl.fcntl(fd, fcntl.F_SETFL, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, b"X")
        equal(read("f"), b"X1234", "content")


@check(before=old_file)
def syncing_calls_succeed():
    """fsync, fdatasync, syncfs, sync_file and O_SYNC work on files, directories and unlinked files."""
    with opened("old", os.O_RDWR | os.O_SYNC) as fd:
        os.pwrite(fd, b"F", 0)
        os.fsync(fd)
        os.fdatasync(fd)
        syncfs(fd)
        os.unlink("old")
        os.pwrite(fd, b"f", 0)
        os.fsync(fd)
    with opened(".", os.O_RDONLY | os.O_DIRECTORY) as fd:
        os.fsync(fd)
        os.fdatasync(fd)
    with opened("f", os.O_WRONLY | os.O_CREAT | os.O_DSYNC) as fd:
        write(fd, b"x")
    equal(read("f"), b"x", "content")


@check(before=old_file)
def advice_is_taken():
    """posix_fadvise and readahead succeed and leave the content as it is."""
    with opened("old") as fd:
        for advice in (os.POSIX_FADV_SEQUENTIAL, os.POSIX_FADV_WILLNEED, os.POSIX_FADV_DONTNEED):
            os.posix_fadvise(fd, 0, 0, advice)
        readahead(fd, 0, 4096)
        equal(os.read(fd, 99), b"from before", "content")


@check()
def openat2_resolves_as_told():
    """openat2 stays beneath, refuses links, takes a directory for the root, as its flags say."""
    from calls import RESOLVE_BENEATH, RESOLVE_IN_ROOT, RESOLVE_NO_SYMLINKS, RESOLVE_NO_XDEV

    os.makedirs("d/sub")
    make("d/f", b"inner")
    make("f", b"outer")
    os.symlink("../f", "d/out")
    os.symlink("f", "d/in")
    os.symlink("/f", "d/absolute")
    with opened("d", os.O_PATH) as fd:
        fails(errno.EXDEV, openat2, "../f", os.O_RDONLY, RESOLVE_BENEATH, fd)
        fails(errno.EXDEV, openat2, "out", os.O_RDONLY, RESOLVE_BENEATH, fd)
        fails(errno.ELOOP, openat2, "in", os.O_RDONLY, RESOLVE_NO_SYMLINKS, fd)
        for name, resolve in (("in", RESOLVE_BENEATH), ("absolute", RESOLVE_IN_ROOT), ("sub/../f", RESOLVE_NO_XDEV)):
            got = openat2(name, os.O_RDONLY, resolve, fd)
            equal(os.read(got, 9), b"inner", name)
            os.close(got)


@check()
def large_offsets_are_kept():
    """A write five gigabytes into a file is there, and nothing else."""
    at = 5 * 2**30 + 3
    with opened("f", os.O_RDWR | os.O_CREAT) as fd:
        equal(os.pwrite(fd, b"far", at), 3, "bytes written")
        equal(os.fstat(fd).st_size, at + 3, "size")
        equal(os.pread(fd, 9, at - 2), b"\0\0far", "content at its end")
        equal(os.pread(fd, 2, 2**30), b"\0\0", "content in between")


@check()
def many_open_files_have_their_own_content():
    """1,500 files open at once, all unlinked, each keep their content."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    fds = []
    for number in range(1500):
        fd = os.open(f"f{number}", os.O_RDWR | os.O_CREAT)
        os.write(fd, str(number).encode())
        fds.append(fd)
    for number in range(1500):
        os.unlink(f"f{number}")
    equal([int(os.pread(fd, 9, 0)) for fd in fds], list(range(1500)), "contents")
