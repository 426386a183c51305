"""Who may do what: modes, sticky bits, setuid and setgid, groups, as several users."""
import errno
import os
import stat

from calls import AT_EACCESS, faccessat2
from table import Process, as_user, become, check, elsewhere, equal, fails, make, opened, read, true

ADA, BEA, TEAM = 1002, 1003, 1005


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def owner_of(path):
    seen = os.lstat(path)
    return seen.st_uid, seen.st_gid


def owned(path, uid, gid, mode, data=b"x"):
    make(path, data)
    os.chown(path, uid, gid)
    os.chmod(path, mode)


@check()
def owner_without_rights_is_refused():
    """A mode without rights shuts its owner out too (one without root's powers), until it is changed."""

    def run():
        make("f", b"x", 0o000)
        fails(errno.EACCES, os.open, "f", os.O_RDONLY)
        os.chmod("f", 0o400)
        fails(errno.EACCES, os.open, "f", os.O_WRONLY)
        equal(read("f"), b"x", "content")
        os.mkdir("d", 0o700)
        make("d/f", b"y")
        os.chmod("d", 0o500)
        fails(errno.EACCES, os.open, "d/g", os.O_WRONLY | os.O_CREAT)
        fails(errno.EACCES, os.unlink, "d/f")
        fails(errno.EACCES, os.rename, "d/f", "f2")
        fails(errno.EACCES, os.mkdir, "d/e")
        os.chmod("d", 0o600)
        equal(os.listdir("d"), ["f"], "names that may be listed")
        fails(errno.EACCES, os.stat, "d/f")
        os.chmod("d", 0o300)
        fails(errno.EACCES, os.listdir, "d")
        equal(read("d/f"), b"y", "content")
        os.chmod("d", 0o700)

    if os.getuid():
        run()
    else:
        os.chown(".", ADA, ADA)
        as_user(ADA, run)


@check()
def descriptor_keeps_its_rights():
    """What a descriptor was opened for it may go on doing when the mode is taken away."""

    def run():
        with opened("f", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o000) as fd:
            os.write(fd, b"one")
            fails(errno.EACCES, os.open, "f", os.O_RDONLY)
            equal(os.pread(fd, 9, 0), b"one", "content")
            os.ftruncate(fd, 1)
        os.chmod("f", 0o600)
        equal(read("f"), b"o", "content by name")

    if os.getuid():
        run()
    else:
        os.chown(".", ADA, ADA)
        as_user(ADA, run)


@check()
def umask_takes_from_the_mode():
    """The umask takes bits from what open, mkdir, mkfifo ask for, and not from chmod."""
    os.umask(0o027)
    os.close(os.open("f", os.O_WRONLY | os.O_CREAT, 0o666))
    os.mkdir("d", 0o777)
    os.mkfifo("p", 0o666)
    equal((mode_of("f"), mode_of("d"), mode_of("p")), (0o640, 0o750, 0o640), "modes")
    os.chmod("f", 0o4777)
    equal(mode_of("f"), 0o4777, "mode after chmod")
    os.umask(0)
    os.close(os.open("g", os.O_WRONLY | os.O_CREAT, 0o7777))
    equal(mode_of("g"), 0o7777, "mode without umask")


@check()
def access_answers_for_the_mode():
    """access(2) knows rights, missing files, and that no execute bit means no execution."""
    make("f", b"x", 0o600)
    true(os.access("f", os.R_OK | os.W_OK), "own file is not readable and writable")
    true(not os.access("f", os.X_OK), "executable without a bit")
    fails(errno.EACCES, faccessat2, "f", os.X_OK, 0)
    fails(errno.ENOENT, faccessat2, "none", os.F_OK, 0)
    os.chmod("f", 0o700)
    faccessat2("f", os.X_OK, AT_EACCESS)
    fails(errno.EINVAL, faccessat2, "f", os.F_OK, 1 << 20)


def old_shared():
    make("f", b"old", 0o600)
    os.mkdir("d", 0o700)
    make("d/f", b"old", 0o644)


@check(before=old_shared)
def mode_and_content_of_an_existing_file():
    """chmod of what was there before changes the mode alone; a write keeps the mode."""
    before = os.stat("f")
    os.chmod("f", 0o640)
    after = os.stat("f")
    equal((stat.S_IMODE(after.st_mode), after.st_ino, after.st_mtime_ns), (0o640, before.st_ino, before.st_mtime_ns), "file")
    with opened("f", os.O_WRONLY | os.O_APPEND) as fd:
        os.write(fd, b" new")
    equal((mode_of("f"), read("f"), owner_of("f")), (0o640, b"old new", (os.getuid(), os.getgid())), "after a write")
    os.chmod("d", 0o1755)
    equal((mode_of("d"), read("d/f")), (0o1755, b"old"), "directory")


@check(root=True)
def others_are_kept_out():
    """Another user neither reads, writes, lists nor walks where the mode does not let it."""
    owned("private", ADA, ADA, 0o600)
    owned("public", ADA, ADA, 0o644)
    os.mkdir("dark", 0o700)
    os.mkdir("through", 0o711)
    make("through/f", b"known", 0o644)

    def run():
        fails(errno.EACCES, os.open, "private", os.O_RDONLY)
        equal(read("public"), b"x", "content")
        fails(errno.EACCES, os.open, "public", os.O_WRONLY)
        fails(errno.EACCES, os.truncate, "public", 0)
        fails(errno.EACCES, os.listdir, "dark")
        fails(errno.EACCES, os.stat, "dark/x")
        fails(errno.EACCES, os.listdir, "through")
        equal(read("through/f"), b"known", "a known name")
        fails(errno.EACCES, os.open, "new", os.O_WRONLY | os.O_CREAT)
        fails(errno.EPERM, os.chmod, "public", 0o666)
        fails(errno.EPERM, os.chown, "public", BEA, BEA)
        true(not os.access("private", os.R_OK), "access says it is readable")

    as_user(BEA, run)


def old_as_root():
    if os.getuid() == 0:
        owned("grouped", ADA, TEAM, 0o664, b"old")
        os.mkdir("sticky")
        os.chmod("sticky", 0o1777)
        owned("sticky/ada", ADA, ADA, 0o666)
        owned("sticky/bea", BEA, BEA, 0o666)


@check(root=True, before=old_as_root)
def supplementary_groups_count():
    """A member by supplementary group writes, also to a file from before; one who is none does not."""

    def run():
        with opened("grouped", os.O_WRONLY | os.O_APPEND) as fd:
            os.write(fd, b" bea")

    as_user(BEA, run, groups=[1004, TEAM])
    equal((read("grouped"), owner_of("grouped"), mode_of("grouped")), (b"old bea", (ADA, TEAM), 0o664), "the file")
    as_user(BEA, lambda: fails(errno.EACCES, os.open, "grouped", os.O_WRONLY), groups=[1004])
    os.mkdir("team", 0o770)
    os.chown("team", 0, TEAM)
    os.chmod("team", 0o770)
    as_user(BEA, lambda: make("team/f"), groups=range(1004, 1100))
    equal(owner_of("team/f"), (BEA, BEA), "owner of a new file")
    as_user(BEA, lambda: fails(errno.EACCES, os.listdir, "team"), groups=[1004])


@check(root=True, before=old_as_root)
def sticky_directory_protects_from_others():
    """In a sticky directory only the file's or the directory's owner unlinks and renames."""

    def run():
        fails(errno.EPERM, os.unlink, "sticky/ada")
        fails(errno.EPERM, os.rename, "sticky/ada", "sticky/mine")
        fails(errno.EPERM, os.rename, "sticky/bea", "sticky/ada")
        make("sticky/new")
        os.rename("sticky/bea", "sticky/new")
        os.unlink("sticky/new")

    as_user(BEA, run)
    equal(os.listdir("sticky"), ["ada"], "names")
    os.chown("sticky", BEA, BEA)
    as_user(BEA, lambda: os.unlink("sticky/ada"))
    equal(os.listdir("sticky"), [], "names after the directory's owner came")


@check(root=True)
def sticky_directory_protects_directories():
    """Likewise for directories in it, which are neither removed nor renamed nor replaced."""
    os.mkdir("sticky")
    os.chmod("sticky", 0o1777)
    as_user(ADA, lambda: os.mkdir("sticky/ada"))

    def run():
        fails(errno.EPERM, os.rmdir, "sticky/ada")
        fails(errno.EPERM, os.rename, "sticky/ada", "sticky/mine")
        os.mkdir("sticky/bea")
        fails(errno.EPERM, os.rename, "sticky/bea", "sticky/ada")

    as_user(BEA, run)
    as_user(ADA, lambda: os.rmdir("sticky/ada"))


@check(root=True)
def new_files_are_their_makers():
    """Files, directories, links and pipes belong to the user and group that made them."""
    os.mkdir("open")
    os.chmod("open", 0o777)

    def run():
        make("open/f")
        os.mkdir("open/d")
        os.symlink("x", "open/s")
        os.mkfifo("open/p")
        os.link("open/f", "open/l")

    as_user(ADA, run, gid=TEAM)
    for name in "fdspl":
        equal(owner_of(f"open/{name}"), (ADA, TEAM), f"owner of {name}")

    def by_filesystem_ids():
        from calls import libc

        libc.setfsgid(TEAM)
        libc.setfsuid(BEA)
        make("open/fs")

    elsewhere(by_filesystem_ids)
    equal(owner_of("open/fs"), (BEA, TEAM), "owner by setfsuid")


@check(root=True)
def access_asks_the_real_user():
    """access(2) asks for the real user, with AT_EACCESS for the effective one."""
    owned("f", 0, 0, 0o600)

    def run():
        os.setresuid(ADA, 0, 0)
        fails(errno.EACCES, faccessat2, "f", os.R_OK, 0)
        faccessat2("f", os.R_OK, AT_EACCESS)
        true(not os.access("f", os.R_OK), "access for the real user")

    elsewhere(run)


@check(root=True)
def ownership_is_given_by_root_alone():
    """Only root gives a file away; its owner may give it to a group of its own, and no other."""
    owned("f", ADA, ADA, 0o644)

    def run():
        fails(errno.EPERM, os.chown, "f", BEA, -1)
        fails(errno.EPERM, os.chown, "f", -1, 1004)
        os.chown("f", -1, TEAM)
        os.chown("f", ADA, TEAM)

    as_user(ADA, run, groups=[TEAM])
    equal(owner_of("f"), (ADA, TEAM), "owner")
    os.chown("f", BEA, -1)
    equal(owner_of("f"), (BEA, TEAM), "owner after root's chown")


@check()
def setuid_goes_with_a_write():
    """A write by one without CAP_FSETID takes setuid, and setgid of an executable, from the mode."""

    def run():
        for flags, act in (
            (os.O_WRONLY, lambda fd: os.write(fd, b"y")),
            (os.O_RDWR, lambda fd: os.ftruncate(fd, 0)),
            (os.O_WRONLY | os.O_TRUNC, lambda fd: None),
        ):
            make("f", b"x")
            os.chmod("f", 0o6755)
            equal(mode_of("f"), 0o6755, "mode that was set")
            with opened("f", flags) as fd:
                act(fd)
                equal(stat.S_IMODE(os.fstat(fd).st_mode), 0o755, "mode afterwards")
            os.unlink("f")
        make("f", b"x")
        os.chmod("f", 0o6755)
        os.truncate("f", 0)
        equal(mode_of("f"), 0o755, "mode after truncate")

    if os.getuid():
        run()
    else:
        os.chown(".", ADA, ADA)
        as_user(ADA, run)


def old_setuid():
    make("f", b"old")
    os.chmod("f", 0o6777)


@check(before=old_setuid)
def setuid_of_an_existing_file_goes_with_a_write():
    """So it is for a file from before, and not with a read."""

    def run():
        read("f")
        equal(mode_of("f"), 0o6777, "mode after a read")
        with opened("f", os.O_WRONLY | os.O_APPEND) as fd:
            os.write(fd, b" new")
        equal((mode_of("f"), read("f")), (0o777, b"old new"), "mode and content after a write")

    run() if os.getuid() else as_user(ADA, run)


@check(root=True)
def setuid_goes_with_a_change_of_owner():
    """chown takes setuid and setgid from a file, root's own chown too, and leaves a directory's."""
    owned("f", ADA, ADA, 0o6755)
    os.chown("f", BEA, BEA)
    equal(mode_of("f"), 0o755, "mode of the file")
    os.mkdir("d")
    os.chmod("d", 0o2755)
    os.chown("d", BEA, BEA)
    equal(mode_of("d"), 0o2755, "mode of the directory")


@check(root=True)
def setuid_stays_with_roots_write():
    """A write by root, who has CAP_FSETID, leaves setuid."""
    owned("f", ADA, ADA, 0o6755)
    with opened("f", os.O_WRONLY) as fd:
        os.write(fd, b"y")
    equal(mode_of("f"), 0o6755, "mode")


@check(root=True)
def setgid_is_refused_to_strangers_of_the_group():
    """chmod by an owner who is not in the file's group drops setgid."""
    owned("f", ADA, TEAM, 0o755)
    as_user(ADA, lambda: os.chmod("f", 0o2755))
    equal(mode_of("f"), 0o755, "mode as a stranger")
    as_user(ADA, lambda: os.chmod("f", 0o2755), groups=[TEAM])
    equal(mode_of("f"), 0o2755, "mode as a member")


@check(root=True)
def setgid_directory_hands_down_its_group():
    """What is made in a setgid directory has its group; directories hand on the bit."""
    os.mkdir("d")
    os.chown("d", 0, TEAM)
    os.chmod("d", 0o2777)

    def run():
        make("d/f")
        os.mkdir("d/e")
        make("d/e/f")
        os.symlink("x", "d/s")
        os.close(os.open("d/setgid", os.O_WRONLY | os.O_CREAT, 0o2755))

    as_user(ADA, run)
    for name in ("f", "e", "e/f", "s", "setgid"):
        equal(owner_of(f"d/{name}"), (ADA, TEAM), f"owner of {name}")
    equal(mode_of("d/e"), 0o2755, "mode of the inner directory")
    equal(mode_of("d/setgid"), 0o755, "setgid asked for by a stranger of the group")


@check(root=True)
def two_users_share_a_file():
    """Two users write in turn to a file that both may write; neither changes owner or mode."""
    owned("f", ADA, TEAM, 0o660, b"")

    def run(uid):
        become(uid, uid, [TEAM])
        for _ in range(20):
            with opened("f", os.O_WRONLY | os.O_APPEND) as fd:
                os.write(fd, b"%d\n" % uid)

    for process in [Process(run, ADA), Process(run, BEA)]:
        process.result()
    equal(sorted(read("f").split()), sorted([b"1002"] * 20 + [b"1003"] * 20), "lines")
    equal((owner_of("f"), mode_of("f")), ((ADA, TEAM), 0o660), "owner and mode")
