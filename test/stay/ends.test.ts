// Hands on the mount, signals at every stage, closed descriptors and low limits: each ends cleanly, in time.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { buildSettings } from '../../src/window/settings.ts';
import { gone, servers, sh, withMounts } from '../cases/mounts.ts';
import { withWorkspace } from '../cases/window.ts';
import { forgetExec, protectedDifferences, type Workspace } from '../harness/forget.ts';
import { until } from '../harness/until.ts';
import { checkout, forgetFor, readableFor, type User } from '../harness/users.ts';
import {
  allPids,
  describeProcess,
  endMarked,
  forgetMounts,
  markedProcesses,
  newMark,
  processesWith,
  programOf,
  runWatched,
  signalAll,
  stacksOf,
} from '../harness/watchdog.ts';

const writer = fileURLToPath(new URL('./writer.py', import.meta.url));

async function assertNothingLeft(workspace: Workspace, mark: string, withinMs = 3000): Promise<void> {
  const mounts = () =>
    forgetMounts(allPids()).filter(({ mountpoint }) => mountpoint.startsWith(workspace.top));
  for (let i = 0; i * 50 < withinMs && (markedProcesses(mark).length > 0 || mounts().length > 0); i++)
    await delay(50);
  assert.deepEqual(
    { processes: markedProcesses(mark).map(describeProcess), mounts: mounts() },
    { processes: [], mounts: [] },
    markedProcesses(mark).map(stacksOf).join('\n'),
  );
  assert.deepEqual(protectedDifferences(workspace), []);
}

/** Ends a connection whatever its server does, in a namespace that has the control filesystem. */
function abort(connection: number): void {
  const script = `cd /sys/fs/fuse/connections
[ "$(ls)" ] || { mount -t fusectl fusectl . && cd /sys/fs/fuse/connections; }
echo 1 >"$1/abort"`;
  execFileSync('unshare', ['--mount', 'sh', '-c', script, 'sh', `${connection}`], { timeout: 10_000 });
}

const connectionOf = (workspace: Workspace) =>
  forgetMounts(allPids()).find(({ mountpoint }) => mountpoint === workspace.path)!.connection;

withMounts('an abort through /sys/fs/fuse ends the mount and its server', async (workspace, forget) => {
  assert.equal((await forget.run('mount', workspace.path)).code, 0);
  sh('echo leak >>memory/old.md', workspace.path);
  abort(connectionOf(workspace));
  await gone(forget);
  assert.deepEqual(protectedDifferences(workspace), []);
});

withMounts(
  'after umount -l by hand whoever works in the mount goes on there, and the server ends with the last of them',
  async (workspace, forget) => {
    assert.equal((await forget.run('mount', workspace.path)).code, 0);
    const script =
      'touch "$1"; while [ ! -e "$2" ]; do sleep 0.02; done; echo leak >>memory/old.md; tail -n 1 memory/old.md';
    const [ready, go] = ['ready', 'go'].map((name) => join(workspace.top, name));
    const holder = runWatched(['sh', '-c', script, 'sh', ready!, go!], {
      user: 'root',
      cwd: workspace.path,
      timeout: 20_000,
    });
    for (let i = 0; i < 200 && !existsSync(ready!); i++) await delay(20);
    execFileSync('umount', ['-l', workspace.path], { timeout: 10_000 });
    assert.equal(servers(forget).length, 1);
    execFileSync('touch', [go!]);
    assert.equal((await holder).stdout, 'leak\n');
    await gone(forget);
    assert.deepEqual(protectedDifferences(workspace), []);
  },
);

withMounts(
  'a stopped program that works in the mount does not keep unmount --force waiting',
  async (workspace, forget) => {
    assert.equal((await forget.run('mount', workspace.path)).code, 0);
    let stopped = 0;
    let mark = '';
    const program = runWatched(['python3', '-c', 'f = open("src/main.py", "a"); input()'], {
      user: 'root',
      cwd: join(workspace.path, 'memory'),
      timeout: 30_000,
      input: '',
      started: (pid, given) => {
        stopped = pid;
        mark = given;
        process.kill(pid, 'SIGSTOP');
      },
    }).catch(() => undefined);
    await delay(100);
    const unmounted = await forget.run('unmount', '--force', workspace.path);
    assert.equal(unmounted.code, 0, unmounted.stderr);
    await gone(forget);
    process.kill(stopped, 'SIGKILL');
    await program;
    await endMarked(mark);
    assert.deepEqual(protectedDifferences(workspace), []);
  },
);

withMounts(
  'an unmount ends the window also where another namespace keeps a copy of the mount',
  async (workspace, forget) => {
    assert.equal((await forget.run('mount', workspace.path)).code, 0);
    let mark = '';
    const copy = runWatched(['unshare', '--mount', 'sleep', '20'], {
      user: 'root',
      cwd: '/',
      timeout: 30_000,
      started: (_pid, given) => {
        mark = given;
      },
    }).catch(() => undefined);
    await delay(300);
    const unmounted = await forget.run('unmount', workspace.path);
    assert.equal(unmounted.code, 0, unmounted.stderr);
    assert.ok(unmounted.milliseconds < 8000, `${unmounted.milliseconds} ms`);
    for (let i = 0; i < 60 && forget.processes().length > 0; i++) await delay(50);
    assert.deepEqual(forget.processes(), []);
    await endMarked(mark);
    await copy;
    await gone(forget);
  },
);

withWorkspace(
  'an abort through /sys/fs/fuse ends forget exec with 125, and its command',
  async (workspace) => {
    let mark = '';
    const ready = join(workspace.top, 'ready');
    const window = forgetExec(workspace, ['sh', '-c', 'touch "$1"; sleep 20', 'sh', ready], {
      timeout: 20_000,
      started: (_pid, given) => {
        mark = given;
      },
    });
    for (let i = 0; i < 500 && !existsSync(ready); i++) await delay(20);
    abort(connectionOf(workspace));
    const result = await window;
    assert.equal(result.code, 125);
    assert.equal(result.stderr, 'forget: the filesystem ended while the command ran; the command is ended\n');
    await assertNothingLeft(workspace, mark);
  },
);

for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  withWorkspace(
    `${signal} to forget exec at six moments of its life ends it, and all of it`,
    async (workspace) => {
      for (let round = 0; round < 6; round++) {
        let mark = '';
        let forget = 0;
        const window = forgetExec(workspace, ['sh', '-c', 'echo leak >>memory/old.md; exec sleep 20'], {
          timeout: 15_000,
          started: (pid, given) => {
            forget = pid;
            mark = given;
          },
        });
        await delay(round * 70);
        signalAll([forget], signal);
        const result = await window;
        assert.notEqual(result.code, 0, `round ${round}`);
        assert.doesNotMatch(result.stderr, /internal error|^ {4}at /m);
        await assertNothingLeft(workspace, mark);
      }
    },
  );

  withMounts(
    `${signal} to forget mount at six moments of its start leaves nothing`,
    async (workspace, forget) => {
      for (let round = 0; round < 6; round++) {
        const place = round % 2 === 0 ? ['--foreground'] : [];
        const started = runWatched([forgetFor('root'), 'mount', ...place, workspace.path], {
          user: 'root',
          cwd: '/',
          timeout: 20_000,
          started: (pid) => setTimeout(() => signalAll([pid], signal), round * 80),
        });
        const result = await started;
        assert.doesNotMatch(result.stderr, /internal error/);
        // It was through by then.
        if (result.code === 0 && place.length === 0) await forget.run('unmount', workspace.path);
        await assertNothingLeft(workspace, result.mark);
      }
      assert.deepEqual(forget.mounted(), []);
    },
  );
}

withMounts(
  'a mount whose server is ready ends when who asked for it has ended before it knew',
  async (workspace, forget) => {
    const { settings } = await buildSettings({ agents: ['none'], argv: [], rules: [] }, workspace.path);
    const mark = newMark();
    const server = spawn(process.execPath, [join(checkout, 'dist/daemon.cjs')], {
      cwd: '/',
      detached: true,
      env: { ...process.env, FORGET_TEST_MOUNT: mark },
      stdio: ['pipe', 'pipe', 'inherit', 'pipe'],
    });
    const start = { settings, mountpoint: workspace.path, first: { open: true, name: undefined } };
    server.stdin!.end(JSON.stringify(start));
    const [answer] = (await once(server.stdout!, 'data')) as [Buffer];
    assert.match(answer.toString(), /^{"ready"/);
    assert.deepEqual(forget.mounted(), [workspace.path]);
    server.stdio[3]!.destroy();
    await until('the mount is gone', () => forget.mounted().length === 0);
    await until('all processes are gone', () => processesWith('FORGET_TEST_MOUNT', mark).length === 0);
    assert.deepEqual(protectedDifferences(workspace), []);
  },
);

withMounts(
  'a kill -9 between the mount and the first request leaves no dead mount',
  async (workspace, forget) => {
    // The first thing that only a server which has mounted asks for.
    const call = 'inotify_init1';
    const line = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', `trace=${call}`];
    const kill = ['-e', `inject=${call}:signal=KILL`];
    const mount = [forgetFor('root'), 'mount', '--foreground', workspace.path];
    for (let round = 0; round < 3; round++) {
      const killed = await runWatched([...line, ...kill, ...mount], {
        user: 'root',
        cwd: '/',
        timeout: 20_000,
      });
      assert.notEqual(killed.code, 0);
      await assertNothingLeft(workspace, killed.mark);
    }
    assert.deepEqual(forget.mounted(), []);
  },
);

withWorkspace('closed standard descriptors, and full ones, change nothing of the end', async (workspace) => {
  const forget = forgetFor(workspace.user);
  const line = `"$1" exec -- sh -c 'cat memory/old.md >/dev/null; echo leak >>memory/old.md; exit 7'`;
  for (const redirection of ['<&- >&- 2>&-', '>/dev/full', '>/dev/full 2>/dev/full', '<&-', '2>&-']) {
    const result = await runWatched(
      [
        'sh',
        '-c',
        `${line} ${redirection}; echo "ended with $?" >"$2"`,
        'sh',
        forget,
        join(workspace.top, 'code'),
      ],
      {
        user: workspace.user,
        cwd: workspace.path,
        timeout: 20_000,
      },
    );
    assert.equal(readFileSync(join(workspace.top, 'code'), 'utf8'), 'ended with 7\n', redirection);
    await assertNothingLeft(workspace, result.mark);
  }
});

withWorkspace('with few descriptors a window works, or says what is missing', async (workspace) => {
  for (const limit of [400, 64, 32, 20]) {
    const script =
      'for i in $(seq 1 300); do echo $i >src/many$i; done; cat src/many* | wc -l; rm src/many*; exit 7';
    const line = `ulimit -n ${limit}; exec "$1" exec --quiet -- sh -c '${script}'`;
    const result = await runWatched(['sh', '-c', line, 'sh', forgetFor(workspace.user)], {
      user: workspace.user,
      cwd: workspace.path,
      timeout: 30_000,
    });
    if (result.code === 7) assert.equal(result.stdout, '300\n', `limit ${limit}: ${result.stderr}`);
    else {
      assert.ok(limit < 400, result.stderr);
      assert.notEqual(result.code, 0);
      assert.notEqual(result.stderr, '');
    }
    await assertNothingLeft(workspace, result.mark);
  }
});

/** Kills forget while its command and somebody outside change the same directory. */
async function killCrossed(workspace: Workspace, user: User, round: number): Promise<void> {
  let mark = '';
  const window = forgetExec(workspace, ['python3', readableFor(user, writer), 'src/shared', '3'], {
    timeout: 15_000,
    started: (_pid, given) => {
      mark = given;
    },
  }).catch(() => undefined);
  let outside = '';
  const other = runWatched(['python3', readableFor(user, writer), join(workspace.path, 'src/shared'), '2'], {
    user,
    cwd: '/',
    timeout: 20_000,
    started: (_pid, given) => {
      outside = given;
    },
  }).catch(() => undefined);
  await delay(700 + round * 60);
  signalAll(
    markedProcesses(mark).filter((one) => programOf(one) === 'node'),
    'SIGKILL',
  );
  for (let i = 0; i < 100 && markedProcesses(mark).length > 0; i++) await delay(50);
  await endMarked(outside);
  await other;
  await assertNothingLeft(workspace, mark);
  await window;
}

withWorkspace(
  'a kill -9 of forget while edits from outside and inside cross in one directory ends all of it',
  async (workspace) => {
    for (let round = 0; round < 8; round++) await killCrossed(workspace, workspace.user, round);
  },
);
