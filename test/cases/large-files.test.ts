/** Large files, which are read by their pages where the lower has them in memory (src/overlay/read.ts). */
import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isInMemory } from '../../src/sys/page-cache.ts';
import { servers, sh, withMounts } from './mounts.ts';
import { inWindow, python } from './window.ts';

/** Without a zero, which is what a hole reads as. Not a number of pages, nor of what the kernel reads ahead. */
const CONTENT = `
import mmap, os, random
chance = random.Random(5)
content = bytes(chance.randrange(1, 256) for _ in range(4099)) * 800 + b"end"
size = len(content)
def make(path):
    with open(path, "wb") as out: out.write(content)
    return os.open(path, os.O_RDWR)
def forgotten(fd):
    "What the mount's page cache has of the file goes, so that the next read is forget's to answer."
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
`;

inWindow('a large file reads as it was written, wherever and in whatever pieces', {
  script: python(`${CONTENT}
for path in ("src/large.bin", "memory/large.bin"):
    fd = make(path)
    for piece in (1 << 20, 128 << 10, 3 << 20, 200_001, 4 << 20):
        forgotten(fd)
        got = b"".join(iter(lambda at=[0]: (at.append(at[-1] + piece), os.pread(fd, piece, at[-2]))[1], b""))
        print(path, piece, got == content)
    for _ in range(60):
        forgotten(fd)
        at, length = chance.randrange(size + 5000), chance.randrange(1 << 21)
        if os.pread(fd, length, at) != content[at:at + length]: print("wrong", path, at, length)
    direct = os.open(path, os.O_RDONLY | os.O_DIRECT)
    into = mmap.mmap(-1, 1 << 20)
    for at in range(0, size, 1 << 20):
        n = os.preadv(direct, [into], at)
        if into[:n] != content[at:at + (1 << 20)]: print("wrong", path, at, "directly")
    forgotten(fd)
    print("mapped", mmap.mmap(fd, size, prot=mmap.PROT_READ)[:] == content)
    os.posix_fallocate(fd, size, 1 << 20)
    os.ftruncate(fd, size + (1 << 20))
    forgotten(fd)
    print("with a hole", os.pread(fd, 2 << 20, size - (1 << 20)) == content[-(1 << 20):] + bytes(1 << 20))
`),
  prints: ['src', 'memory']
    .map((directory) =>
      [
        ...[1048576, 131072, 3145728, 200001, 4194304].map(
          (piece) => `${directory}/large.bin ${piece} True\n`,
        ),
        'mapped True\nwith a hole True\n',
      ].join(''),
    )
    .join(''),
});

inWindow('a large file that others cut short and write anew reads as one or the other, without an error', {
  script: python(`${CONTENT}
import sys, time
for path in ("src/large.bin", "memory/large.bin"):
    fd = make(path)
    if os.fork() == 0:
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            os.ftruncate(fd, chance.randrange(size))
            at = chance.randrange(size)
            os.pwrite(fd, content[at:], at)
        os._exit(0)
    reads = 0
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        at = chance.randrange(size)
        got = os.pread(fd, 1 << 20, at)
        reads += 1
        wanted = content[at:at + len(got)]
        if got != wanted and any(a != b and a != 0 for a, b in zip(got, wanted)):
            print("wrong", path, at, len(got)); break
    os.wait()
    print(path, reads > 20)
`),
  prints: 'src/large.bin True\nmemory/large.bin True\n',
});

const SIZE = 64 << 20;

withMounts(
  'what the lower or the upper has in memory of a large file is not copied through forget',
  async (workspace, forget) => {
    const real = join(workspace.path, 'src/large.bin');
    writeFileSync(real, Buffer.alloc(SIZE, 'abc'));
    const own = openSync(real, 'r');
    const known = isInMemory(own, 0, SIZE);
    closeSync(own);
    const mounted = await forget.run('mount', workspace.path);
    assert.equal(mounted.code, 0, mounted.stderr);
    const [server] = servers(forget);
    const copied = () => Number(/^rchar: (\d+)/.exec(readFileSync(`/proc/${server}/io`, 'utf8'))![1]);
    const copiedBy = (command: string) => {
      const before = copied();
      sh(command, workspace.path);
      return copied() - before;
    };
    const lower = copiedBy('dd if=src/large.bin of=/dev/null bs=1M status=none');
    // Some filesystems do not say what they have in memory: those are read as ever.
    if (known) assert.ok(lower < SIZE / 10, `${lower} bytes of ${SIZE} were copied from the lower`);
    else assert.ok(lower >= SIZE, `${lower} bytes of ${SIZE} were copied`);
    sh(`yes | head -c ${SIZE} > memory/large.bin`, workspace.path);
    const upper = copiedBy('dd if=memory/large.bin of=/dev/null bs=1M status=none');
    assert.ok(upper < SIZE / 10, `${upper} bytes of ${SIZE} were copied from the upper`);
    assert.equal((await forget.run('unmount', workspace.path)).code, 0);
  },
);
