"""An agent's mix of work in one directory tree, for some seconds, checked as it goes.

usage: worker.py NAME SECONDS SEED     in the workspace; says what is wrong on stderr and ends with 1
       worker.py all COUNT SECONDS SEED   that many of them, then a quiet time
"""

import json
import mmap
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time


class Worker:
    def __init__(self, name, seed):
        self.random = random.Random(f"{seed}/{name}")
        self.name = name
        self.work = f"work/{name}"
        self.memory = f"memory/{name}"
        self.appended = 0
        self.commits = 0
        self.stamp = -1
        self.versions = {}
        os.makedirs(self.work, exist_ok=True)
        os.makedirs(self.memory, exist_ok=True)

    def check(self, held, what):
        if not held:
            raise AssertionError(f"{self.name}: {what}")

    def somewhere(self):
        return self.random.choice([self.work, self.memory])

    def replace(self, path, text):
        temporary = f"{path}.tmp.{os.getpid()}"
        with open(temporary, "w") as file:
            file.write(text)
            file.flush()
            if self.random.random() < 0.2:
                os.fsync(file.fileno())
        os.rename(temporary, path)

    def edit(self):
        path = f"{self.somewhere()}/note{self.random.randrange(40)}.md"
        if path in self.versions:
            with open(path) as file:
                self.check(file.read() == self.versions[path], f"{path} is not what was written")
        text = f"{self.random.random()}\n" * self.random.randrange(1, 400)
        self.replace(path, text)
        self.versions[path] = text

    def append(self):
        path = f"logs/{self.name}.jsonl"
        for _ in range(20):
            with open(path, "a") as file:
                file.write(json.dumps({"n": self.appended, "pad": "x" * self.random.randrange(200)}) + "\n")
            self.appended += 1
        with open(path) as file:
            numbers = [json.loads(line)["n"] for line in file]
        self.check(numbers[-1] == self.appended - 1, f"{path} ends with {numbers[-1]}")
        self.check(numbers == list(range(numbers[0], numbers[-1] + 1)), f"{path} has gaps")
        if len(numbers) > 2000:
            os.rename(path, path + ".old")
            os.unlink(path + ".old")

    def database(self):
        path = f"{self.somewhere()}/state.db"
        connection = sqlite3.connect(path, timeout=30)
        try:
            connection.execute("pragma journal_mode=wal")
            connection.execute("create table if not exists t(n integer primary key, v text)")
            with connection:
                for _ in range(20):
                    connection.execute("insert into t(v) values(?)", ("v" * self.random.randrange(500),))
                connection.execute("delete from t where n < (select max(n) from t) - 200")
            (count,) = connection.execute("select count(*) from t").fetchone()
            self.check(0 < count <= 201, f"{path} has {count} rows")
            if self.random.random() < 0.1:
                (said,) = connection.execute("pragma integrity_check").fetchone()
                self.check(said == "ok", f"{path}: {said}")
        finally:
            connection.close()

    def run(self, *argv, cwd=None):
        end = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=120)
        self.check(end.returncode == 0, f"{argv} ended with {end.returncode}: {end.stderr}")
        return end.stdout

    def repository(self):
        path = f"{self.work}/repository"
        if self.commits == 0 or self.commits > 40:
            shutil.rmtree(path, ignore_errors=True)
            self.run("git", "init", "-q", path)
            self.commits = 0
        self.replace(f"{path}/file{self.random.randrange(5)}", f"{self.random.random()}\n")
        self.run("git", "add", "-A", cwd=path)
        self.run("git", "commit", "-q", "--allow-empty", "-m", "work", cwd=path)
        self.commits += 1
        log = self.run("git", "log", "--oneline", cwd=path)
        self.check(len(log.splitlines()) == self.commits, f"{len(log.splitlines())} of {self.commits} commits")
        if self.random.random() < 0.1:
            self.run("git", "fsck", "--full", cwd=path)

    def search(self):
        if self.random.random() < 0.5:
            found = self.run("find", self.work, self.memory, "-name", "note*.md").splitlines()
            self.check(sorted(found) == sorted(self.versions), f"find found {len(found)} of {len(self.versions)} notes")
        else:
            subprocess.run(["rg", "-c", "import", "src"], stdout=subprocess.DEVNULL, timeout=120)

    def packages(self):
        top = f"{self.work}/node_modules"
        made = 0
        for package in range(15):
            for part in ["lib", "dist/esm"]:
                directory = f"{top}/package{package}/{part}"
                os.makedirs(directory)
                for n in range(6):
                    with open(f"{directory}/{n}.js", "w") as file:
                        file.write("export {};\n" * n)
                    made += 1
        found = sum(len(files) for _, _, files in os.walk(top))
        self.check(found == made, f"{found} of {made} files")
        shutil.rmtree(top)
        self.check(not os.path.exists(top), "a removed tree is there")

    def mapping(self):
        path = f"{self.somewhere()}/mapped.bin"
        size = 256 << 10
        with open(path, "w+b") as file:
            file.truncate(size)
            with mmap.mmap(file.fileno(), size) as mapped:
                at = self.random.randrange(size - 4096)
                pattern = bytes([self.random.randrange(1, 256)]) * 4096
                mapped[at : at + 4096] = pattern
                mapped.flush()
                self.check(os.pread(file.fileno(), 4096, at) == pattern, f"{path}: a mapped write is not read")
        with open(path, "rb") as file:
            file.seek(at)
            self.check(file.read(4096) == pattern, f"{path}: a mapped write is lost")

    def forgetting(self):
        path = f"memory/given-{self.name}.md"
        if os.path.exists(path):
            os.unlink(path)
        self.check(not os.path.exists(path), f"{path} is there after its removal")
        self.check(os.path.basename(path) not in os.listdir("memory"), f"{path} is listed after its removal")
        text = f"{self.random.random()}\n"
        with open(path, "w") as file:
            file.write(text)
        with open(path) as file:
            self.check(file.read() == text, f"{path} is not what was written")

    def outside(self):
        """What somebody outside writes by rename is whole, and never older than what was seen."""
        with open("outside/stamp.json") as file:
            text = file.read()
        stamp = json.loads(text)
        self.check(len(stamp["pad"]) == stamp["n"] % 5000, "a torn outside edit")
        self.check(stamp["n"] >= self.stamp, f"outside edit {stamp['n']} after {self.stamp}")
        self.stamp = stamp["n"]

    def work_for(self, seconds):
        tasks = [
            *[self.edit, self.append, self.outside] * 4,
            *[self.database, self.mapping, self.forgetting, self.search] * 2,
            *[self.repository, self.packages],
        ]
        end = time.monotonic() + seconds
        rounds = 0
        while time.monotonic() < end:
            self.random.choice(tasks)()
            rounds += 1
            time.sleep(self.random.random() * 0.02)
        shutil.rmtree(self.work)
        shutil.rmtree(self.memory)
        print(f"{self.name}: {rounds} tasks", flush=True)


def all_of_them(count, seconds, seed, quiet):
    argv = [sys.executable, __file__]
    workers = [subprocess.Popen([*argv, f"w{n}", str(seconds), seed]) for n in range(count)]
    codes = [worker.wait() for worker in workers]
    print("quiet", flush=True)
    time.sleep(quiet)
    return max(map(abs, codes))


if sys.argv[1] == "all":
    sys.exit(all_of_them(int(sys.argv[2]), float(sys.argv[3]), sys.argv[4], quiet=6))
Worker(sys.argv[1], sys.argv[3]).work_for(float(sys.argv[2]))
