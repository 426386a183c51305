"""Runs the table of conformance checks.

    run.py list                              each check as a JSON line: name, says, group, root
    run.py prepare TOP [WORD ...]           makes each check's directory TOP/NAME, with what it wants there before
    run.py run TOP [--prepare] [WORD ...]   runs the checks in them; a JSON line each: name, outcome, detail, seconds
    run.py fingerprint TOP                  a JSON object: for each check's directory, what identifies all that is in it

`run` first says the type of the filesystem that TOP is on. `outcome` is pass, fail, or refused: the base cannot do it, which is for the plain directory to confirm.
WORD is a module's name or a check's name; without it, all run but the modules in APART.
"""
import argparse
import contextlib
import gc
import hashlib
import importlib
import json
import os
import pathlib
import select
import shutil
import signal
import time

import table

# What wants a filesystem of its own kind, or much time: these run only when they are named.
APART = {"space", "crowd"}
SECONDS = 60
HERE = pathlib.Path(__file__).resolve().parent
for module in sorted(HERE.glob("*.py")):
    if module.stem not in ("run", "table", "calls"):
        importlib.import_module(module.stem)


def chosen(words):
    is_root = os.geteuid() == 0
    for one in table.CHECKS.values():
        if one.root and not is_root:
            continue
        if words and one.group not in words and one.name not in words:
            continue
        if not words and one.group in APART:
            continue
        yield one


def prepare(top, one):
    here = os.path.join(top, one.name)
    os.makedirs(here, 0o755)
    if one.before is None:
        return
    back = os.open(".", os.O_PATH | os.O_DIRECTORY)
    os.chdir(here)
    try:
        one.before()
    finally:
        os.fchdir(back)
        os.close(back)


def outcome_of(one, here):
    """What the check says, as the process that runs it tells: it may also die, or hang."""
    try:
        os.chdir(here)
        value = one.run()
        return {"outcome": "pass", "detail": "" if value is None else str(value)}
    except table.Refused as refused:
        return {"outcome": "refused", "detail": str(refused)}
    except BaseException as error:  # noqa: B902
        return {"outcome": "fail", "detail": table.describe(error)}


def run(one, top):
    reading, writing = os.pipe()
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.close(reading)
        told = outcome_of(one, os.path.join(top, one.name))
        os.write(writing, json.dumps(told).encode())
        os._exit(0)
    os.close(writing)
    told = b""
    while True:
        left = begun + SECONDS - time.monotonic()
        if left <= 0 or not select.select([reading], [], [], left)[0]:
            result = {"outcome": "fail", "detail": f"did not end within {SECONDS} s"}
            break
        piece = os.read(reading, 65536)
        told += piece
        if not piece or told.endswith(b"}"):
            result = json.loads(told) if told else None
            break
    os.close(reading)
    with contextlib.suppress(ProcessLookupError):
        # Whatever it left running; a check that hangs is still there itself.
        os.killpg(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    if result is None:
        result = {"outcome": "fail", "detail": f"died with status {status:#x}"}
    return {"name": one.name, **result, "seconds": round(time.monotonic() - begun, 3)}


def space(path):
    at = os.statvfs(path)
    return at.f_bavail * at.f_frsize


def empty(directory, wanted):
    """What a check that fills its filesystem left must not be in the next one's way."""
    for entry in os.scandir(directory):
        shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)
    # FUSE gives a file's space back when the kernel has forgotten it, a moment after.
    table.until(lambda: space(directory) > wanted * 0.9, f"space after {directory}")


def filesystem_of(path):
    """The type of the filesystem, as the mount table has it."""
    device = os.stat(path).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo") as mounts:
        types = [line.split(" - ")[1].split()[0] for line in mounts if line.split()[2] == wanted]
    return types[-1] if types else "unknown"


def fingerprint(directory):
    """Names, contents, modes, owners, attributes, modification times and inode numbers of a tree, as one number."""
    seen, state = {}, hashlib.sha256()

    def add(path, entry):
        at = entry.stat(follow_symlinks=False)
        if at.st_ino not in seen:
            content = b""
            if entry.is_symlink():
                content = os.fsencode(os.readlink(path))
            elif entry.is_file():
                with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOATIME), "rb") as file:
                    content = hashlib.file_digest(file, "sha256").digest()
            attributes = {}
            if not entry.is_symlink():
                with contextlib.suppress(OSError):
                    attributes = {name: os.getxattr(path, name) for name in sorted(os.listxattr(path))}
            known = (at.st_ino, at.st_mode, at.st_uid, at.st_gid, at.st_nlink, at.st_size, at.st_blocks, at.st_mtime_ns)
            seen[at.st_ino] = repr((known, attributes, content)).encode()
        state.update(repr(path).encode() + seen[at.st_ino])
        if entry.is_dir(follow_symlinks=False):
            walk(path)

    def walk(at):
        for entry in sorted(os.scandir(at), key=lambda one: one.name):
            add(entry.path, entry)

    walk(directory)
    return state.hexdigest()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("list", "prepare", "run", "fingerprint"))
    parser.add_argument("top", nargs="?")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("words", nargs="*")
    options = parser.parse_intermixed_args()
    os.umask(0o022)
    gc.freeze()
    if options.what == "list":
        for one in table.CHECKS.values():
            print(json.dumps({"name": one.name, "says": one.says, "group": one.group, "root": one.root}))
        return
    top = os.path.abspath(options.top)
    if options.what == "fingerprint":
        print(json.dumps({name: fingerprint(os.path.join(top, name)) for name in sorted(os.listdir(top))}))
        return
    checks = list(chosen(options.words))
    if options.what == "prepare" or options.prepare:
        os.makedirs(top, exist_ok=True)
        for one in checks:
            prepare(top, one)
    if options.what == "run":
        print(json.dumps({"filesystem": filesystem_of(top)}))
        free = space(top)
        for one in checks:
            print(json.dumps(run(one, top)), flush=True)
            if one.group == "space":
                empty(os.path.join(top, one.name), free)


main()
