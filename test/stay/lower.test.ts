// A lower that fills up, vanishes, turns read-only or dies under a window: errors for the caller, and a clean end.
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { withWorkspace } from '../cases/window.ts';
import { forgetExec, type Workspace } from '../harness/forget.ts';
import { snapshot } from '../harness/tree.ts';
import { markedProcesses, type RunResult } from '../harness/watchdog.ts';

const root = { users: ['root'] as const };

/** Prints what each of the commands said, and goes on. */
const tell = (...commands: string[]) =>
  commands.map((command) => `{ ${command}; } 2>&1 || echo "failed"`).join('\n');

/** A script that works, waits until `change` has been made outside, and works on; it ends with 6. */
async function across(
  workspace: Workspace,
  cwd: string,
  before: string,
  change: () => unknown,
  after: string,
): Promise<RunResult & { errors: unknown[]; defects: string[] }> {
  const [ready, go, report] = ['ready', 'go', 'report.json'].map((name) => join(workspace.top, name));
  const script = `${before}
touch "${ready}"; while [ ! -e "${go}" ]; do sleep 0.02; done
${after}
exit 6`;
  const ended = forgetExec(workspace, ['sh', '-c', script], {
    cwd,
    options: ['--quiet', '--report', report!],
    timeout: 30_000,
  });
  for (let i = 0; i < 500 && !existsSync(ready!); i++) await delay(20);
  await change();
  writeFileSync(go!, '');
  const result = await ended;
  assert.equal(result.code, 6, result.stderr + result.stdout);
  assert.equal(result.stderr, '');
  assert.deepEqual(markedProcesses(result.mark), []);
  return {
    ...result,
    ...(JSON.parse(readFileSync(report!, 'utf8')) as { errors: unknown[]; defects: string[] }),
  };
}

/** A small filesystem with the workspace's content at its place. */
async function onSmallDisk(workspace: Workspace, body: (path: string) => Promise<void>): Promise<void> {
  const path = join(workspace.top, 'disk');
  mkdirSync(path);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4M,mode=755', 'small', path]);
  try {
    execFileSync('sh', ['-c', 'mkdir memory src; echo old >memory/old.md; echo code >src/main.py'], {
      cwd: path,
    });
    await body(path);
  } finally {
    execFileSync('umount', ['-l', path]);
  }
}

withWorkspace(
  'a full disk below: the writer gets ENOSPC, what is protected still works, and freed space can be used',
  async (workspace) => {
    await onSmallDisk(workspace, async (path) => {
      const before = snapshot(join(path, 'memory'));
      const { stdout, defects } = await across(
        workspace,
        path,
        tell('head -c 1000000 /dev/zero >src/some'),
        () =>
          execFileSync('sh', ['-c', 'head -c 8000000 /dev/zero >fill 2>/dev/null || true'], { cwd: path }),
        tell(
          'head -c 1000000 /dev/zero >src/more',
          'mkdir src/directory && echo x >src/directory/x',
          'head -c 2000000 /dev/zero >memory/big && stat -c %s memory/big',
          'cat memory/old.md',
          'rm fill && echo fits >src/fits && cat src/fits',
        ),
      );
      assert.match(stdout, /No space left on device/);
      assert.match(stdout, /2000000\nold\nfits\n$/);
      assert.deepEqual(defects, []);
      assert.deepEqual(snapshot(join(path, 'memory')), before);
      assert.equal(readFileSync(join(path, 'src/fits'), 'utf8'), 'fits\n');
    });
  },
  root,
);

/** 60 files of 50 KB are most of what fits. Forget keeps a file open for writing for up to 100 ms, and holds it otherwise after that. */
const MAKE_ANEW = `
import os, time
def free():
    s = os.statvfs('src')
    return s.f_bavail * s.f_frsize
for round in range(6):
    for i in range(60):
        with open(f'src/{i}', 'wb') as file: file.write(bytes(50_000))
    time.sleep(0.15)
    before = free()
    for i in range(60): os.unlink(f'src/{i}')
    if round % 2: assert free() > before + 2_500_000
print('made')
`;

withWorkspace(
  'the space of deleted files is there as soon as they are',
  async (workspace) => {
    await onSmallDisk(workspace, async (path) => {
      const result = await forgetExec(workspace, ['python3', '-c', MAKE_ANEW], { cwd: path });
      assert.equal(result.stdout, 'made\n', result.stderr);
    });
  },
  root,
);

withWorkspace(
  'a disk that turns read-only below: unprotected writes get EROFS, protected ones go on',
  async (workspace) => {
    await onSmallDisk(workspace, async (path) => {
      const { stdout, defects } = await across(
        workspace,
        path,
        tell('echo one >src/one', 'echo kept >memory/kept.md'),
        // The kernel refuses while a file is open for writing, as forget's are for a moment after a write.
        async () => {
          for (let i = 0; i < 60 && spawnSync('mount', ['-o', 'remount,ro', path]).status !== 0; i++)
            await delay(50);
        },
        tell(
          'echo two >src/two',
          'dd if=/dev/zero of=src/main.py bs=1 count=1 oflag=append conv=notrunc',
          'rm src/one',
          'mkdir src/directory',
          'cat src/main.py memory/kept.md',
          'echo more >>memory/old.md && tail -n 1 memory/old.md',
        ),
      );
      assert.equal(stdout.match(/Read-only file system/g)?.length, 4, stdout);
      assert.match(stdout, /code\nkept\nmore\n$/);
      assert.deepEqual(defects, []);
      const again = await forgetExec(
        workspace,
        ['sh', '-c', tell('echo a >memory/a && cat memory/a', 'echo b >b')],
        {
          cwd: path,
        },
      );
      assert.match(again.stdout, /^a\n.*Read-only file system/);
    });
  },
  root,
);

withWorkspace(
  'a disk that is lazily unmounted below goes on in the window, and the window ends cleanly',
  async (workspace) => {
    await onSmallDisk(workspace, async (path) => {
      const { stdout, defects } = await across(
        workspace,
        path,
        ':',
        () => {
          execFileSync('umount', ['-l', path]);
          execFileSync('mount', ['-t', 'tmpfs', 'other', path]);
        },
        tell('cat src/main.py', 'echo x >src/x && cat src/x', 'echo y >memory/y && cat memory/y'),
      );
      assert.equal(stdout, 'code\nx\ny\n');
      assert.deepEqual(defects, []);
    });
  },
  root,
);

const MORE_WORK = tell(
  'ls >/dev/null',
  'cat src/main.py src/big.txt >/dev/null',
  'echo new >new.txt',
  'mkdir directory',
  'cat memory/mine.md',
  'echo again >>memory/mine.md',
  'rm -rf src',
);

withWorkspace(
  'a workspace that is emptied below the window gives errors, never a hang',
  async (workspace) => {
    const { stdout, defects } = await across(
      workspace,
      workspace.path,
      tell('cat src/main.py >/dev/null', 'echo mine >memory/mine.md'),
      () => {
        for (const name of readdirSync(workspace.path))
          rmSync(join(workspace.path, name), { recursive: true });
      },
      MORE_WORK,
    );
    assert.match(stdout, /failed/);
    assert.deepEqual(defects, []);
  },
);

withWorkspace('a workspace that is moved away below the window goes on, never a hang', async (workspace) => {
  const { stdout, defects } = await across(
    workspace,
    workspace.path,
    tell('cat src/main.py >/dev/null', 'echo mine >memory/mine.md'),
    () => renameSync(workspace.path, `${workspace.path}-gone`),
    MORE_WORK,
  );
  assert.match(stdout, /mine/);
  assert.deepEqual(defects, []);
});

withWorkspace('a workspace that is removed, root and all, gives errors, never a hang', async (workspace) => {
  // The kernel takes the mount away with the directory that it stands on; whoever is in it stays there.
  const { stdout, defects } = await across(
    workspace,
    workspace.path,
    ':',
    () => rmSync(workspace.path, { recursive: true }),
    MORE_WORK,
  );
  assert.match(stdout, /failed/);
  assert.deepEqual(defects, []);
});

withWorkspace(
  'a FUSE lower whose server is killed gives its error to the caller, and the window ends cleanly',
  async (workspace) => {
    const [real, view] = [join(workspace.top, 'real'), join(workspace.top, 'view')];
    mkdirSync(real);
    mkdirSync(view);
    renameSync(workspace.path, join(real, 'ws'));
    const bindfs = spawn('bindfs', ['-f', real, view], { stdio: 'ignore' });
    try {
      for (let i = 0; i < 200 && !existsSync(join(view, 'ws')); i++) await delay(20);
      const { stdout, defects } = await across(
        workspace,
        join(view, 'ws'),
        tell('cat src/main.py >/dev/null'),
        () => bindfs.kill('SIGKILL'),
        tell(
          'sleep 0.3',
          'cat src/big.txt >/dev/null',
          'echo new >new.txt',
          'ls src/lib',
          'echo x >memory/x',
        ),
      );
      assert.match(stdout, /not connected|Input\/output|connection abort/);
      assert.deepEqual(defects, []);
    } finally {
      bindfs.kill('SIGKILL');
      await delay(200);
      execFileSync('umount', ['-l', view]);
    }
  },
  root,
);
