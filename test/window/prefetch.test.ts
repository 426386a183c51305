// The directories of a large repository are read ahead, so that its files are known before anybody asks for them.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { withMounts } from '../cases/mounts.ts';
import { withWorkspace } from '../cases/window.ts';
import { withViews } from '../freshness/views.ts';
import { until } from '../harness/until.ts';
import { idsOf, users } from '../harness/users.ts';

const PER_DIRECTORY = 20;

const fileOf = (top: string, i: number, perDirectory = PER_DIRECTORY) =>
  join(top, `d${Math.floor(i / perDirectory)}`, `f${i}`);

/** A repository with tracked files in `d0/` and so on, and a directory that is not tracked. */
function repository(path: string, files: number, perDirectory = PER_DIRECTORY): void {
  for (let i = 0; i < files; i++) {
    const file = fileOf(path, i, perDirectory);
    if (i % perDirectory === 0) mkdirSync(dirname(file));
    writeFileSync(file, `${i}\n`);
  }
  execFileSync('git', ['init', '-q', path]);
  execFileSync('git', ['-c', 'safe.directory=*', '-C', path, 'add', '-A']);
  mkdirSync(join(path, 'untracked'));
  writeFileSync(join(path, 'untracked/file'), 'x');
}

const lookAtAll = (files: number) => `
import os
for i in range(${files}): assert os.lstat(f'd{i // ${PER_DIRECTORY}}/f{i}').st_size > 0
for i in range(${files} // ${PER_DIRECTORY}):
    for name in '.git', '.gitignore', '.ignore', '.rgignore': assert not os.path.lexists(f'd{i}/{name}')
`;

for (const user of users) {
  const { uid, gid } = idsOf(user);
  const shape = (files: number) => ({
    empty: true,
    prepare: (path: string) => {
      repository(path, files);
      execFileSync('chown', ['-R', `${uid}:${gid}`, path]);
    },
  });

  withWorkspace(
    'the files of a large repository are known before anybody asks, and what git does not track is not',
    async (workspace) => {
      await withViews(workspace, async ({ inside, status }) => {
        const lists = () => status().requests.READDIRPLUS ?? 0;
        await until('all directories are read', () => lists() >= 61);
        await until('and names tried', () => (status().requests.LOOKUP ?? 0) >= 60 * 4);
        await delay(100);
        const before = status();
        await inside.run('python3', '-c', lookAtAll(1200));
        const { LOOKUP = 0 } = before.requests;
        const asked = status().requests.LOOKUP! - LOOKUP;
        assert.ok(asked < 100, `${asked} LOOKUP for 1,200 files`);
        assert.equal(lists(), before.requests.READDIRPLUS);
        await inside.run('ls', 'untracked');
        assert.equal(lists(), before.requests.READDIRPLUS! + 1);
      });
    },
    { users: [user], shape: shape(1200) },
  );

  withWorkspace(
    'a small repository is not read ahead',
    async (workspace) => {
      await withViews(workspace, async ({ status }) => {
        await delay(400);
        assert.equal(status().requests.READDIRPLUS ?? 0, 0);
      });
    },
    { users: [user], shape: shape(400) },
  );
}

const lookInside = `
import os
for i in range(1200):
    path = f'd{i // ${PER_DIRECTORY}}/f{i}'
    assert open(path).read() == f'{i}\\n'
    assert os.lstat(path).st_size > 0
`;
/** 1 September 2020: long before the files are written. */
const LONG_AGO = 1_598_918_400;

function accessTimes(workspace: string, files: number): Set<number> {
  return new Set(Array.from({ length: files }, (_, i) => statSync(fileOf(workspace, i)).atimeMs / 1000));
}

withWorkspace(
  'the contents of small files are read ahead, which leaves their access times, and of a large one only when it is read',
  async (workspace) => {
    await withViews(workspace, async ({ inside, status }) => {
      const reads = () => status().requests.READ ?? 0;
      await until('all small files are read', () => reads() >= 1200);
      await delay(200);
      const before = status().requests;
      assert.ok(before.READ! < 1220, `${before.READ} READ for 1,200 files`);
      assert.deepEqual([...accessTimes(workspace.path, 1200)], [LONG_AGO]);
      await inside.run('python3', '-c', lookInside);
      const after = status().requests;
      // Not one each; the kernel may have let go of a page or two meanwhile.
      assert.ok(after.READ! - before.READ! < 60, `${after.READ! - before.READ!} READ for 1,200 files`);
      const asked = after.GETATTR! - before.GETATTR!;
      assert.ok(asked < 200, `${asked} GETATTR for 1,200 files`);
      await inside.run('wc', 'large');
      assert.ok(reads() > after.READ!);
    });
  },
  {
    users: ['root'],
    shape: {
      empty: true,
      prepare: (path) => {
        writeFileSync(join(path, 'large'), `\n${'x'.repeat(20_000)}`);
        repository(path, 1200);
        for (let i = 0; i < 1200; i++) {
          const file = fileOf(path, i);
          utimesSync(file, LONG_AGO, statSync(file).mtime);
        }
      },
    },
  },
);

withWorkspace(
  'where there are many files their contents are not read ahead',
  async (workspace) => {
    await withViews(workspace, async ({ status }) => {
      await until('all directories are read', () => (status().requests.READDIRPLUS ?? 0) >= 45);
      await delay(1000);
      assert.ok((status().requests.READ ?? 0) < 20);
    });
  },
  { users: ['root'], shape: { empty: true, prepare: (path) => repository(path, 4400, 100) } },
);

withMounts(
  'a mount can be unmounted while it is read ahead, and untracked files without end are not read to their end',
  async (workspace, forget) => {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1G,nr_inodes=300k', 'tmpfs', workspace.path]);
    try {
      repository(workspace.path, 1200, 2);
      // The kernel asks for no more than one buffer of a directory's entries with their attributes.
      const fill = "for i in range(600):\n for j in range(180): open(f'd{i}/u{j}', 'w')";
      execFileSync('python3', ['-c', fill], { cwd: workspace.path });
      const readers = () =>
        forget
          .processes()
          .filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('forget-prefetch'));
      const does = async (what: string) => {
        const { code, stderr } = await forget.run(what, workspace.path);
        assert.equal(code, 0, stderr);
      };
      await does('mount');
      await until('it is read', () => readers().length === 1);
      await does('unmount');

      await does('mount');
      await until('it is read', () => readers().length === 1);
      // For a moment a process that becomes another program has no arguments.
      let looks = 0;
      await until('it has had enough', () => {
        looks = readers().length === 0 ? looks + 1 : 0;
        return looks === 3;
      });
      const { stdout } = await forget.run('status', '--json');
      const windows = JSON.parse(stdout) as { workspace: string; memory: { nodes: number } }[];
      const { nodes } = windows.find((one) => one.workspace === workspace.path)!.memory;
      assert.ok(nodes > 60_000 && nodes < 90_000, `${nodes} nodes`);
      await does('unmount');
    } finally {
      for (const path of [...forget.mounted(), workspace.path]) execFileSync('umount', ['-l', path]);
    }
  },
  { empty: true },
);
