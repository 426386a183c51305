"""Pipes, sockets, devices, and being told of changes."""
import ctypes
import errno
import fcntl
import os
import select
import socket
import stat
import struct
import termios

from table import Process, as_user, check, elsewhere, equal, fails, make, may_be_refused, opened, read, true


@check(before=lambda: os.mkfifo("old"))
def pipe_carries_bytes_between_processes():
    """A named pipe carries bytes from one process to another, under its new name after a rename too."""
    os.mkfifo("new", 0o600)
    for name in ("old", "new"):
        true(stat.S_ISFIFO(os.lstat(name).st_mode), f"{name} is no pipe")

        def writer():
            with opened(name, os.O_WRONLY) as fd:
                os.write(fd, b"through")

        process = Process(writer)
        with opened(name) as fd:
            equal(os.read(fd, 99) + os.read(fd, 99), b"through", name)
        process.result()
        os.rename(name, "moved")
        with opened("moved", os.O_RDWR | os.O_NONBLOCK) as fd:
            os.write(fd, b"x")
            equal(os.read(fd, 9), b"x", "after a rename")
        equal(os.stat("moved").st_size, 0, "size")
        os.unlink("moved")


@check()
def pipe_without_a_reader():
    """Opening a pipe for writing without waiting is ENXIO until a reader is there; then EPIPE after it left."""
    os.mkfifo("p")
    fails(errno.ENXIO, os.open, "p", os.O_WRONLY | os.O_NONBLOCK)
    reading = os.open("p", os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open("p", os.O_WRONLY | os.O_NONBLOCK)
    os.write(writing, b"x")
    equal(os.read(reading, 9), b"x", "content")
    fails(errno.EAGAIN, os.read, reading, 9)
    os.close(reading)
    fails(errno.EPIPE, os.write, writing, b"x")
    fails(errno.ESPIPE, os.lseek, writing, 0, os.SEEK_SET)


@check()
def socket_is_bound_and_reached():
    """A socket bound to a name is reached by it, by another process, also after a rename, and not after unlink."""
    server = socket.socket(socket.AF_UNIX)
    server.bind("s")
    server.listen()
    true(stat.S_ISSOCK(os.lstat("s").st_mode), "no socket")
    fails(errno.EADDRINUSE, socket.socket(socket.AF_UNIX).bind, "s")
    fails(errno.ENXIO, os.open, "s", os.O_RDWR)

    def client(name):
        with socket.socket(socket.AF_UNIX) as own:
            own.connect(name)
            own.sendall(b"hello")

    for name in ("s", "t"):
        if name == "t":
            os.rename("s", "t")
        process = Process(client, name)
        connection, _ = server.accept()
        equal(connection.recv(9), b"hello", f"by {name}")
        process.result()
    server.close()
    fails(errno.ECONNREFUSED, client, "t")
    os.unlink("t")
    fails(errno.ENOENT, client, "t")
    make("f")
    fails(errno.ECONNREFUSED, client, "f")


@check()
def socket_names():
    """A name of 107 bytes can be bound; an abstract one makes no file; datagrams go by name."""
    long = "s" * 107
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        server.bind(long)
        client.sendto(b"datagram", long)
        equal(server.recv(99), b"datagram", "content")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0conformance-{os.getpid()}")
        equal(os.listdir("."), [long], "names")


@check(root=True)
def devices_are_made_and_opened():
    """root makes device nodes, which carry their numbers and are the device where the mount allows it."""
    with may_be_refused("mknod of a device", errno.EPERM):
        os.mknod("null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod("block", stat.S_IFBLK | 0o600, os.makedev(7, 300))
    seen = os.lstat("block")
    equal((stat.S_ISBLK(seen.st_mode), seen.st_rdev), (True, os.makedev(7, 300)), "the block device")
    true(stat.S_ISCHR(os.lstat("null").st_mode), "no character device")
    if os.statvfs(".").f_flag & os.ST_NODEV:
        fails(errno.EACCES, os.open, "null", os.O_RDWR)
        return "mounted nodev"
    with opened("null", os.O_RDWR) as fd:
        equal((os.write(fd, b"gone"), os.read(fd, 9)), (4, b""), "written and read")
    os.rename("null", "zero")
    equal(os.lstat("zero").st_rdev, os.makedev(1, 3), "numbers after a rename")
    return None


@check(root=True)
def device_zero_zero_is_a_device():
    """A character device 0/0, overlayfs's whiteout, is a file like others here."""
    with may_be_refused("mknod of 0/0", errno.EPERM):
        os.mknod("w", stat.S_IFCHR, 0)
    equal((stat.S_ISCHR(os.lstat("w").st_mode), os.listdir(".")), (True, ["w"]), "the device")
    os.unlink("w")
    equal(os.listdir("."), [], "names")


@check()
def devices_are_roots():
    """One without CAP_MKNOD makes files, pipes and sockets with mknod, and no devices."""

    def run():
        fails(errno.EPERM, os.mknod, "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        fails(errno.EPERM, os.mknod, "block", stat.S_IFBLK | 0o666, os.makedev(7, 0))
        os.mknod("f", stat.S_IFREG | 0o640)
        os.mknod("p", stat.S_IFIFO | 0o640)
        os.mknod("s", stat.S_IFSOCK | 0o640)
        equal(sorted(os.listdir(".")), ["f", "p", "s"], "names")
        make_over = [name for name in "fps" if stat.S_IMODE(os.lstat(name).st_mode) != 0o640]
        equal(make_over, [], "names with another mode")

    if os.getuid():
        run()
    else:
        os.chown(".", 1002, 1002)
        as_user(1002, run)


@check()
def polling_files():
    """A regular file is always ready for poll, and epoll refuses it with EPERM."""
    with opened("f", os.O_RDWR | os.O_CREAT) as fd:
        poll = select.poll()
        poll.register(fd, select.POLLIN | select.POLLOUT)
        equal(poll.poll(0), [(fd, select.POLLIN | select.POLLOUT)], "poll")
        with select.epoll() as epoll:
            fails(errno.EPERM, epoll.register, fd, select.EPOLLIN)


IN = {"MODIFY": 2, "ATTRIB": 4, "CLOSE_WRITE": 8, "MOVED_FROM": 64, "MOVED_TO": 128, "CREATE": 256, "DELETE": 512}
ALL_EVENTS = sum(IN.values())


class Watch:
    def __init__(self, path, mask=ALL_EVENTS):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        true(libc.inotify_add_watch(self.fd, os.fsencode(path), mask) >= 0, "inotify_add_watch failed")

    def events(self):
        """(name of the event, name of the file, cookie) of each event so far, repetitions in a row left out."""
        found = []
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return found
        at = 0
        while at < len(data):
            _, mask, cookie, length = struct.unpack_from("=iIII", data, at)
            name = data[at + 16 : at + 16 + length].rstrip(b"\0").decode()
            event = next((word for word, bit in IN.items() if mask & bit), hex(mask))
            if not found or found[-1] != (event, name, cookie):
                found.append((event, name, cookie))
            at += 16 + length
        return found


@check(before=lambda: make("old", b"x"))
def watchers_are_told_of_changes():
    """inotify tells of each change inside, by another process too, once and in order."""
    watch = Watch(".")

    def change():
        make("new", b"x")
        os.rename("new", "moved")
        with opened("old", os.O_WRONLY) as fd:
            os.write(fd, b"y")
        os.chmod("old", 0o600)
        os.unlink("moved")
        os.mkdir("d")

    elsewhere(change)
    events = watch.events()
    wanted = [
        *[("CREATE", "new"), ("MODIFY", "new"), ("ATTRIB", "new"), ("CLOSE_WRITE", "new")],
        *[("MOVED_FROM", "new"), ("MOVED_TO", "moved")],
        *[("MODIFY", "old"), ("CLOSE_WRITE", "old"), ("ATTRIB", "old"), ("DELETE", "moved"), ("CREATE", "d")],
    ]
    equal([event[:2] for event in events], wanted, "events")
    equal(events[4][2] == events[5][2] != 0, True, "a common cookie of the two names of a rename")


@check(before=lambda: make("old", b"x"))
def watch_on_a_file_stays_with_it():
    """inotify on a file goes on telling when the file is first written, after a rename, and of its end."""
    watch = Watch("old", 2 | 4 | 8 | 0x400 | 0x800)
    with opened("old", os.O_WRONLY) as fd:
        os.write(fd, b"y")
    equal([event[0] for event in watch.events()], ["MODIFY", "CLOSE_WRITE"], "events of a write")
    os.rename("old", "moved")
    equal([event[0] for event in watch.events()], ["0x800"], "events of a rename")
    os.truncate("moved", 0)
    equal([event[0] for event in watch.events()], ["MODIFY"], "events of a truncation")
    os.unlink("moved")
    equal([event[0] for event in watch.events()], ["ATTRIB", "0x400", "0x8000"], "events of the end")


@check()
def filesystem_tells_its_limits():
    """statfs tells longest name, free space no larger than all, and the same for a file, a directory, a descriptor."""
    make("f")
    told = os.statvfs(".")
    equal(told.f_namemax, 255, "longest name")
    true(0 < told.f_bavail <= told.f_bfree <= told.f_blocks, "free space and all")
    true(told.f_bsize >= 512 and told.f_frsize >= 512, "block size")
    with opened("f") as fd:
        for other in (os.statvfs("f"), os.fstatvfs(fd)):
            equal((other.f_blocks, other.f_bsize, other.f_namemax), (told.f_blocks, told.f_bsize, 255), "told otherwise")
    equal(read("f"), b"", "content")
    equal(os.pathconf("f", "PC_NAME_MAX"), 255, "pathconf")


@check()
def ioctls_that_files_lack():
    """Terminal calls on a file are ENOTTY, as on any."""
    make("f", b"12345")
    with opened("f") as fd:
        fails(errno.ENOTTY, fcntl.ioctl, fd, termios.TCGETS, bytes(60))
        equal(os.isatty(fd), False, "isatty")
        equal(struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0], 5, "FIONREAD")

