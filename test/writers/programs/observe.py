"""What a writer program sees, as lines that are the same on every machine and in every run: no pids, no inode numbers."""
import errno
import hashlib
import os
import stat
import time

START = time.time()


def plain(value):
    text = repr(value)
    return text if len(text) <= 200 else f"{len(text)} of {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def see(label, action):
    """Runs action and prints its result, or the error's name."""
    try:
        print(f"{label}: {plain(action())}", flush=True)
    except OSError as error:
        print(f"{label}: {errno.errorcode.get(error.errno, error.errno)}", flush=True)
    except Exception as error:  # sqlite3's own errors, shutil.Error
        print(f"{label}: {type(error).__name__} {error}", flush=True)


def stat_line(path):
    st = os.lstat(path)
    kind = stat.filemode(st.st_mode)
    if stat.S_ISDIR(st.st_mode):
        return f"{kind} {st.st_uid}:{st.st_gid}"
    fresh = st.st_mtime > START - 2
    if fresh and st.st_mtime > time.time() + 2:
        fresh = "from the future"
    return f"{kind} {st.st_uid}:{st.st_gid} size={st.st_size} nlink={st.st_nlink} fresh={fresh}"


def tree(label, top):
    """Prints everything below top: names, modes, owners, sizes, contents."""
    print(f"tree {label}", flush=True)
    for root, dirs, files in os.walk(top, onerror=lambda error: print("  error", error.errno)):
        dirs.sort()
        for name in sorted(dirs + files):
            path = os.path.join(root, name)
            line = f"  {os.path.relpath(path, top)!r} {stat_line(path)}"
            if os.path.islink(path):
                line += f" -> {os.readlink(path)}"
            elif os.path.isfile(path) and not name.endswith((".db", "-wal", "-shm")):
                with open(path, "rb") as f:
                    line += f" {hashlib.sha256(f.read()).hexdigest()[:12]}"
            print(line, flush=True)
