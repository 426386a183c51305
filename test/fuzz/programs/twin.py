"""Runs a sequence on a plain directory and in the mount, one operation after the other, and stops where they differ.

twin.py RUN.json, inside the window: {plain, mount, mode, operations, outside, out}. Each worker is two processes, one
a side. The mount goes first, since what it refuses by design (differences.py) must not happen on the plain side either.
Writes to `out`: the difference if there is one, the last operations, and what the lower must look like in the end.
"""
import json
import os
import pickle
import select
import socket
import sys
import time

import names
from differences import documented, is_directory, is_fifo
from generate import WORKERS
from perform import Worker, libc, serve, token

ANSWER_WITHIN = 20  # seconds; a worker that died or hangs is a difference too
TREE_EVERY = 40
SETTLE = 5  # seconds after which an outside change that is not seen inside counts as never seen
TICK = 0.012  # more than a tick of the clock that files are stamped with (HZ=100 at worst)
OTHER_ID = 1001
CHANGES_NAMES = {"put", "open", "truncate_open", "unlink", "mkdir", "rmdir", "symlink", "mkfifo", "rename", "link", "linkfd"}


class Peer:
    def __init__(self, channel, label):
        self.channel, self.label = channel, label
        self.stream = channel.makefile("rwb")

    def ask(self, op):
        try:
            pickle.dump(op, self.stream)
            self.stream.flush()
            if not select.select([self.channel], [], [], ANSWER_WITHIN)[0]:
                return {"result": f"no answer in {ANSWER_WITHIN} s", "after": {}}
            return pickle.load(self.stream)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return {"result": "the worker died", "after": {}}


def fork_worker(root, path, plain, number):
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        try:
            ours.close()
            if number == WORKERS - 1 and os.getuid() == 0:
                os.setgroups([])
                os.setresgid(OTHER_ID, OTHER_ID, OTHER_ID)
                os.setresuid(OTHER_ID, OTHER_ID, OTHER_ID)
                libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: without it /proc/self is root's from here on
            serve(theirs, Worker(root, path, plain))
        finally:
            os._exit(0)
    theirs.close()
    return Peer(ours, f"{'plain' if plain else 'mount'} {number}")


class Listing:
    """What a slot's directory listing gave so far, and the names that came or went meanwhile: those are free."""

    def __init__(self):
        self.given, self.loose = [], set()


class Lower:
    """Which files (by the plain side's inode numbers) must stay out of the lower, and which names it may keep besides."""

    def __init__(self, read_tree):
        self.read_tree, tree = read_tree, read_tree()
        self.caught = {e["ino"] for path, e in tree.items() if names.is_protected(path) and not e["mode"].startswith("0o4")}
        self.born, self.written = set(), {}
        self.secrets, self.originals = set(), set()
        self.copied = set()

    def catch(self, ino, leaves):
        """leaves: it was renamed by its only name. What was born in the window then leaves the lower, bytes and all."""
        if ino not in self.caught:
            self.caught.add(ino)
            if leaves and ino in self.born:
                self.secrets |= self.written.get(ino, set())

    def fresh(self, ino, path):
        self.caught.discard(ino)
        self.born.add(ino)
        self.written[ino] = set()
        if path is not None and names.is_protected(path):
            self.catch(ino, False)

    def note(self, op, answer):
        """After an operation that succeeded on both sides."""
        before, after, found = answer["before"], answer["after"], answer["names"]
        place, to = (str(op.get(key)) for key in ("place", "to"))
        if op["do"] in ("open", "truncate_open", "put", "mkfifo", "symlink", "tmpfile"):
            made = before.get(place, (0, None))[1] is None or op["do"] == "tmpfile"
            ino = answer["touched"] or after[place][1][0]
            if made:
                name = (found["place"] or "") + "/tmp" if op["do"] == "tmpfile" else found["place followed"]
                self.fresh(ino, name)
        if op["do"] in ("rename", "link", "linkfd"):
            self.renamed(op, before, after, found, place, to)
        if op["do"] in ("write", "pwrite", "put", "copy") and answer["touched"]:
            self.written.setdefault(answer["touched"], set()).add(token(op["n"]))
            if answer["touched"] in self.caught:
                self.secrets.add(token(op["n"]))
            elif op["do"] == "copy":
                # What a program itself copies into an unprotected file is there.
                self.copied |= self.secrets.union(*self.written.values())

    def renamed(self, op, before, after, found, place, to):
        source, target = found.get("place"), found.get("to")
        moved = after.get(to, (0, None))[1]
        if moved is None or target is None:
            return
        if is_directory(after[to]):
            if source is not None:
                self.originals = {target + path[len(source):] if path.startswith(source + "/") else path
                                  for path in self.originals}
            return
        pairs = [(moved[0], after[to][0]["nlink"], source, target)]
        if op["do"] == "rename" and op["flags"] == 2 and after[place][1]:
            pairs.append((after[place][1][0], after[place][0]["nlink"], target, source))
        for ino, links, one, other in pairs:
            if any(path is not None and names.is_protected(path) for path in (one, other)):
                self.catch(ino, op["do"] == "rename" and links == 1)
                if links > 1:
                    # A file has all its names in one layer: the lower keeps its further ones too.
                    self.originals |= {path for path, e in self.read_tree().items() if e["ino"] == ino}
            if ino in self.caught:
                self.originals |= {path for path in (one, other) if path is not None and not names.is_protected(path)}


class Twin:
    def __init__(self, run):
        self.mode = run["mode"]
        roots = {side: os.open(run[side], os.O_PATH | os.O_DIRECTORY) for side in ("plain", "mount")}
        self.plain = [fork_worker(roots["plain"], run["plain"], True, n) for n in range(WORKERS)]
        self.mount = [fork_worker(roots["mount"], run["mount"], False, n) for n in range(WORKERS)]
        # The trees are read by workers of their own: those above keep the files that they are told to.
        self.readers = [fork_worker(roots[side], run[side], side == "plain", 0) for side in ("plain", "mount")]
        self.outside = None
        if run.get("outside"):
            channel = socket.socket(socket.AF_UNIX)
            channel.connect(run["outside"])
            self.outside = Peer(channel, "outside")
        self.listings, self.excused, self.settled = {}, {}, []
        def plain_tree():
            return self.readers[0].ask({"do": "tree"})["result"]

        self.protected_before = [path for path in plain_tree() if names.is_protected(path) and not path.startswith("memory")]
        self.lower = Lower(plain_tree)
        self.log = []

    def step(self, op):
        """Performs one operation on both sides; returns how they differ, or None."""
        if op["pause"]:
            time.sleep(TICK)
        outside = op.get("outside")
        mount = (self.outside if outside else self.mount[op["worker"]]).ask(op)
        result = mount["result"]
        entry = {"op": op, "mount": result}
        self.log.append(entry)
        if result == "EXDEV":
            rule = documented(self.sides(op), self.protected_before, op.get("flags") == 2)
            if rule is not None:
                self.excused[rule] = self.excused.get(rule, 0) + 1
                entry["excused"] = rule
                return None
        plain = self.plain[op["worker"]].ask(op)
        entry.update(plain=plain["result"], names=plain.get("names"))
        if op["do"] == "getdents":
            return self.compare_listing(op, mount, plain)
        if result != plain["result"]:
            return {"what": "result", "mount": result, "plain": plain["result"]}
        self.loosen(op, plain)
        if not outside:
            found = self.compare_looks(op, mount, plain)
            if found:
                return found
        if not isinstance(result, str):
            self.lower.note(op, plain)
        return self.settle(op, plain) if outside else None

    def sides(self, op):
        if op["do"] != "rename":
            return ()
        probe = self.plain[op["worker"]].ask({**op, "do": "look"})
        sides = []
        for key in ("place", "to"):
            name, look = probe["names"].get(key) or "", probe["after"].get(str(op[key]), ("", None))
            sides.append({
                "name": name, "directory": is_directory(look), "original": name in self.lower.originals,
                "caught": look[1] is not None and look[1][0] in self.lower.caught,
            })
        return sides

    def compare_looks(self, op, mount, plain):
        for subject in plain["after"]:
            theirs, ours = plain["after"][subject], mount["after"].get(subject, ("missing", None))
            if theirs[0] != ours[0]:
                return {"what": f"look of {subject}", "mount": ours[0], "plain": theirs[0]}
        if not (op["pause"] and "before" in mount):
            return None
        for subject, (_, theirs) in plain["after"].items():
            ours, before, was = (a[b].get(subject, (0, None))[1] for a, b in ((mount, "after"), (mount, "before"), (plain, "before")))
            if None in (theirs, ours, before, was) or is_fifo(plain["after"][subject]):
                continue
            changes = [[a != b for a, b in zip(*pair)] for pair in ((before, ours), (was, theirs))]
            another_file = changes[0][0] and changes[1][0]  # whose times are not those of the one before
            if changes[0] != changes[1] and not another_file:
                return {"what": f"changes of ino, mtime, ctime of {subject}", "mount": changes[0], "plain": changes[1]}
        return None

    def loosen(self, op, answer):
        """Names that may come or go by this operation are no longer certain in the listings under way."""
        if op["do"] in ("open", "truncate_open", "opendir", "tmpfile", "close", "seek"):
            if answer["result"] is None:
                self.listings[op["worker"], op["slot"]] = Listing()
        if op["do"] in CHANGES_NAMES:
            touched = {os.path.basename(path).encode("latin1") for path in answer["names"].values() if path}
            for listing in self.listings.values():
                listing.loose |= touched

    def compare_listing(self, op, mount, plain):
        """Both list the same names, in whatever order and pieces; those that stayed all the while exactly once."""
        key = (op["worker"], op["slot"])
        if isinstance(mount["result"], str) or isinstance(plain["result"], str):
            self.listings.pop(key, None)
            same = mount["result"] == plain["result"]
            return None if same else {"what": "result", "mount": mount["result"], "plain": plain["result"]}
        if op["rewind"]:
            self.listings[key] = Listing()
        if key not in self.listings:
            return None
        listing = self.listings[key]
        listing.given += mount["result"]
        if mount["result"]:
            return None
        del self.listings[key]
        return self.whole_listing(op, listing)

    def whole_listing(self, op, listing):
        expected = self.plain[op["worker"]].ask({**op, "do": "listslot"})["result"]
        if isinstance(expected, str):
            return None
        certain = sorted(name for name in listing.given if name not in listing.loose)
        wanted = sorted(name for name in expected + [b".", b".."] if name not in listing.loose)
        return None if certain == wanted else {"what": "listing", "mount": certain, "plain": wanted}

    def compare_with_lower(self, op):
        """To the nanosecond: what the mount shows of the paths is what the lower has."""
        looks = [peer.ask({**op, "do": "look"})["after"] for peer in (self.outside, self.mount[0])]
        for subject, lower in looks[0].items():
            if lower != looks[1].get(subject):
                return {"what": f"look of {subject} against the lower", "mount": looks[1].get(subject), "plain": lower}
        return None

    def settle(self, op, plain):
        """Waits until the mount shows what was done outside: the milliseconds are kept, SETTLE is a difference."""
        begun = time.monotonic()
        while True:
            found = self.compare_trees() or self.compare_with_lower(op)
            waited = time.monotonic() - begun
            if found is None or waited > SETTLE:
                break
        looks = [*plain["before"].values(), *plain["after"].values()]
        # By another name, in a directory that nobody watches perhaps, it may take a second (overlay/lookup.ts, SHORT).
        if not any(state and look["nlink"] > 1 and look["size"] is not None for look, state in looks):
            self.settled.append(round(waited * 1000))
        return found

    def compare_trees(self):
        plain, mount = (reader.ask({"do": "tree"})["result"] for reader in self.readers)
        if isinstance(plain, str) or isinstance(mount, str):
            return None if plain == mount else {"what": "reading the tree", "mount": mount, "plain": plain}
        for path in sorted(set(plain) | set(mount)):
            if path not in plain or path not in mount:
                return {"what": f"tree at {path!r}", "mount": mount.get(path), "plain": plain.get(path)}
            fields = [f for f in plain[path] if f != "ino" and plain[path][f] != mount[path][f]]
            if fields:
                return {"what": f"tree at {path!r}", **{side: {f: tree[path][f] for f in fields}
                                                       for side, tree in (("mount", mount), ("plain", plain))}}
        return None

    def run(self, operations):
        found = self.compare_trees()
        for op in operations:
            if found:
                break
            found = self.step(op)
            if not found and op["n"] % TREE_EVERY == TREE_EVERY - 1:
                found = self.compare_trees()
        return found or self.compare_trees()

    def expectations(self):
        tree = self.readers[0].ask({"do": "tree"})["result"]
        return {
            "caught": [path for path, e in tree.items() if e["ino"] in self.lower.caught],
            "originals": sorted(self.lower.originals),
            "secrets": sorted(t.decode() for t in self.lower.secrets - self.lower.copied),
        }


def main():
    with open(sys.argv[1]) as f:
        run = json.load(f)
    if run.get("outside"):
        time.sleep(0.1)  # the lower is watched from 50 ms on
    twin = Twin(run)
    found = twin.run(run["operations"])
    out = {"difference": found, "performed": len(twin.log), "excused": twin.excused, "settled": twin.settled,
           "log": twin.log[-400:], **twin.expectations()}
    with open(run["out"], "w") as f:
        json.dump(out, f, default=lambda o: o.decode("latin1"))


main()
