"""Says what it sees, in its working directory, over a Unix socket: the same program outside a window and inside it.

One JSON request a line, one JSON answer a line. A state is what stat, the content and the listing say of a path together,
with the parts that the asker wants left out; a path that starts with "@" is a descriptor, a mapping or a working
directory that `hold` made.
"""
import hashlib
import json
import mmap
import os
import socket
import stat
import subprocess
import sys
import time

held = {}
started = []


def names(directory):
    return sorted(os.listdir(directory))


def file_state(st, read):
    out = {"mode": st.st_mode, "size": st.st_size, "mtime": str(st.st_mtime_ns), "nlink": st.st_nlink, "ino": str(st.st_ino)}
    if stat.S_ISREG(st.st_mode):
        data = read(st)
        out.update(length=len(data), content=hashlib.sha256(data).hexdigest())
    return out


def pread_all(fd):
    parts, at = [], 0
    while part := os.pread(fd, 1 << 20, at):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def read_path(path):
    with open(path, "rb", buffering=0) as f:
        return f.readall()


def state(path):
    try:
        if path.startswith("@"):
            kind, it = held[path]
            if kind == "fd":
                return file_state(os.fstat(it), lambda _: pread_all(it))
            if kind == "map":
                return {"content": hashlib.sha256(it[:]).hexdigest()}
            os.fchdir(it)
            try:
                return {"names": names("."), "inside": file_state(os.stat("inside"), lambda _: read_path("inside"))}
            finally:
                os.chdir(top)
        st = os.lstat(path)
        if stat.S_ISLNK(st.st_mode):
            return {"target": os.readlink(path), "mtime": str(st.st_mtime_ns), "ino": str(st.st_ino)}
        if stat.S_ISDIR(st.st_mode):
            # The size is the filesystem's own affair.
            return {"mode": st.st_mode, "mtime": str(st.st_mtime_ns), "nlink": st.st_nlink, "ino": str(st.st_ino), "names": names(path)}
        return file_state(st, lambda _: read_path(path))
    except OSError as error:
        return {"errno": error.errno}


def hold(name, path, how):
    if how == "map":
        with open(path, "rb") as f:
            held[name] = ("map", mmap.mmap(f.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ))
    else:
        flags = os.O_DIRECTORY if how == "cwd" else 0
        held[name] = (how, os.open(path, os.O_RDONLY | flags))


def until(wanted, timeout):
    """When all paths were seen in the wanted state, on the clock that all processes share; each counts when it is."""
    left = dict(wanted)
    end = time.monotonic() + timeout
    while left and time.monotonic() < end:
        for path in list(left):
            if state(path) == left[path]:
                del left[path]
        if left:
            time.sleep(0.001)
    return {"at": time.monotonic_ns() / 1e6, "left": {path: [left[path], state(path)] for path in left}}


def start(argv):
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, encoding="latin1")


def finish(process):
    out, err = process.communicate()
    return {"code": process.returncode, "out": out, "err": err}


def answer(request):
    match request:
        case {"do": "states", "paths": paths}:
            return {path: state(path) for path in paths}
        case {"do": "until", "states": states, "timeout": timeout}:
            return until(states, timeout)
        case {"do": "hold", "name": name, "path": path, "how": how}:
            hold(name, path, how)
            return {}
        case {"do": "run", "argv": argv}:
            return finish(start(argv))
        case {"do": "start", "argv": argv}:
            started.append(start(argv))
            return {}
        case {"do": "finish"}:
            return finish(started.pop(0))


top = os.getcwd()
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(1)
connection = listener.accept()[0]
with connection.makefile("rw") as stream:
    for line in stream:
        stream.write(json.dumps(answer(json.loads(line))) + "\n")
        stream.flush()
