"""Makes FILES small files in directories of 50 below TOP, reads their names, and deletes them again: what a package manager does."""
import os
import shutil
import sys

top, files = sys.argv[1], int(sys.argv[2])
for i in range(files):
    directory = f"{top}/{i // 1000}/{i // 50}"
    if i % 50 == 0:
        os.makedirs(directory)
    with open(f"{directory}/{i}.js", "w") as f:
        f.write(f"module.exports = {i}\n")
# Some stay.
for name in sorted(os.listdir(top))[1:]:
    shutil.rmtree(f"{top}/{name}")
