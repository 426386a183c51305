/** Many files at once: what the server keeps of them is bounded, and goes when the kernel forgets them. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { forgetExec } from '../harness/forget.ts';
import { onTmpfs } from '../harness/tmpfs.ts';
import { inWindow, python, withWorkspace } from './window.ts';

const SERVER = `
import glob, os, resource, time
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
server = os.environ['FORGET_WINDOW'].split('-')[0]
def descriptors(): return len(os.listdir(f'/proc/{server}/fd'))
def memory(): return int(next(l for l in open(f'/proc/{server}/status') if l.startswith('VmRSS')).split()[1]) >> 10
`;
const TREE = `
import os
def make(count, per):
    for i in range(count):
        if i % per == 0: os.makedirs(f'many/{i // per}')
        with open(f'many/{i // per}/{i}', 'w') as f: f.write(str(i))
`;

inWindow('30,000 files are touched and 15,000 stay open, also when they are unlinked', {
  script: python(`${SERVER}${TREE}
make(30_000, 1000)
most = 0
held = []
for i in range(30_000):
    fd = os.open(f'many/{i // 1000}/{i}', os.O_RDWR)
    assert os.read(fd, 10) == str(i).encode()
    if i % 2: held.append((i, fd))
    else: os.close(fd)
    if i % 3000 == 0: most = max(most, descriptors())
for i, fd in held:
    os.pwrite(fd, b'x', 0)
    os.unlink(f'many/{i // 1000}/{i}')
most = max(most, descriptors())
for i, fd in held:
    assert os.pread(fd, 10, 0) == b'x' + str(i).encode()[1:], i
    os.close(fd)
print('bounded' if most < 18_000 else most)
for _ in range(100):
    if descriptors() < 15_500: break
    time.sleep(0.1)
print('given back' if descriptors() < 15_500 else descriptors())
`),
  prints: 'bounded\ngiven back\n',
  users: ['root'],
  exec: { timeout: 110_000 },
});

inWindow('room for many descriptors is made in one go, and only where some are opened', {
  script: python(`${SERVER}${TREE}
def room(): return int(next(l for l in open(f'/proc/{server}/status') if l.startswith('FDSize')).split()[1])
print('small' if room() <= 256 else room())
make(200, 20)
for _ in range(200):
    if room() > 256: break
    time.sleep(0.02)
print('room for all' if room() >= 12_000 else room())
`),
  prints: 'small\nroom for all\n',
  users: ['root'],
});

withWorkspace(
  '100,000 known files take less than 150 MB, and give them back when the kernel forgets',
  async (workspace) => {
    // In memory: a disk takes its time to make so many.
    await onTmpfs(workspace.path, 'size=1G,nr_inodes=200k', async () => {
      execFileSync('python3', ['-c', `${TREE}\nmake(100_000, 500)`], { cwd: workspace.path });
      const script = python(`${SERVER}
before = memory()
known_files = 0
for d in range(200):
    with os.scandir(f'many/{d}') as entries:
        for entry in entries: known_files += entry.stat().st_size > 0
known = memory()
with open('/proc/sys/vm/drop_caches', 'w') as f: f.write('2')
for _ in range(200):
    if memory() < (before + known) // 2: break
    time.sleep(0.1)
print(known_files, 'small' if known < 150 else known, 'falls' if memory() < (before + known) // 2 else memory())
`);
      const result = await forgetExec(workspace, ['sh', '-c', script]);
      assert.equal(result.stdout, '100000 small falls\n', result.stderr);
    });
  },
  { users: ['root'] },
);

withWorkspace(
  'two directories of 260,000 names that are read in turns have each name once, and an end',
  async (workspace) => {
    await onTmpfs(workspace.path, 'size=1G,nr_inodes=600k', async () => {
      const fill = `
import os
for name in ['one', 'other']:
    os.mkdir(name)
    directory = os.open(name, os.O_RDONLY)
    for i in range(260_000): os.mknod(str(i), 0o100644, dir_fd=directory)
`;
      execFileSync('python3', ['-c', fill], { cwd: workspace.path });
      const script = python(`
import itertools, os
left = {name: os.scandir(name) for name in ['one', 'other']}
names = {name: [] for name in left}
while left:
    for name in list(left):
        found = [entry.name for entry in itertools.islice(left[name], 5000)]
        names[name] += found
        if not found or len(names[name]) > 300_000: del left[name]
print(*(f'{name}: {len(found)} {len(set(found))}' for name, found in names.items()))
`);
      const result = await forgetExec(workspace, ['sh', '-c', script]);
      assert.equal(result.stdout, 'one: 260000 260000 other: 260000 260000\n', result.stderr);
    });
  },
  { users: ['root'] },
);
