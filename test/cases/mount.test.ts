// 2, 7, 8, 35 and `forget mount`: the view that every process sees.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { protectedDifferences } from '../harness/forget.ts';
import { endMarked, markedProcesses, runWatched, signalAll } from '../harness/watchdog.ts';
import { gone, read, servers, sh, withMounts } from './mounts.ts';

withMounts(
  'a workspace mounted in place catches every process, and unmounting brings the lower back',
  async (workspace, forget) => {
    const mounted = await forget.run('mount', workspace.path);
    assert.equal(mounted.code, 0, mounted.stderr);
    assert.deepEqual(forget.mounted(), [workspace.path]);
    sh(
      'echo leak >> memory/old.md; echo leak > DELIVERABLES.md; echo real > src/real.txt; rm MEMORY.md',
      workspace.path,
    );
    assert.equal(read(workspace, 'DELIVERABLES.md'), 'leak\n');
    assert.match((await forget.run('status')).stdout, new RegExp(workspace.path));
    const status = JSON.parse((await forget.run('status', '--json')).stdout) as unknown;
    assert.ok(JSON.stringify(status).includes(workspace.path));
    const unmounted = await forget.run('unmount', workspace.path);
    assert.equal(unmounted.code, 0, unmounted.stderr);
    await gone(forget);
    assert.deepEqual(protectedDifferences(workspace), []);
    assert.equal(readFileSync(join(workspace.path, 'src/real.txt'), 'utf8'), 'real\n');
  },
);

withMounts('a mount at another place leaves the workspace as it is', async (workspace, forget) => {
  const at = join(workspace.top, 'view');
  mkdirSync(at);
  const mounted = await forget.run('mount', workspace.path, at);
  assert.equal(mounted.code, 0, mounted.stderr);
  sh('echo leak >> memory/old.md; echo real > src/real.txt; tail -n 1 memory/old.md', at);
  assert.deepEqual(protectedDifferences(workspace), []);
  assert.equal(readFileSync(join(workspace.path, 'src/real.txt'), 'utf8'), 'real\n');
  assert.equal((await forget.run('unmount', at)).code, 0);
  await gone(forget);
});

for (const [what, place] of [
  ['over itself', ''],
  ['below itself', '.mnt'],
  ['over its own memory', 'memory'],
] as const) {
  withMounts(
    `a workspace mounted ${what} works or refuses at once, and never hangs`,
    async (workspace, forget) => {
      const at = join(workspace.path, place);
      if (place === '.mnt') mkdirSync(at);
      const result = await forget.run('mount', workspace.path, at);
      assert.ok(result.milliseconds < 5000, `${result.milliseconds} ms`);
      if (result.code === 0) {
        sh('ls -R . > /dev/null; cat memory/old.md || true', workspace.path);
        assert.equal((await forget.run('unmount', at)).code, 0);
      } else {
        assert.equal(result.code, 125, result.stderr);
        assert.equal(result.stderr.trim().split('\n').length, 1, result.stderr);
      }
      await gone(forget);
      assert.deepEqual(protectedDifferences(workspace), []);
    },
  );
}

withMounts(
  'when the server is killed its users get an error at once, nothing stale is left, and the next mount works',
  async (workspace, forget) => {
    assert.equal((await forget.run('mount', workspace.path)).code, 0);
    const loop = (what: string) =>
      runWatched(['sh', '-c', `while ${what}; do :; done 2>/dev/null; echo told`], {
        user: 'root',
        cwd: workspace.path,
        timeout: 15_000,
      });
    const writers = [
      'echo leak >> memory/old.md',
      'echo real >> src/log.txt',
      'mkdir memory/d && rmdir memory/d',
    ].map(loop);
    await delay(300);
    signalAll(servers(forget), 'SIGKILL');
    for (const writer of writers) assert.equal((await writer).stdout, 'told\n');
    await gone(forget);
    assert.deepEqual(protectedDifferences(workspace), []);
    const again = await forget.run('mount', workspace.path);
    assert.equal(again.code, 0, again.stderr);
    sh('echo leak >> memory/old.md', workspace.path);
    assert.equal((await forget.run('unmount', workspace.path)).code, 0);
    await gone(forget);
    assert.deepEqual(protectedDifferences(workspace), []);
  },
);

withMounts(
  'when the server is killed a reader inside gets an error or the view that it had, and never hangs',
  async (workspace, forget) => {
    assert.equal((await forget.run('mount', workspace.path)).code, 0);
    sh('echo of the view > memory/old.md', workspace.path);
    // What the kernel holds of a file it can give without the server (no_open); everything else is an error.
    const script = `cat memory/old.md; touch ../ready; while [ ! -e ../go ]; do sleep 0.02; done
cat memory/old.md || echo told; cat src/big.txt >/dev/null || echo told; ls memory/people || echo told`;
    const reader = runWatched(
      [
        'sh',
        '-c',
        `exec 2>/dev/null; cd "$1"; ${script.replaceAll('../', '"$2"/')}`,
        'sh',
        workspace.path,
        workspace.top,
      ],
      { user: 'root', cwd: '/', timeout: 15_000 },
    );
    for (let i = 0; i < 200 && !existsSync(join(workspace.top, 'ready')); i++) await delay(20);
    signalAll(servers(forget), 'SIGKILL');
    await gone(forget);
    writeFileSync(join(workspace.top, 'go'), '');
    assert.match((await reader).stdout, /^of the view\n(of the view|told)\ntold\ntold\n$/);
  },
);

withMounts('an unmount by hand from another shell ends the server', async (workspace, forget) => {
  assert.equal((await forget.run('mount', workspace.path)).code, 0);
  sh('echo leak >> memory/old.md', workspace.path);
  execFileSync('umount', [workspace.path], { timeout: 10_000 });
  await gone(forget);
  assert.deepEqual(protectedDifferences(workspace), []);
});

withMounts(
  'mounting and unmounting ten times, with files open and directories entered, leaves nothing',
  async (workspace, forget) => {
    for (let i = 0; i < 10; i++) {
      assert.equal((await forget.run('mount', workspace.path)).code, 0);
      const holder = runWatched(['sh', '-c', 'cd src; exec 3<main.py; cat <&3; exec sleep 0.2'], {
        user: 'root',
        cwd: workspace.path,
      });
      await holder;
      const unmounted = await forget.run('unmount', workspace.path);
      assert.equal(unmounted.code, 0, unmounted.stderr);
      await gone(forget);
    }
  },
);

withMounts(
  'an in-place mount is refused with the names of those who work there already',
  async (workspace, forget) => {
    let mark = '';
    const holder = runWatched(['sleep', '30'], {
      user: 'root',
      cwd: join(workspace.path, 'src'),
      started: (_pid, given) => {
        mark = given;
      },
    });
    await delay(200);
    const refused = await forget.run('mount', workspace.path);
    assert.equal(refused.code, 125, refused.stdout);
    assert.match(refused.stderr, /sleep/);
    assert.match(refused.stderr, /--force/);
    await gone(forget);
    await endMarked(mark);
    await holder;
    assert.deepEqual(markedProcesses(mark), []);
  },
);

withMounts(
  'unmounting does not wait for other mount namespaces that have a copy of the mount',
  async (workspace, forget) => {
    assert.equal((await forget.run('mount', workspace.path)).code, 0);
    const holder = spawn('unshare', ['--mount', 'sh', '-c', 'echo; exec sleep 60'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    try {
      await once(holder.stdout, 'data');
      const unmounted = await forget.run('unmount', workspace.path);
      assert.equal(unmounted.code, 0, unmounted.stderr);
      assert.ok(unmounted.milliseconds < 10_000);
    } finally {
      holder.kill('SIGKILL');
    }
    await gone(forget);
    assert.deepEqual(protectedDifferences(workspace), []);
  },
);
