"""Looks at d0 ... d59 until argv[1] is there, and then how long it takes until the file in each has changed, and the absent one is there.

Prints how many were seen within 0.4 s, and how many within 1.5 s.
"""
import json
import os
import sys
import time

changed = sys.argv[1]
waiting = range(60)


def look(i):
    with open(f"d{i}/a") as f:
        return f.read(), os.stat(f"d{i}/a").st_size, os.listdir(f"d{i}"), os.path.exists(f"d{i}/absent")


new = ("old and new", 11, {"a", "absent"}, True)
time.sleep(0.2)
for i in waiting: look(i)
# Over a second, so that nothing is left from before the watches began.
time.sleep(1.2)
for i in waiting: look(i)
open(changed + ".ready", "w").close()
while not os.path.exists(changed): time.sleep(0.005)
begun, when = time.monotonic(), {}
while len(when) < 60 and time.monotonic() - begun < 3:
    for i in waiting:
        if i in when: continue
        content, size, listed, there = look(i)
        if (content, size, set(listed), there) == new: when[i] = time.monotonic() - begun
    time.sleep(0.01)
soon = sum(t < 0.4 for t in when.values())
late = sum(0.4 <= t < 1.5 for t in when.values())
print(json.dumps({"soon": soon, "late": late}))
