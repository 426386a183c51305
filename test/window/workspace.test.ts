import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { mountAt, parseMountinfo } from '../../src/window/mountinfo.ts';
import { findUsers, refuseUsed } from '../../src/window/users.ts';
import {
  refuseOwnPrograms,
  refuseWorkspace,
  resolveMountedPath,
  resolveMountpoint,
  resolveWorkspace,
} from '../../src/window/workspace.ts';
import { checkout, temporaryDirectory, users } from '../harness/users.ts';

const limit = { timeout: 20_000 };
const isRoot = process.getuid!() === 0;
let top: string;
let children: ChildProcess[] = [];

beforeEach(() => {
  top = realpathSync(temporaryDirectory('workspace', users[0]!));
});
afterEach(async () => {
  for (const child of children) {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
  children = [];
  rmSync(top, { recursive: true, force: true });
});

function bytes(path: string): Buffer {
  return Buffer.from(path, 'latin1');
}

function refuses(path: string, expected: RegExp): void {
  assert.throws(
    () => resolveWorkspace(path, top),
    (error: Error) => {
      assert.equal(error.name, 'Failure', error.stack);
      assert.match(error.message, expected);
      assert.ok(!error.message.includes('\n'), error.message);
      return true;
    },
  );
}

test(
  'names with spaces, quotes, $(...), commas, newlines and bytes that are not UTF-8 are workspaces',
  limit,
  () => {
    for (const name of [
      'a b',
      ' lead and trail ',
      '\'"`',
      '$(touch pwn)',
      'a,b=c',
      'line\nfeed',
      '\xff.jsonl',
      'tab\t\\040',
      'x'.repeat(255),
    ]) {
      const path = `${top}/${name}`;
      mkdirSync(bytes(path));
      assert.equal(resolveWorkspace(path, '/'), path);
      assert.equal(resolveWorkspace(name, top), path);
      assert.equal(resolveWorkspace(`./${name}/`, top), path);
    }
  },
);

test('a workspace reached through symbolic links is the real directory', limit, () => {
  mkdirSync(join(top, 'a/real'), { recursive: true });
  symlinkSync('a/real', join(top, 'link'));
  assert.equal(resolveWorkspace('link', top), join(top, 'a/real'));
  assert.equal(resolveWorkspace('link/..', top), join(top, 'a'));
});

test('what cannot be a workspace is refused in one line that says why', limit, () => {
  writeFileSync(join(top, 'file'), '');
  symlinkSync('loop', join(top, 'loop'));
  refuses('absent', /^workspace absent: does not exist/);
  refuses('file', /^workspace file: is not a directory/);
  refuses('file/x', /^workspace file\/x: a part of the path is not a directory/);
  refuses('loop', /^workspace loop: .*circle/);
  refuses('', /^workspace: the path is empty/);
  refuses('/', /^workspace \/: the whole system/);
  refuses('/tmp/..', /^workspace \/: the whole system/);
  refuses('/proc', /^workspace \/proc: lies on proc/);
  refuses(`no\nline\xff`, /^workspace no\\nline\\xff: does not exist/);
  refuses('x'.repeat(256), /the name is too long/);
});

test('an unreadable workspace is refused for an ordinary user', limit, () => {
  mkdirSync(join(top, 'closed'));
  chmodSync(join(top, 'closed'), 0o000);
  if (!isRoot) {
    refuses('closed', /^workspace closed: may not be read/);
    return;
  }
  chmodSync(top, 0o755);
  const script = `
    const { resolveWorkspace } = await import(${JSON.stringify(join(checkout, 'src/window/workspace.ts'))});
    process.setuid(65534);
    try { resolveWorkspace('closed', ${JSON.stringify(top)}); } catch (error) { console.log(error.message); }
  `;
  const { stdout } = spawnSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
    cwd: checkout,
    encoding: 'utf8',
  });
  assert.match(stdout, /^workspace closed: may not be read/);
});

test('a FUSE mount and a directory in a forget mount are refused from the mount table alone', limit, () => {
  const mounts = parseMountinfo(
    [
      '22 1 254:0 / / rw,relatime - ext4 /dev/vda rw',
      '30 22 0:50 / /home/a/ws rw,nosuid - fuse.forget forget rw',
      '31 22 0:51 / /mnt/remote rw - fuse.sshfs host: rw',
    ].join('\n'),
  );
  assert.match(
    refuseWorkspace('/home/a/ws', mounts)!,
    /^workspace \/home\/a\/ws: lies in a forget window already/,
  );
  assert.match(refuseWorkspace('/home/a/ws/sub', mounts)!, /mounted at \/home\/a\/ws/);
  assert.match(refuseWorkspace('/mnt/remote', mounts)!, /itself a FUSE mount \(fuse\.sshfs\)/);
  assert.equal(refuseWorkspace('/mnt/remote/project', mounts), undefined);
  assert.equal(refuseWorkspace('/home/a/ws2', mounts), undefined);
});

test(
  'mount points with spaces, newlines, backslashes and bytes that are not UTF-8 are read as they are',
  limit,
  () => {
    const line =
      '40 22 0:9 /a\\040b /x\\040y\\012z\\134\\043\xff rw shared:3 master:1 - fuse.forget a\\040b rw,x=y';
    const [mount] = parseMountinfo(`${line}\n`);
    assert.deepEqual(
      { ...mount },
      {
        id: 40,
        parent: 22,
        device: '0:9',
        root: '/a b',
        mountpoint: '/x y\nz\\#\xff',
        options: 'rw',
        fstype: 'fuse.forget',
        source: 'a b',
      },
    );
  },
);

test('a path lies on the topmost mount, not on one that a later mount above hides', limit, () => {
  const mounts = parseMountinfo(
    [
      '1 0 8:1 / / rw - ext4 root rw',
      '2 1 8:2 / /a/b rw - ext4 hidden rw',
      '3 1 8:3 / /a rw - ext4 over rw',
      '4 3 8:4 / /a rw - tmpfs stacked rw',
    ].join('\n'),
  );
  const source = (path: string) => mountAt(path, mounts)?.source;
  assert.deepEqual(['/', '/a', '/a/b/c', '/ab'].map(source), ['root', 'stacked', 'stacked', 'root']);
});

test(
  'a mount point in the workspace or above it is refused; the workspace itself and one elsewhere are not',
  limit,
  () => {
    const workspace = join(top, 'ws');
    mkdirSync(join(workspace, '.mnt'), { recursive: true });
    mkdirSync(join(top, 'view'));
    symlinkSync('ws/.mnt', join(top, 'sneaky'));
    assert.equal(resolveMountpoint('ws', top, workspace), workspace);
    assert.equal(resolveMountpoint('view', top, workspace), join(top, 'view'));
    assert.throws(() => resolveMountpoint('ws/.mnt', top, workspace), /lies inside the workspace/);
    assert.throws(() => resolveMountpoint('sneaky', top, workspace), /lies inside the workspace/);
    assert.throws(() => resolveMountpoint('.', top, workspace), /holds the workspace/);
    assert.throws(
      () => resolveMountpoint('absent', top, workspace),
      /^Failure: mount point absent: does not exist/,
    );
  },
);

test(
  'the path of a mount to be unmounted is found through links, also when it no longer exists',
  limit,
  () => {
    mkdirSync(join(top, 'real/ws'), { recursive: true });
    symlinkSync('real', join(top, 'dir'));
    symlinkSync('dir/ws', join(top, 'link'));
    assert.equal(resolveMountedPath('link', top), join(top, 'real/ws'));
    assert.equal(resolveMountedPath('./dir/ws/', top), join(top, 'real/ws'));
    assert.equal(resolveMountedPath('.', join(top, 'real/ws')), join(top, 'real/ws'));
    assert.equal(resolveMountedPath('dir/gone', top), join(top, 'real/gone'));
  },
);

/** A shell that runs `script` and then waits; resolves when the script has. */
async function holder(script: string, cwd: string): Promise<number> {
  const child = spawn('bash', ['-c', `${script}; echo ready; exec sleep 60`], {
    cwd,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  await once(child.stdout!, 'data');
  return child.pid!;
}

test(
  'a process that has a way into the workspace is found and named, and one that merely reads is not',
  limit,
  async () => {
    const workspace = join(top, 'ws');
    mkdirSync(join(workspace, 'deep'), { recursive: true });
    mkdirSync(join(top, 'ws-other'));
    writeFileSync(join(workspace, 'f'), 'x'.repeat(8192));
    const stands = await holder('true', join(workspace, 'deep'));
    const writes = await holder('exec 7>>ws/f', top);
    const reads = await holder('exec 7<ws/f', top);
    const elsewhere = await holder('exec 7>>f', join(top, 'ws-other'));
    const found = findUsers(workspace).users.map(({ pid, what, path }) => ({ pid, what, path }));
    const of = (pid: number) => found.filter((user) => user.pid === pid);
    assert.deepEqual(of(stands), [{ pid: stands, what: 'working directory', path: join(workspace, 'deep') }]);
    assert.deepEqual(of(writes), [{ pid: writes, what: 'writable file', path: join(workspace, 'f') }]);
    assert.deepEqual([...of(reads), ...of(elsewhere)], []);

    assert.throws(
      () => refuseUsed(workspace, { force: false }),
      new RegExp(`is in use.*\\(pid ${writes}\\).*--force`),
    );
    assert.ok(refuseUsed(workspace, { force: true }).some((line) => line.includes(`pid ${stands}`)));
  },
);

test('an open directory and a shared writable mapping count as ways into the workspace', limit, async () => {
  const workspace = join(top, 'w s');
  mkdirSync(workspace);
  writeFileSync(join(workspace, 'f'), 'x'.repeat(8192));
  const child = spawn(
    'python3',
    [
      '-c',
      `
import mmap, os, sys, time
d = os.open('w s', os.O_RDONLY | os.O_DIRECTORY)
f = os.open('w s/f', os.O_RDWR)
m = mmap.mmap(f, 0)
os.close(f)
print('ready', flush=True)
time.sleep(60)
`,
    ],
    { cwd: top, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  children.push(child);
  await once(child.stdout!, 'data');
  const kinds = findUsers(workspace)
    .users.filter((user) => user.pid === child.pid)
    .map((user) => user.what);
  assert.ok(kinds.includes('open directory') && kinds.includes('writable mapping'), kinds.join());
});

test('the shell in which forget was started is told to change directory, not refused', limit, () => {
  const workspace = join(top, 'ws');
  mkdirSync(workspace);
  const script = `
    process.chdir('/');
    // With --force, because tsx's own service stands in the workspace too.
    const { refuseUsed } = await import(${JSON.stringify(join(checkout, 'src/window/users.ts'))});
    console.log(refuseUsed(${JSON.stringify(workspace)}, { force: true }).join('\\n'));
  `;
  const env = { ...process.env, SCRIPT: script, TSX: import.meta.resolve('tsx') };
  const { stdout, stderr } = spawnSync(
    'bash',
    ['-c', `'${process.execPath}' --import "$TSX" --input-type=module -e "$SCRIPT"; true`],
    {
      cwd: workspace,
      env,
      encoding: 'utf8',
    },
  );
  assert.match(stdout, /^bash \(pid \d+\) stands in the workspace from before the mount/m, stderr);
  assert.doesNotMatch(stdout, /not covered by this mount: bash/);
});

test('a place with the programs or the loader that forget itself needs is refused, one below it is not', () => {
  for (const place of ['/usr', '/usr/bin', '/usr/lib']) {
    assert.throws(() => refuseOwnPrograms(place, ['/usr/bin/setpriv', '/bin/sh']), /forget itself needs/);
  }
  refuseOwnPrograms('/usr/share', ['/usr/bin/setpriv', '/bin/sh']);
});
