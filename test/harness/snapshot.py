"""Prints a directory tree as JSON: one object a path, names and contents as latin1 strings, so that every byte lives.

Python, since Node has no extended attributes; one process a tree. Opens files with O_NOATIME where it may.
"""
import hashlib
import json
import os
import stat
import sys

KINDS = {
    stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket", stat.S_IFCHR: "character", stat.S_IFBLK: "block",
}


def digest(path):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOATIME | os.O_NOFOLLOW)
    except PermissionError:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except PermissionError:
            return "unreadable"
    with os.fdopen(fd, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def xattrs(path):
    try:
        names = os.listxattr(path, follow_symlinks=False)
        return {n: os.getxattr(path, n, follow_symlinks=False).decode("latin1") for n in sorted(names)}
    except OSError:
        return {}


def entry(path, shown):
    st = os.lstat(path)
    kind = KINDS[stat.S_IFMT(st.st_mode)]
    out = {
        "path": shown.decode("latin1"), "type": kind, "mode": stat.S_IMODE(st.st_mode), "uid": st.st_uid,
        "gid": st.st_gid, "size": st.st_size, "nlink": st.st_nlink, "ino": str(st.st_ino),
        "mtime": str(st.st_mtime_ns), "ctime": str(st.st_ctime_ns), "rdev": st.st_rdev,
        "blocks": st.st_blocks, "xattrs": xattrs(path), "content": "", "target": "",
    }
    if kind == "file":
        out["content"] = digest(path)
    elif kind == "symlink":
        out["target"] = os.readlink(path).decode("latin1")
    return out


def walk(top, shown, out):
    for name in sorted(os.listdir(top)):
        path = os.path.join(top, name)
        below = shown + b"/" + name if shown else name
        made = entry(path, below)
        out.append(made)
        if made["type"] == "directory":
            walk(path, below, out)


def main():
    top = os.fsencode(sys.argv[1])
    out = [entry(top, b"")]
    walk(top, b"", out)
    json.dump(out, sys.stdout)


main()
