// `--driver fuse-native`: what is this driver's own. The writers have a file of theirs (test/writers).
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { withWorkspace } from '../cases/window.ts';
import { forgetExec, protectedDifferences, type Workspace } from '../harness/forget.ts';
import { snapshot } from '../harness/tree.ts';
import { until } from '../harness/until.ts';
import { checkout, forgetFor, idsOf, readableFor, users } from '../harness/users.ts';
import {
  allPids,
  forgetMounts,
  markedProcesses,
  newMark,
  processesWith,
  programOf,
  runWatched,
  signalAll,
} from '../harness/watchdog.ts';

const NATIVE = ['--quiet', '--driver', 'fuse-native'];
const writer = fileURLToPath(new URL('../crash/writer.py', import.meta.url));

const python = (workspace: Workspace, program: string) =>
  forgetExec(workspace, ['python3', '-c', program], { options: NATIVE });

/** A file that the workspace's user has made outside of the window. */
function put(workspace: Workspace, path: string | Buffer, data: string | Buffer): void {
  writeFileSync(path, data);
  const { uid, gid } = idsOf(workspace.user);
  chownSync(path, uid, gid);
}

/** What libfuse would leave behind. */
const hidden = (workspace: Workspace) =>
  [...snapshot(workspace.path).keys()].filter((path) => path.includes('.fuse_hidden'));

withWorkspace(
  'files that are removed or replaced while open live on, and no hidden name of theirs comes to be',
  async (workspace) => {
    const end = await python(
      workspace,
      `
import os
for place in ("memory", "src"):
    for name in ("gone", "over"):
        open(f"{place}/{name}", "w").write("old")
    gone, over = open(f"{place}/gone", "r+"), open(f"{place}/over", "r+")
    os.unlink(f"{place}/gone")
    open(f"{place}/new", "w").write("new")
    os.rename(f"{place}/new", f"{place}/over")
    gone.write("alive"); gone.flush(); over.write("too"); over.flush()
    for file in (gone, over):
        file.seek(0)
        print(file.read(), os.fstat(file.fileno()).st_nlink, os.fstat(file.fileno()).st_size)
    os.ftruncate(gone.fileno(), 2); os.fchmod(gone.fileno(), 0o600)
    print(os.fstat(gone.fileno()).st_size, open(f"{place}/over").read(), os.path.exists(f"{place}/gone"))
    print([name for name in os.listdir(place) if "fuse" in name])
open("during", "w").close()
`,
    );
    assert.equal(end.stderr, '');
    assert.equal(end.stdout, 'alive 0 5\ntoo 0 3\n2 new False\n[]\n'.repeat(2));
    assert.deepEqual(hidden(workspace), []);
    assert.equal(readFileSync(join(workspace.path, 'src/over'), 'utf8'), 'new');
    assert.ok(!existsSync(join(workspace.path, 'src/gone')));
    assert.deepEqual(protectedDifferences(workspace), []);
  },
);

withWorkspace('names that are not UTF-8 are themselves, in every call', async (workspace) => {
  const lower = (name: string) =>
    Buffer.concat([Buffer.from(`${workspace.path}/`), Buffer.from(name, 'latin1')]);
  put(workspace, lower('src/\xfe'), 'one');
  put(workspace, lower('src/\xfd'), 'other');
  put(workspace, lower('src/\xef\xbf\xbd'), 'the replacement character');
  const before = snapshot(workspace.path);
  const end = await python(
    workspace,
    `
import os
print(sorted(name for name in os.listdir(b"src") if name[0] > 127))
print(*(open(b"src/" + name).read() for name in (b"\\xfe", b"\\xfd", b"\\xef\\xbf\\xbd")))
os.rename(b"src/\\xfe", b"src/\\xff"); os.symlink(b"\\xff", b"src/\\xf0"); os.link(b"src/\\xfd", b"src/\\xf1")
print(os.readlink(b"src/\\xf0"), open(b"src/\\xf0").read(), os.stat(b"src/\\xf1").st_nlink)
os.setxattr(b"src/\\xff", b"user.\\xf2", b"v"); print(os.listxattr(b"src/\\xff"))
open(b"memory/\\xff", "w").write("protected"); print(os.listdir(b"memory").count(b"\\xff"))
os.unlink(b"src/\\xef\\xbf\\xbd")
`,
  );
  assert.equal(end.stderr, '');
  assert.equal(
    end.stdout,
    String.raw`[b'\xef\xbf\xbd', b'\xfd', b'\xfe']
one other the replacement character
b'\xff' one 2
['user.\udcf2']
1
`,
  );
  assert.equal(readFileSync(lower('src/\xff'), 'utf8'), 'one');
  assert.equal(readFileSync(lower('src/\xfd'), 'utf8'), 'other');
  assert.equal(snapshot(workspace.path).size, before.size + 1, 'two made, one removed');
  assert.deepEqual(protectedDifferences(workspace), []);
});

withWorkspace(
  'an append finds the end that others have moved, and a mapped write stays in its place',
  async (workspace) => {
    const end = await python(
      workspace,
      `
import mmap, os
open("src/log", "w").write("a" * 4096)
log = os.open("src/log", os.O_RDWR | os.O_APPEND)
other = os.open("src/log", os.O_WRONLY | os.O_APPEND)
for n in range(100):
    os.write(log, b"+"); os.write(other, b"-")
print(os.fstat(log).st_size)
mapped = mmap.mmap(log, 4096); mapped[:3] = b"map"; mapped.flush(); mapped.close()
print(os.fstat(log).st_size, os.pread(log, 4, 0))
`,
    );
    assert.equal(end.stderr, '');
    assert.equal(end.stdout, "4296\n4296 b'mapa'\n");
  },
);

withWorkspace('a large file is copied up while others are served', async (workspace) => {
  const big = join(workspace.path, 'memory/big');
  put(workspace, big, Buffer.alloc(48 << 20, 'b'));
  workspace.before = snapshot(workspace.path);
  const end = await forgetExec(
    workspace,
    [
      'sh',
      '-c',
      'for i in 1 2 3 4; do printf x >> memory/big & done; ls memory >/dev/null; wait; tail -c 6 memory/big; stat -c " %s" memory/big',
    ],
    { options: NATIVE },
  );
  assert.equal(end.stdout, `bbxxxx ${(48 << 20) + 4}\n`);
  assert.deepEqual(protectedDifferences(workspace), []);
});

withWorkspace('what others change is seen at once', async (workspace) => {
  const ready = join(workspace.top, 'ready');
  put(workspace, join(workspace.path, 'src/edited'), 'before');
  const run = python(
    workspace,
    `
import os, time
print(open("src/edited").read() == "before", os.path.exists("src/appears"))
open(${JSON.stringify(ready)}, "w").close()
while not os.path.exists("src/appears"): time.sleep(0.01)
print(open("src/edited").read(), os.path.exists("src/renamed"), os.stat("memory/old.md").st_size)
`,
  );
  await until('the program has begun', () => existsSync(ready));
  writeFileSync(join(workspace.path, 'src/edited'), 'changed');
  writeFileSync(join(workspace.path, 'src/x'), '');
  renameSync(join(workspace.path, 'src/x'), join(workspace.path, 'src/renamed'));
  writeFileSync(join(workspace.path, 'memory/old.md'), 'four');
  writeFileSync(join(workspace.path, 'src/appears'), '');
  const end = await run;
  assert.equal(end.stdout, 'True False\nchanged True 4\n', end.stderr);
});

withWorkspace('kill -9 of forget ends the command and leaves nothing', async (workspace) => {
  for (const wait of [0, 150, 500]) {
    let mark = '';
    const log = join(workspace.top, `log-${wait}`);
    const argv = ['python3', readableFor(workspace.user, writer), log, '1'];
    const run = forgetExec(workspace, argv, {
      options: NATIVE,
      started: (_, given) => {
        mark = given;
      },
    });
    const servers = () => markedProcesses(mark).filter((pid) => programOf(pid) === 'node');
    await until('the writer writes', () => existsSync(log) && servers().length > 0);
    await delay(wait);
    signalAll(servers(), 'SIGKILL');
    await run;
    await until('no process is left', () => markedProcesses(mark).length === 0);
    const mounts = forgetMounts(allPids()).filter((mount) => mount.mountpoint.startsWith(workspace.top));
    assert.deepEqual(mounts, []);
    assert.deepEqual(protectedDifferences(workspace), []);
    assert.deepEqual(hidden(workspace), []);
  }
});

withWorkspace(
  'a mount that everybody sees opens, catches and closes, whatever its path is called',
  async (workspace) => {
    const mark = newMark();
    const forget = (...argv: string[]) =>
      runWatched([forgetFor('root'), ...argv], {
        user: 'root',
        cwd: '/',
        timeout: 20_000,
        env: { FORGET_TEST_NATIVE: mark },
      });
    const place = join(workspace.top, `it's "$(touch oops)" \`é\n`);
    mkdirSync(place);
    // In this mount namespace: others that were made meanwhile may have copies.
    const mounted = () =>
      forgetMounts([process.pid]).filter((mount) => mount.mountpoint.startsWith(workspace.top)).length;
    const processes = () => processesWith('FORGET_TEST_NATIVE', mark);
    const write = (text: string) =>
      spawnSync('sh', ['-c', `echo ${text} > memory/new && cat memory/new`], {
        cwd: place,
        encoding: 'utf8',
        timeout: 10_000,
      }).stdout;
    try {
      const first = await forget('mount', '--driver', 'fuse-native', workspace.path, place);
      assert.equal(first.code, 0, first.stderr);
      assert.equal(write('caught'), 'caught\n');
      const closed = await forget('unmount', place);
      assert.equal(closed.code, 0, closed.stderr);
      assert.match(closed.stderr, /memory\/new +created, 7 written/);
      await until('closed by forget unmount', () => mounted() === 0 && processes().length === 0);

      assert.equal((await forget('mount', '--driver', 'fuse-native', workspace.path, place)).code, 0);
      assert.equal(write('again'), 'again\n');
      execFileSync('umount', ['-f', place]);
      await until('closed by umount -f', () => mounted() === 0 && processes().length === 0);

      assert.equal((await forget('mount', '--driver', 'fuse-native', workspace.path, place)).code, 0);
      signalAll(
        processes().filter((one) => programOf(one) === 'node'),
        'SIGKILL',
      );
      await until('cleared after kill -9', () => mounted() === 0 && processes().length === 0);
    } finally {
      signalAll(processes(), 'SIGKILL');
    }
    assert.deepEqual(protectedDifferences(workspace), []);
  },
  { users: ['root'] },
);

withWorkspace(
  'an ordinary user is told that forget mount has this driver for root alone',
  async (workspace) => {
    const argv = [forgetFor('ordinary'), 'mount', '--driver', 'fuse-native', workspace.path];
    const end = await runWatched(argv, { user: 'ordinary', cwd: workspace.top });
    assert.equal(end.code, 125);
    assert.match(end.stderr, /^forget: forget mount --driver fuse-native needs root; "forget exec/);
  },
  { users: ['ordinary'] },
);

// A file or directory of this machine is covered in a mount namespace of the test's own.
const COVERED = [
  {
    title: "without the system's libfuse the package's own does",
    cover:
      'for one in /usr/lib/*/libfuse.so.2 /lib/*/libfuse.so.2; do [ -e "$one" ] && mount --bind /dev/null "$one"; done',
    code: 0,
    says: /^$/,
  },
  {
    title: 'without any libfuse it is refused, with what to install',
    cover:
      'for one in /usr/lib/*/libfuse.so.2 /lib/*/libfuse.so.2 node_modules/fuse-native/prebuilds/linux-x64/libfuse.so; do [ -e "$one" ] && mount --bind /dev/null "$one"; done',
    code: 125,
    says: /^forget: --driver fuse-native: the addon does not load: .*libfuse.*; install libfuse 2 \(package libfuse2/,
  },
  {
    title: 'without the package it is refused, with what to install',
    cover: 'mount -t tmpfs tmpfs node_modules/fuse-native',
    code: 125,
    says: /^forget: --driver fuse-native: the npm package fuse-native is not installed; run "npm install fuse-native@2\.2\.6"/,
  },
];

for (const { title, cover, code, says } of users.includes('root') ? COVERED : []) {
  withWorkspace(
    title,
    async (workspace) => {
      const script = `cd "$1"; ${cover}; cd "$2"; shift 2; exec "$@"`;
      const line = [forgetFor('root'), 'exec', ...NATIVE, '--', 'sh', '-c', 'echo leak > memory/new'];
      const argv = ['unshare', '--mount', 'sh', '-c', script, 'sh', checkout, workspace.path, ...line];
      const end = await runWatched(argv, { user: 'root', cwd: '/' });
      assert.equal(end.code, code, end.stderr);
      assert.match(end.stderr, says);
      assert.deepEqual(protectedDifferences(workspace), []);
    },
    { users: ['root'] },
  );
}

test('the default driver loads nothing of it', { timeout: 30_000 }, async () => {
  const { stdout } = spawnSync(
    join(checkout, 'bin/forget'),
    [
      'exec',
      '--quiet',
      '-w',
      process.env.TMPDIR ?? '/tmp',
      '--',
      'sh',
      '-c',
      'grep -c fuse /proc/$PPID/maps',
    ],
    { encoding: 'utf8', timeout: 20_000 },
  );
  assert.equal(stdout, '0\n');
});
