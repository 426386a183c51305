"""Extended attributes and access control lists."""
import errno
import os
import stat
import struct

from table import as_user, check, equal, fails, make, may_be_refused, opened, read, tick, true

LACKING = (errno.EOPNOTSUPP,)


def put(path, name, value, flags=0, **named):
    with may_be_refused(f"setxattr of {name.split('.')[0]}", *LACKING):
        os.setxattr(path, name, value, flags, **named)


def old_file():
    make("old", b"content")
    put("old", "user.kept", b"value")
    put("old", "user.binary", b"\0\xff\n")
    os.mkdir("d")
    put("d", "user.directory", b"d")


@check(before=old_file)
def attributes_are_set_and_read():
    """User attributes are set, read, listed and removed, on files and directories."""
    make("new")
    for name, others in (("old", ["user.binary", "user.kept"]), ("new", []), ("d", ["user.directory"])):
        put(name, "user.one", b"1")
        put(name, "user.empty", b"")
        equal((os.getxattr(name, "user.one"), os.getxattr(name, "user.empty")), (b"1", b""), f"values of {name}")
        equal(sorted(os.listxattr(name)), sorted([*others, "user.one", "user.empty"]), f"list of {name}")
        os.removexattr(name, "user.one")
        fails(errno.ENODATA, os.getxattr, name, "user.one")
        fails(errno.ENODATA, os.removexattr, name, "user.one")
        equal(sorted(os.listxattr(name)), sorted([*others, "user.empty"]), f"list of {name} after removal")


@check(before=old_file)
def attributes_stay_with_a_file():
    """Attributes from before, and new ones, stay across writes, chmod, links and renames."""
    put("old", "user.new", b"n")
    with opened("old", os.O_WRONLY) as fd:
        os.write(fd, b"CON")
    os.chmod("old", 0o600)
    os.link("old", "link")
    os.rename("old", "moved")
    for name in ("link", "moved"):
        equal({one: os.getxattr(name, one) for one in os.listxattr(name)}, {"user.kept": b"value", "user.binary": b"\0\xff\n", "user.new": b"n"}, name)
    equal(read("moved"), b"CONtent", "content")


@check()
def creating_and_replacing_are_told_apart():
    """XATTR_CREATE is EEXIST where the attribute is, XATTR_REPLACE ENODATA where it is not."""
    make("f")
    fails_if_lacking = put("f", "user.a", b"1", os.XATTR_CREATE)
    equal(fails_if_lacking, None, "setxattr")
    fails(errno.EEXIST, os.setxattr, "f", "user.a", b"2", os.XATTR_CREATE)
    fails(errno.ENODATA, os.setxattr, "f", "user.b", b"2", os.XATTR_REPLACE)
    os.setxattr("f", "user.a", b"3", os.XATTR_REPLACE)
    equal(os.getxattr("f", "user.a"), b"3", "value")


@check()
def sizes_of_attributes():
    """A buffer that is too small is ERANGE, none tells the size; long names ERANGE, long values E2BIG."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    make("f")
    put("f", "user.a", b"x" * 100)
    buffer = ctypes.create_string_buffer(200)
    equal(libc.getxattr(b"f", b"user.a", None, 0), 100, "size that is told")
    equal((libc.getxattr(b"f", b"user.a", buffer, 99), ctypes.get_errno()), (-1, errno.ERANGE), "too small a buffer")
    equal(libc.getxattr(b"f", b"user.a", buffer, 100), 100, "a buffer that fits")
    equal((libc.listxattr(b"f", buffer, 3), ctypes.get_errno()), (-1, errno.ERANGE), "too small a list")
    equal(libc.listxattr(b"f", None, 0), len("user.a") + 1, "size of the list")
    put("f", "user." + "n" * 250, b"long name")
    equal(os.getxattr("f", "user." + "n" * 250), b"long name", "value of a long name")
    fails(errno.ERANGE, os.setxattr, "f", "user." + "n" * 251, b"")
    fails(errno.E2BIG, os.setxattr, "f", "user.b", b"x" * 65537)
    put("f", "user.big", b"b" * 2000)
    equal(os.getxattr("f", "user.big"), b"b" * 2000, "a big value")


@check()
def attributes_of_links_and_pipes():
    """User attributes are for files and directories: on a link or a pipe EPERM; through a link, its target's."""
    make("f")
    put("f", "user.a", b"1")
    os.symlink("f", "s")
    os.mkfifo("p")
    equal(os.getxattr("s", "user.a"), b"1", "through a link")
    fails(errno.EPERM, os.setxattr, "s", "user.a", b"2", follow_symlinks=False)
    fails(errno.EPERM, os.setxattr, "p", "user.a", b"2")
    fails((errno.ENODATA, errno.EPERM), os.getxattr, "p", "user.a")
    fails(errno.EOPNOTSUPP, os.setxattr, "f", "nonsense.a", b"1")


@check()
def attributes_of_open_files():
    """fsetxattr and fgetxattr work on an open file, unlinked too, and not on an O_PATH descriptor."""
    with opened("f", os.O_RDWR | os.O_CREAT) as fd:
        put(fd, "user.a", b"1")
        os.unlink("f")
        os.setxattr(fd, "user.b", b"2")
        equal((os.getxattr(fd, "user.a"), sorted(os.listxattr(fd))), (b"1", ["user.a", "user.b"]), "attributes")
    with opened(".", os.O_PATH) as fd:
        fails(errno.EBADF, os.getxattr, fd, "user.a")


@check(before=old_file)
def attributes_stamp_ctime():
    """Setting and removing an attribute changes ctime, and not mtime."""
    first = os.stat("old")
    tick()
    put("old", "user.new", b"1")
    second = os.stat("old")
    tick()
    os.removexattr("old", "user.new")
    third = os.stat("old")
    true(first.st_ctime_ns < second.st_ctime_ns < third.st_ctime_ns, "ctime stood still")
    equal(third.st_mtime_ns, first.st_mtime_ns, "mtime")


@check(root=True, before=lambda: os.getuid() or (make("old"), put("old", "trusted.kept", b"t")))
def trusted_attributes_are_roots():
    """root sets and lists trusted attributes; others neither see nor set them."""
    put("old", "trusted.new", b"n")
    equal((os.getxattr("old", "trusted.kept"), os.getxattr("old", "trusted.new")), (b"t", b"n"), "values")
    equal(sorted(os.listxattr("old")), ["trusted.kept", "trusted.new"], "list")
    os.chmod("old", 0o666)

    def other():
        equal(os.listxattr("old"), [], "list of another user")
        fails(errno.ENODATA, os.getxattr, "old", "trusted.kept")
        fails(errno.EPERM, os.setxattr, "old", "trusted.kept", b"x")

    as_user(1002, other)


@check(root=True)
def attributes_need_rights():
    """Who may not write a file sets no attribute of it, and who may not read it reads none."""
    make("f", b"", 0o644)
    put("f", "user.a", b"1")

    def stranger():
        equal(os.getxattr("f", "user.a"), b"1", "value")
        fails(errno.EACCES, os.setxattr, "f", "user.a", b"2")

    as_user(1002, stranger)
    os.chmod("f", 0o600)
    as_user(1002, lambda: fails(errno.EACCES, os.getxattr, "f", "user.a"))


def capability():
    """cap_net_bind_service, as security.capability holds it."""
    return struct.pack("<IIIII", 0x02000001, 1 << 10, 0, 0, 0)


@check(root=True, before=lambda: os.getuid() or (make("old", b"x", 0o777), put("old", "security.capability", capability())))
def file_capabilities_go_with_a_write():
    """A file's capabilities go with a write, a truncation and a change of owner, by root too."""
    for name in ("old", "new"):
        for act in (
            lambda: opened_and_written(name),
            lambda: os.truncate(name, 0),
            lambda: os.chown(name, 1002, 1002),
        ):
            if not os.path.exists(name):
                make(name, b"x", 0o777)
            if "security.capability" not in os.listxattr(name):
                put(name, "security.capability", capability())
            equal(os.getxattr(name, "security.capability"), capability(), f"value of {name}")
            act()
            fails(errno.ENODATA, os.getxattr, name, "security.capability")


def opened_and_written(name):
    with opened(name, os.O_WRONLY) as fd:
        os.write(fd, b"y")


def acl(*entries):
    """An access control list as its attribute holds it: (tag, rights) or (tag, rights, id)."""
    tags = {"owner": 1, "user": 2, "group": 4, "named group": 8, "mask": 16, "other": 32}
    packed = [struct.pack("<HHI", tags[tag], rights, *(rest or [0xFFFFFFFF])) for tag, rights, *rest in entries]
    return struct.pack("<I", 2) + b"".join(packed)


ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


def old_with_default():
    os.mkdir("d")
    os.mkdir("plain")
    put("d", DEFAULT, acl(("owner", 7), ("user", 6, os.getuid()), ("group", 5), ("mask", 7), ("other", 0)))


@check(before=old_with_default)
def default_acl_is_handed_down():
    """A directory's default list replaces the umask for what is made in it, and goes on to directories."""
    wanted = acl(("owner", 7), ("user", 6, os.getuid()), ("group", 5), ("mask", 7), ("other", 0))
    os.mkdir("new")
    put("new", DEFAULT, wanted)
    os.umask(0o077)
    for directory in ("d", "new"):
        os.close(os.open(f"{directory}/f", os.O_WRONLY | os.O_CREAT, 0o666))
        os.mkdir(f"{directory}/e")
        equal(stat.S_IMODE(os.stat(f"{directory}/f").st_mode), 0o660, f"mode of a file in {directory}")
        equal(stat.S_IMODE(os.stat(f"{directory}/e").st_mode), 0o770, f"mode of a directory in {directory}")
        entries = acl(("owner", 6), ("user", 6, os.getuid()), ("group", 5), ("mask", 6), ("other", 0))
        equal(os.getxattr(f"{directory}/f", ACCESS), entries, f"list of a file in {directory}")
        equal(os.getxattr(f"{directory}/e", DEFAULT), wanted, f"default list of a directory in {directory}")
    make("plain/f", b"", 0o640)
    fails(errno.ENODATA, os.getxattr, "plain/f", ACCESS)


@check()
def acl_and_mode_agree():
    """Setting a list changes the mode's bits, and chmod changes the list's mask."""
    make("f")
    put("f", ACCESS, acl(("owner", 6), ("user", 4, os.getuid()), ("group", 0), ("mask", 4), ("other", 0)))
    equal(stat.S_IMODE(os.stat("f").st_mode), 0o640, "mode")
    os.chmod("f", 0o660)
    equal(os.getxattr("f", ACCESS), acl(("owner", 6), ("user", 4, os.getuid()), ("group", 0), ("mask", 6), ("other", 0)), "list")
    put("f", ACCESS, acl(("owner", 6), ("group", 4), ("other", 4)))
    equal((stat.S_IMODE(os.stat("f").st_mode), os.listxattr("f")), (0o644, []), "mode and list after a plain one")
    fails(errno.EINVAL, os.setxattr, "f", ACCESS, struct.pack("<I", 2) + b"odd")
    fails((errno.EACCES, errno.EPERM), os.setxattr, "f", DEFAULT, acl(("owner", 7), ("group", 5), ("other", 0)))


@check(root=True)
def acl_lets_a_named_user_in():
    """A named user and a named group have what the list gives them, within its mask, and others nothing."""
    make("f", b"x", 0o600)
    put("f", ACCESS, acl(("owner", 6), ("user", 6, 1002), ("group", 0), ("named group", 4, 1005), ("mask", 6), ("other", 0)))

    def named():
        with opened("f", os.O_WRONLY | os.O_APPEND) as fd:
            os.write(fd, b"y")

    as_user(1002, named)
    as_user(1003, lambda: equal(read("f"), b"xy", "content for the group"), groups=[1005])
    as_user(1003, lambda: fails(errno.EACCES, os.open, "f", os.O_WRONLY), groups=[1005])
    as_user(1003, lambda: fails(errno.EACCES, os.open, "f", os.O_RDONLY))
    os.chmod("f", 0o640)
    as_user(1002, lambda: fails(errno.EACCES, os.open, "f", os.O_WRONLY))
