// A long-lived process, with what it holds, while windows open and close around it.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
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
    // The next round begins with a lower that has nothing in it.
    await agent.does(`m[:] = bytes(${pages} * 4096); m.flush()`);
    writeFileSync(lower, Buffer.alloc(pages * 4096));
  }
});
