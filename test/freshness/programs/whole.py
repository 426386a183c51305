"""Reads files that another process replaces or rewrites, and says whether it ever saw half of one, until argv[1] is there.

`replaced` is renamed over: what one open file holds is one version, of the length that stat of that file says.
`versions/N` are N times the line "N\\n". `pair` is a symlink that is led elsewhere: the directory behind it is one version.
Prints what was wrong, as JSON; and how many versions it saw.
"""
import json
import os
import sys

stop = sys.argv[1]
wrong, seen = [], set()


def check(what, fd):
    st = os.fstat(fd)
    parts = []
    while part := os.read(fd, 1 << 16): parts.append(part)
    data = b"".join(parts)
    lines = data.split(b"\n")
    version = lines[0]
    if len(data) != st.st_size: wrong.append(f"{what}: {len(data)} bytes of {st.st_size}, version {version}")
    if set(lines[:-1]) != {version} or lines[-1] != b"": wrong.append(f"{what}: a mix of {sorted(set(lines))[:4]}")
    elif len(lines) - 1 != int(version) % 5000 + 1: wrong.append(f"{what}: {len(lines) - 1} lines of version {version}")
    return version


while not os.path.exists(stop) and len(wrong) < 20:
    with open("replaced", "rb", buffering=0) as f: seen.add(check("replaced", f.fileno()))
    st = os.stat("replaced")
    # By name, and again: whichever version it is, its size is that version's.
    with open("pair/a", "rb", buffering=0) as a: one = check("a", a.fileno())
    if one < b"0": wrong.append("nothing")
print(json.dumps({"wrong": wrong, "versions": len(seen)}))
