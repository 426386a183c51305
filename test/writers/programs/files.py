"""Python's ways to write a file, each done to protected and to unprotected paths; prints what it observes."""
import fcntl
import mmap
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from observe import see, stat_line, tree


def read(path, mode="r"):
    with open(path, mode) as f:
        return f.read()


def write_with(path, mode, data):
    with open(path, mode) as f:
        return f.write(data)


def modes(old, new):
    see("r", lambda: read(old))
    see("rb", lambda: read(old, "rb"))
    see("a", lambda: write_with(old, "a", "appended\n"))
    see("a back", lambda: read(old))

    def update():
        with open(old, "r+") as f:
            f.seek(2)
            f.write("UPDATED")
            f.seek(0)
            return f.read()

    see("r+", update)
    see("rb+", lambda: write_with(old, "rb+", b"\x00\xff"))
    see("rb+ back", lambda: read(old, "rb"))

    def append_and_read():
        with open(old, "a+") as f:
            f.write("a+\n")
            f.seek(0)
            return f.read()[:4], f.tell() > 0, f.fileno() > 2

    see("a+ (undecodable)", append_and_read)
    see("ab", lambda: write_with(old, "ab", b"ab\n"))
    see("x on old", lambda: write_with(old, "x", "no"))
    see("x on new", lambda: write_with(new, "x", "exclusive\n"))
    see("x again", lambda: write_with(new, "x", "no"))
    see("w", lambda: write_with(old, "w", "rewritten\n"))
    see("w back", lambda: read(old))
    see("w+", lambda: write_with(old, "w+", "and again\n"))
    see("wb", lambda: write_with(new, "wb", b"\x00" * 5000))
    see("wb back", lambda: read(new, "rb"))
    see("r of nothing", lambda: read(new + ".nothing"))
    see("w in no directory", lambda: write_with("none/" + new, "w", "no"))
    see("open as directory", lambda: os.open(old, os.O_RDONLY | os.O_DIRECTORY))


def descriptors(old, new):
    def flags(path, flag, data):
        fd = os.open(path, flag, 0o640)
        try:
            return os.write(fd, data)
        finally:
            os.close(fd)

    see("O_CREAT|O_EXCL", lambda: flags(new + ".tmp1", os.O_WRONLY | os.O_CREAT | os.O_EXCL, b"one"))
    see("O_CREAT|O_EXCL again", lambda: flags(new + ".tmp1", os.O_WRONLY | os.O_CREAT | os.O_EXCL, b"two"))
    see("mode", lambda: stat_line(new + ".tmp1"))
    see("O_TRUNC", lambda: flags(old, os.O_WRONLY | os.O_TRUNC, b"truncated\n"))
    see("O_APPEND", lambda: flags(old, os.O_WRONLY | os.O_APPEND, b"more\n"))
    see("read back", lambda: read(old))
    see("bytes path", lambda: flags(os.fsencode(old), os.O_WRONLY | os.O_APPEND, b"by bytes\n"))
    see("write to a read-only descriptor", lambda: flags(old, os.O_RDONLY, b"no"))

    def positional():
        fd = os.open(old, os.O_RDWR)
        os.pwrite(fd, b"PWRITE", 100)
        os.fsync(fd)
        os.fdatasync(fd)
        got = os.pread(fd, 200, 0)
        os.ftruncate(fd, 50)
        size = os.fstat(fd).st_size
        os.fchmod(fd, 0o600)
        os.posix_fallocate(fd, 0, 9000)
        hole = os.lseek(fd, 0, os.SEEK_END)
        os.close(fd)
        return got, size, hole

    see("pread, pwrite, fsync, ftruncate, fchmod, fallocate", positional)

    def seen_by_two():
        a = os.open(old, os.O_RDWR)
        b = os.open(old, os.O_RDONLY)
        os.pwrite(a, b"seen at once", 0)
        got = os.pread(b, 12, 0)
        same = os.fstat(a).st_ino == os.fstat(b).st_ino == os.stat(old).st_ino
        os.close(a)
        os.close(b)
        return got, same

    see("two descriptors", seen_by_two)
    inode = os.stat(old).st_ino
    see("write", lambda: flags(old, os.O_WRONLY, b"INODE"))
    see("inode is kept over a write", lambda: os.stat(old).st_ino == inode)

    def unlinked():
        path = new + ".tmp2"
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.write(fd, b"alive")
        os.unlink(path)
        os.write(fd, b" still")
        os.fchmod(fd, 0o644)
        os.ftruncate(fd, 7)
        got = os.pread(fd, 100, 0), os.fstat(fd).st_nlink, os.fstat(fd).st_size
        os.close(fd)
        return got, os.path.exists(path)

    see("unlinked and open", unlinked)

    def directory_descriptor():
        fd = os.open(os.path.dirname(old) or ".", os.O_RDONLY | os.O_DIRECTORY)
        name = os.path.basename(new) + ".tmp3"
        at = os.open(name, os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=fd)
        os.write(at, b"at")
        os.close(at)
        os.fsync(fd)
        got = name in os.listdir(fd), os.stat(name, dir_fd=fd).st_size
        os.unlink(name, dir_fd=fd)
        os.close(fd)
        return got

    see("openat, fsync of a directory, unlinkat", directory_descriptor)


def names(old, new):
    here = os.path.dirname(old) or "."
    see("write_text", lambda: pathlib.Path(new).write_text("by pathlib\n"))
    see("read_text", lambda: pathlib.Path(new).read_text())
    see("replace", lambda: os.replace(new, old))
    see("replaced", lambda: (read(old), os.path.exists(new)))
    see("write tmp", lambda: write_with(old + ".tmp", "w", "new content\n"))
    see("rename onto", lambda: os.rename(old + ".tmp", old))
    see("read back", lambda: read(old))
    see("rename nothing", lambda: os.rename(new, old))
    see("rename to itself", lambda: os.rename(old, old))
    see("link", lambda: os.link(old, new))
    see("linked", lambda: (os.stat(old).st_nlink, os.stat(new).st_nlink, os.path.samefile(old, new)))
    see("write by the second name", lambda: write_with(new, "a", "both\n"))
    see("read by the first", lambda: read(old))
    see("link again", lambda: os.link(old, new))
    see("rename onto its own link", lambda: os.rename(old, new))
    see("both names live", lambda: (os.path.exists(old), os.path.exists(new)))
    see("unlink", lambda: os.unlink(new))
    see("unlink again", lambda: os.unlink(new))
    see("nlink", lambda: os.stat(old).st_nlink)
    see("symlink", lambda: os.symlink(os.path.basename(old), new))
    see("readlink", lambda: os.readlink(new))
    see("through the symlink", lambda: (write_with(new, "a", "linked\n"), read(old)))
    see("symlink again", lambda: os.symlink("x", new))
    see("unlink the symlink", lambda: os.unlink(new))
    see("truncate", lambda: os.truncate(old, 4))
    see("truncate longer", lambda: os.truncate(old, 10000))
    see("size", lambda: (os.stat(old).st_size, read(old, "rb")))
    see("utime", lambda: os.utime(old, ns=(1_600_000_000_111_222_333, 1_500_000_000_444_555_666)))
    see("times", lambda: (os.stat(old).st_atime_ns, os.stat(old).st_mtime_ns))
    see("chmod", lambda: os.chmod(old, 0o751))
    see("mode", lambda: stat_line(old))
    see("access", lambda: (os.access(old, os.X_OK), os.access(old, os.W_OK)))
    see("chown to oneself", lambda: os.chown(old, os.getuid(), os.getgid()))
    see("setxattr", lambda: os.setxattr(old, "user.by", b"writer \x00\xff"))
    see("listxattr", lambda: sorted(os.listxattr(old)))
    see("getxattr", lambda: os.getxattr(old, "user.by"))
    see("removexattr", lambda: os.removexattr(old, "user.by"))
    see("getxattr of nothing", lambda: os.getxattr(old, "user.by"))
    see("unlink old", lambda: os.unlink(old))
    see("gone", lambda: (os.path.exists(old), os.path.basename(old) in os.listdir(here)))
    see("open gone", lambda: read(old))
    see("again", lambda: write_with(old, "x", "born again\n"))
    see("read again", lambda: read(old))
    see("xattrs of the new one", lambda: os.listxattr(old))


def whole(old, new):
    see("copy", lambda: shutil.copy("README.md", new) == new)
    see("copied", lambda: (read(new), stat_line(new)))
    see("copy2", lambda: shutil.copy2("src/tool.sh", new) == new)
    see("times kept", lambda: os.stat(new).st_mtime_ns == os.stat("src/tool.sh").st_mtime_ns)
    see("mode kept", lambda: stat_line(new))
    see("copyfile onto old", lambda: shutil.copyfile("src/big.txt", old) == old)
    see("size", lambda: os.stat(old).st_size)
    see("move", lambda: shutil.move(new, new + ".bak") == new + ".bak")
    see("remove", lambda: os.remove(new + ".bak"))

    def atomic():
        with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(old) or ".", delete=False) as f:
            f.write("by tempfile\n")
            f.flush()
            os.fsync(f.fileno())
        os.chmod(f.name, 0o644)
        os.replace(f.name, old)
        return read(old)

    see("NamedTemporaryFile and replace", atomic)

    def scratch():
        with tempfile.TemporaryFile(dir=os.path.dirname(old) or ".") as f:
            f.write(b"never named")
            f.seek(0)
            return f.read()

    see("TemporaryFile", scratch)

    def mapped():
        with open(old, "r+b") as f:
            f.truncate(8192)
            with mmap.mmap(f.fileno(), 8192) as m:
                m[0:6] = b"MAPPED"
                m[8000:8005] = b"ENDED"
                m.flush()
                seen = read(old, "rb")[:6], read(old, "rb")[8000:8005]
                f.seek(10)
                f.write(b"by write")
                f.flush()
                return seen, m[10:18]

    see("shared mapping", mapped)
    see("after unmapping", lambda: read(old, "rb"))

    def private():
        with open(old, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY) as m:
            m[0:3] = b"xxx"
            return m[0:3], read(old, "rb")[0:3]

    see("private mapping", private)


def locks(old, new):
    child = (
        "import fcntl,sys\n"
        "f=open(sys.argv[1],'r+')\n"
        "try: getattr(fcntl,sys.argv[2])(f, fcntl.LOCK_EX|fcntl.LOCK_NB); print('got')\n"
        "except OSError as e: print(type(e).__name__)\n"
    )

    def other(kind):
        return subprocess.run([sys.executable, "-c", child, old, kind], capture_output=True, text=True).stdout.strip()

    for kind in ("flock", "lockf"):
        with open(old, "r+") as f:
            see(kind, lambda: getattr(fcntl, kind)(f, fcntl.LOCK_EX | fcntl.LOCK_NB))
            see(f"{kind} by another", lambda: other(kind))
            see(f"un{kind}", lambda: getattr(fcntl, kind)(f, fcntl.LOCK_UN))
            see(f"{kind} by another, then", lambda: other(kind))


def trees():
    see("makedirs", lambda: os.makedirs("memory/made/x/y"))
    see("makedirs again", lambda: os.makedirs("memory/made/x/y"))
    see("mkdir on a file", lambda: os.mkdir("memory/old.md"))
    see("mkdir in a file", lambda: os.mkdir("memory/old.md/x"))
    see("write below", lambda: write_with("memory/made/x/y/z.md", "w", "z\n"))
    see("rmdir full", lambda: os.rmdir("memory/made/x"))
    see("rmdir of old", lambda: os.rmdir("memory/people"))
    see("copytree into memory", lambda: shutil.copytree("src", "memory/src-copy", symlinks=True) and None)
    see("copytree of memory", lambda: shutil.copytree("memory/people", "memory/people-copy", symlinks=True) and None)
    see("copytree out of memory", lambda: shutil.copytree("memory/deep", "data/deep-copy", symlinks=True) and None)
    see("rename an old directory", lambda: os.rename("memory/people", "memory/folk"))
    see("its old name", lambda: os.path.exists("memory/people"))
    see("its files", lambda: sorted(os.listdir("memory/folk")))
    see("read there", lambda: read("memory/folk/ada.md"))
    see("write there", lambda: write_with("memory/folk/ada.md", "a", "Countess.\n"))
    see("its hard link", lambda: read("memory/folk/ada-again.md"))
    see("a new directory at the old name", lambda: os.mkdir("memory/people"))
    see("is empty", lambda: os.listdir("memory/people"))
    see("rmtree of an old one", lambda: shutil.rmtree("memory/deep"))
    see("mkdir again", lambda: os.mkdir("memory/deep"))
    see("is empty too", lambda: os.listdir("memory/deep"))
    see("rename onto an empty one", lambda: os.rename("memory/made", "memory/deep"))
    see("rename onto a full one", lambda: os.rename("memory/folk", "memory/deep"))
    see("rename a file onto a directory", lambda: os.rename("memory/old.md", "memory/deep"))
    see("rename a directory onto a file", lambda: os.rename("memory/deep", "memory/old.md"))
    see("rename into itself", lambda: os.rename("memory/deep", "memory/deep/x/inner"))
    see("rename code", lambda: os.rename("src/lib", "src/library"))
    see("rmtree code", lambda: shutil.rmtree("src/library"))
    # A copy without hard links: moved between classes it is copied file by file, as between filesystems.
    see("move a directory of memory out", lambda: shutil.move("memory/people-copy", "data/folk") and None)
    see("it left", lambda: (os.path.exists("memory/people-copy"), sorted(os.listdir("data/folk"))))
    see("move a directory of code in", lambda: shutil.move("names", "memory/names") and None)
    see("rmtree memory", lambda: shutil.rmtree("memory"))
    see("no memory", lambda: os.path.exists("memory"))
    see("new memory", lambda: os.mkdir("memory"))
    see("nothing old in it", lambda: os.listdir("memory"))
    see("a file in it", lambda: write_with("memory/fresh.md", "w", "fresh\n"))


TARGETS = [
    ("memory/old.md", "memory/new.md"),
    ("memory/people/charles.md", "memory/people/new.md"),
    ("src/main.py", "src/new.py"),
    ("logs/a.jsonl", "logs/new.jsonl"),
    ("logs/plain.txt", "logs/new.txt"),
    ("DELIVERABLES.md", "DELIVERABLES.md.new"),
    ("docs/DELIVERABLES.md", "docs/DELIVERABLES.md.bak"),
    ("MEMORY.md", "MEMORY.md.tmp9"),
    ("README.md", "README.txt"),
    ("memory/a\nb.md", "memory/c\nd.md"),
    (os.fsdecode(b"memory/\xc3\x28.md"), os.fsdecode(b"memory/\xff.md")),
    (os.fsdecode(b"names/\xff.jsonl"), os.fsdecode(b"names/\xfe.jsonl")),
    ("names/" + "n" * 255, "names/m"),
]
PARTS = {"modes": modes, "descriptors": descriptors, "names": names, "whole": whole, "locks": locks}

os.umask(0o022)
wanted = sys.argv[1]
if wanted == "trees":
    trees()
else:
    for old, new in TARGETS:
        print(f"== {wanted} {old!r}")
        PARTS[wanted](old, new)
tree("everything", ".") if wanted == "trees" else [tree(top, top) for top in ("memory", "src", "logs", "docs", "names")]
