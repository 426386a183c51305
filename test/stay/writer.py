"""Makes, renames, lists and removes files of one directory, in some processes at once, until it is killed.

usage: writer.py DIRECTORY PROCESSES
"""

import os
import sys

directory = sys.argv[1]
os.makedirs(directory, exist_ok=True)
for _ in range(int(sys.argv[2]) - 1):
    if os.fork() == 0:
        break
n = 0
while True:
    n += 1
    path = f"{directory}/{os.getpid()}.{n % 50}"
    try:
        with open(path, "w") as file:
            file.write("x" * 5000)
        os.rename(path, path + "r")
        os.unlink(path + "r")
        os.listdir(directory)
    except OSError as error:
        # Somebody else removed it; or the view is gone, and its writer with it.
        if not isinstance(error, FileNotFoundError):
            sys.exit(0)
