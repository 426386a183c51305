// A long-lived process, with what it holds, while windows open and close around it.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { protectedDifferences } from '../harness/forget.ts';
import { snapshot } from '../harness/tree.ts';
import { users } from '../harness/users.ts';
import { onMount } from './live.ts';

const both = { users };

onMount(
  'a process that holds descriptors, a mapping, locks and a directory goes on through windows',
  async (live) => {
    const agent = await live.agent();
    const old = readFileSync(join(live.workspace.path, 'memory/old.md'), 'utf8');
    const numbers = await agent.does(`
fd = os.open("memory/old.md", os.O_RDWR | os.O_APPEND)
m = mmap.mmap(fd, 0)
fcntl.flock(fd, fcntl.LOCK_EX)
here = os.open("memory", os.O_RDONLY)
os.chdir("memory")
record = os.open("MEMORY.lock", os.O_RDWR | os.O_CREAT)
fcntl.lockf(record, fcntl.LOCK_EX, 4, 0)
print(os.fstat(fd).st_ino, os.fstat(here).st_ino)`);
    live.workspace.before = snapshot(live.workspace.path);

    await live.open('outer');
    assert.equal(
      await agent.does('print(os.write(fd, b"outer\\n"), os.getcwd() == os.path.realpath("."))'),
      '6 True',
    );
    assert.equal(
      await agent.does('born = os.open("born", os.O_RDWR | os.O_CREAT); print(os.write(born, b"b"))'),
      '1',
    );
    assert.deepEqual(protectedDifferences(live.workspace), []);
    await live.open('inner');
    assert.equal(
      await agent.does(`
os.write(fd, b"inner\\n")
inner = os.open("inner", os.O_RDWR | os.O_CREAT)
os.pwrite(born, b"inner", 0)
m[0:2] = b"XX"
os.rename("old.md", "moved.md")
print(open("moved.md", "rb").read().endswith(b"outer\\ninner\\n"), os.path.exists("old.md"))`),
      'True False',
    );
    assert.deepEqual(protectedDifferences(live.workspace), []);

    await live.close();
    assert.equal(
      await agent.does(`
print(open("old.md").read().endswith("outer\\n"), os.path.exists("moved.md"), os.path.exists("inner"))
print(m[0:2] != b"XX", os.pread(fd, 1 << 20, 0) == open("old.md", "rb").read(), os.pread(born, 9, 0))`),
      "True False False\nTrue True b'b'",
    );
    assert.match(await agent.does('os.fstat(inner)'), /failed OSError 116/);
    assert.equal(await agent.does('print(sorted(os.listdir(".")) == sorted(os.listdir(here)))'), 'True');

    await live.close();
    assert.equal(await agent.does('print(os.fstat(fd).st_ino, os.fstat(here).st_ino)'), numbers);
    assert.equal(await agent.does('print(os.pread(fd, 1 << 20, 0).decode(), end="")'), old.trimEnd());
    assert.equal(await agent.does('print(bytes(m[:]).decode(), end="")'), old.trimEnd());
    assert.match(await agent.does('os.pread(born, 9, 0)'), /failed OSError 116/);
    assert.deepEqual(protectedDifferences(live.workspace), []);
    // It holds its locks still, and others do not get them.
    const other = await live.agent();
    assert.match(
      await other.does('fcntl.flock(os.open("memory/old.md", os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)'),
      /failed BlockingIOError/,
    );
    assert.match(
      await other.does(
        'fcntl.lockf(os.open("memory/MEMORY.lock", os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 1)',
      ),
      /failed BlockingIOError/,
    );
    // Without a window everything is real, also by what was open all the while.
    assert.equal(
      await agent.does('print(os.write(fd, b"real\\n"), os.getcwd().endswith("/view/memory"))'),
      '5 True',
    );
    assert.equal(
      await agent.does('m[0:2] = b"YY"; m.flush(); open("here.md", "w").write("h"); print(1)'),
      '1',
    );
    assert.match(readFileSync(join(live.workspace.path, 'memory/old.md'), 'utf8'), /^YY.*real\n$/s);
    assert.equal(readFileSync(join(live.workspace.path, 'memory/here.md'), 'utf8'), 'h');
  },
  both,
);

onMount(
  'two agents share a mount: when a window opens, it catches the writes of both',
  async (live) => {
    const [one, two] = [await live.agent(), await live.agent()];
    await one.does('open("memory/one.md", "w").write("before")');
    const report = live.open('private').then(async () => {
      await one.does('open("memory/one.md", "a").write(" one")');
      await two.does('open("memory/two.md", "w").write("two"); open("src/two.txt", "w").write("real")');
      assert.equal(await one.does('print(open("memory/two.md").read())'), 'two');
      assert.equal(await two.does('print(open("memory/one.md").read())'), 'before one');
      return live.close('private');
    });
    assert.deepEqual((await report).protected.map(({ path }) => path).sort(), [
      'memory/one.md',
      'memory/two.md',
    ]);
    assert.equal(
      await two.does('print(os.path.exists("memory/two.md"), open("memory/one.md").read())'),
      'False before',
    );
    assert.equal(readFileSync(join(live.workspace.path, 'src/two.txt'), 'utf8'), 'real');
    assert.equal(readFileSync(join(live.workspace.path, 'memory/one.md'), 'utf8'), 'before');
  },
  both,
);

onMount('what is stored through a mapping before a window closes never reaches the lower', async (live) => {
  const pages = 64;
  const lower = join(live.workspace.path, 'memory/mapped');
  writeFileSync(lower, Buffer.alloc(pages * 4096));
  const agent = await live.agent();
  // Each store has a number that no other has; that of the last one stands in a file of memory at once.
  await agent.does(`
fd = os.open("memory/mapped", os.O_RDWR)
m = mmap.mmap(fd, 0)
n = 0
def hammer(seconds):
    global n
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for page in range(${pages}):
            n += 1
            m[page * 4096:page * 4096 + 8] = n.to_bytes(8, "little")
            counter[0:8] = n.to_bytes(8, "little")
shared = os.open("/dev/shm", os.O_RDWR | os.O_TMPFILE, 0o600)
os.ftruncate(shared, 4096)
counter = mmap.mmap(shared, 4096)
print(shared)`);
  const pid = Number(await agent.does('print(os.getpid())'));
  const shared = await agent.does('print(shared)');
  const last = () => Number(readFileSync(`/proc/${pid}/fd/${shared}`).readBigUInt64LE(0));
  for (let round = 0; round < 60; round++) {
    await live.open();
    // Beside what it goes on storing there is in each page what it stored once: an old page takes that along.
    await agent.does(`for page in range(${pages}): m[page * 4096 + 64:page * 4096 + 68] = b"MARK"`);
    const hammering = agent.does(`hammer(${0.002 + (round % 10) * 0.002})`);
    if (round % 3 === 0) await hammering;
    else await new Promise((resolve) => setTimeout(resolve, round % 7));
    const before = last();
    await live.close();
    await hammering;
    await agent.does('m.flush()');
    const bytes = readFileSync(lower);
    const leaks = Array.from({ length: pages }, (_, page) => Number(bytes.readBigUInt64LE(page * 4096)));
    assert.deepEqual(
      leaks.filter((value) => value > 0 && value <= before),
      [],
      `round ${round}: stored before ${before}`,
    );
    assert.equal(bytes.indexOf('MARK'), -1, `round ${round}: a page of the window`);
    // The next round begins with a lower that has nothing in it.
    await agent.does(`m[:] = bytes(${pages} * 4096); m.flush()`);
    writeFileSync(lower, Buffer.alloc(pages * 4096));
  }
});

onMount('an append after a close goes to the end that the file has then', async (live) => {
  const agent = await live.agent();
  await live.open();
  await agent.does(
    'log = os.open("memory/log", os.O_WRONLY | os.O_APPEND | os.O_CREAT); os.write(log, b"outer\\n")',
  );
  await live.open();
  await agent.does('os.write(log, b"a much longer line of the inner window\\n")');
  await live.close();
  assert.equal(await agent.does('os.write(log, b"more\\n"); os.write(log, b"end\\n"); time.sleep(0.1)'), '');
  assert.equal(await agent.does('print(open("memory/log").read())'), 'outer\nmore\nend');
  await live.close();
});

onMount(
  'a large file that an outer window has is copied for an inner one, also while that closes',
  async (live) => {
    const agent = await live.agent();
    await live.open('outer');
    await agent.does(
      'big = os.urandom(24 << 20); open("memory/big", "wb").write(big); digest = hashlib.sha256(big).digest()',
    );
    const { used } = (await live.status()).upper;
    for (let round = 0; round < 8; round++) {
      await live.open('inner');
      const writing = agent.does(
        'fd = os.open("memory/big", os.O_RDWR); print(os.pwrite(fd, b"inner", 100)); os.close(fd)',
      );
      // Sometimes before the copy is made, and sometimes after: then the write is one that came after the close.
      if (round % 2 === 0) assert.equal(await writing, '5');
      await live.close('inner');
      assert.equal(await writing, '5');
      if (round % 2 === 1)
        await agent.does(
          'fd = os.open("memory/big", os.O_RDWR); os.pwrite(fd, big[100:105], 100); os.close(fd)',
        );
      assert.equal(
        await agent.does('print(hashlib.sha256(open("memory/big", "rb").read()).digest() == digest)'),
        'True',
      );
      assert.equal((await live.status()).upper.used, used, `round ${round}`);
    }
    await live.close('outer');
    assert.equal((await live.status()).upper.used, 0);
  },
);

onMount(
  'a file that was made real before a window opened is back after it was moved into memory',
  async (live) => {
    const agent = await live.agent();
    await live.open('outer');
    await agent.does('open("src/draft.txt", "w").write("draft")');
    await live.open('inner');
    await agent.does('open("src/other.txt", "w").write("other")');
    await agent.does(
      'os.rename("src/draft.txt", "memory/draft"); os.rename("src/other.txt", "memory/other")',
    );
    assert.equal(
      await agent.does('print(os.path.exists("src/draft.txt"), open("memory/draft").read())'),
      'False draft',
    );
    await live.close('inner');
    assert.equal(
      await agent.does('print(open("src/draft.txt").read(), os.path.exists("memory/draft"))'),
      'draft False',
    );
    // It was created while the outer window was open, so there it moves for good.
    await agent.does('os.rename("src/draft.txt", "memory/draft")');
    await live.close('outer');
    assert.equal(
      await agent.does('print(os.path.exists("src/draft.txt"), os.path.exists("memory/draft"))'),
      'False False',
    );
    assert.deepEqual(protectedDifferences(live.workspace), []);
  },
);

onMount(
  'in a mount with --hide protected paths are absent while a window is open, and there before and after',
  async (live) => {
    const agent = await live.agent();
    const look =
      'print(os.path.exists("MEMORY.md"), os.path.exists("memory/old.md"), "MEMORY.md" in os.listdir("."))';
    assert.equal(await agent.does(look), 'True True True');
    await live.open();
    assert.equal(await agent.does(look), 'False False False');
    await agent.does('open("MEMORY.md", "w").write("clean")');
    assert.equal(await agent.does(look), 'True False True');
    await live.close();
    assert.equal(await agent.does(look), 'True True True');
    assert.deepEqual(protectedDifferences(live.workspace), []);
  },
  { options: () => ['--hide'] },
);

onMount(
  'in a mount with --readonly protected paths can be written while no window is open',
  async (live) => {
    const agent = await live.agent();
    assert.equal(await agent.does('print(open("MEMORY.md", "a").write("real"))'), '4');
    await live.open();
    assert.match(
      await agent.does('os.write(os.open("MEMORY.md", os.O_WRONLY | os.O_APPEND), b"window")'),
      /failed OSError 30/,
    );
    await live.close();
    assert.equal(await agent.does('print(open("MEMORY.md", "a").write("real"))'), '4');
    assert.match(readFileSync(join(live.workspace.path, 'MEMORY.md'), 'utf8'), /realreal$/);
  },
  { options: () => ['--readonly'] },
);

onMount(
  'links, xattrs, symlinks and devices of an outer window are as they were after an inner one',
  async (live) => {
    const agent = await live.agent();
    const look = `
def look(path):
    st = os.lstat(path)
    kept = [os.getxattr(path, name) for name in os.listxattr(path, follow_symlinks=False)] if not os.path.islink(path) else os.readlink(path)
    return [path, st.st_mode, st.st_nlink, st.st_size, st.st_ino, st.st_mtime_ns, st.st_uid, kept]
def all():
    return [look(os.path.join(top, name)) for top, dirs, files in sorted(os.walk("memory")) for name in sorted(dirs + files)]`;
    await agent.does(look);
    await live.open('outer');
    await agent.does(`
os.mkdir("memory/d"); open("memory/d/a", "w").write("a"); os.link("memory/d/a", "memory/d/b")
os.symlink("a", "memory/d/s"); os.mkfifo("memory/d/p"); os.setxattr("memory/d/a", "user.k", b"outer")
os.setxattr("memory/d", "user.k", b"directory"); os.chown("memory/d/a", 7, 8); os.chmod("memory/d/a", 0o4755)
outer = all()`);
    const { used } = (await live.status()).upper;
    await live.open('inner');
    await agent.does(`
os.unlink("memory/d/b"); os.link("memory/d/a", "memory/d/c"); os.setxattr("memory/d/c", "user.k", b"inner")
os.removexattr("memory/d", "user.k"); os.unlink("memory/d/s"); os.symlink("b", "memory/d/s"); os.rename("memory/d/p", "memory/p")
os.utime("memory/d/a", (1, 1)); os.rename("memory/d", "memory/e"); os.truncate("memory/old.md", 3)`);
    assert.equal(await agent.does('print(all() == outer, os.path.exists("memory/d"))'), 'False False');
    await live.close('inner');
    assert.equal(
      await agent.does(
        'now = all(); print([pair for pair in zip(outer, now) if pair[0] != pair[1]], len(now) == len(outer))',
      ),
      '[] True',
    );
    assert.equal((await live.status()).upper.used, used);
    await live.close('outer');
    assert.deepEqual(protectedDifferences(live.workspace), []);
  },
);

onMount(
  'a temporary file that is held belongs to the window that names it, or to the workspace',
  async (live) => {
    const agent = await live.agent();
    await live.open('outer');
    await agent.does(
      'one = open(".mem_x9.tmp", "w"); one.write("one"); one.flush(); two = open("tmpab12cd_x", "w")',
    );
    await live.open('inner');
    await agent.does(
      'one.write(" more"); one.flush(); os.rename(".mem_x9.tmp", "MEMORY.md"); two.write("two"); two.flush()',
    );
    assert.equal(await agent.does('print(open("MEMORY.md").read())'), 'one more');
    assert.deepEqual(protectedDifferences(live.workspace), []);
    await live.close('inner');
    assert.equal(
      await agent.does('print(open("MEMORY.md").read() != "one more", open("tmpab12cd_x").read())'),
      'True two',
    );
    await live.close('outer');
    assert.equal(readFileSync(join(live.workspace.path, 'tmpab12cd_x'), 'utf8'), 'two');
    assert.deepEqual(protectedDifferences(live.workspace), []);
  },
);

onMount('a directory that a window removed lets its visitors in again only as another one', async (live) => {
  const agent = await live.agent();
  await agent.does('os.makedirs("memory/room/in"); open("memory/room/in/a", "w").write("a")');
  live.workspace.before = snapshot(live.workspace.path);
  await live.open();
  await agent.does('os.chdir("memory/room/in"); os.unlink("a"); os.rmdir("../in"); os.rmdir("../../room")');
  await live.close();
  assert.match(await agent.does('os.listdir(".")'), /failed FileNotFoundError|^\[\]$|^$/);
  await agent.does(`os.chdir("/"); os.chdir(os.path.realpath(${JSON.stringify(live.view)}))`);
  assert.equal(
    await agent.does('print(os.listdir("memory/room"), open("memory/room/in/a").read())'),
    "['in'] a",
  );
  assert.deepEqual(protectedDifferences(live.workspace), []);
});

onMount(
  'a window over several directories opens and closes in all of them at once',
  async (live) => {
    const home = join(live.workspace.top, 'home');
    const agent = await live.agent();
    const path = (name: string) => JSON.stringify(join(home, name));
    await agent.does(`open(${path('history')}, "w").write("before")`);
    assert.equal(readFileSync(join(home, 'history'), 'utf8'), 'before');
    await live.open('outer');
    await agent.does(`open(${path('history')}, "a").write(" outer"); open("memory/new", "w").write("outer")`);
    await live.open('inner');
    await agent.does(
      `open(${path('history')}, "a").write(" inner"); open("memory/new", "a").write(" inner")`,
    );
    await agent.does(`os.mkdir(${path('d')}); open(${path('d/a')}, "w").write("a")`);
    const { paths } = await live.close('inner').then(({ protected: records }) => ({ paths: records.length }));
    assert.ok(paths >= 3, `${paths} paths in the report`);
    const look = `print(open(${path('history')}).read(), os.listdir(${JSON.stringify(home)}), os.path.exists("memory/new"))`;
    assert.equal(await agent.does(look), "before outer ['history'] True");
    await live.close('outer');
    assert.equal(await agent.does(look), "before ['history'] False");
    assert.equal((await live.status()).upper.used, 0);
  },
  {
    options: (top) => {
      mkdirSync(join(top, 'home'));
      return ['--root', join(top, 'home')];
    },
  },
);
