// `forget open`, `forget close` and `forget mount --no-window` on the command line.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gone, read, sh, withMounts } from '../cases/mounts.ts';
import { forgetExec, protectedDifferences } from '../harness/forget.ts';
import { runWatched } from '../harness/watchdog.ts';

withMounts(
  'windows are opened, listed and closed by name, and the report of each is its own',
  async (workspace, forget) => {
    const ok = async (...argv: string[]) => {
      const result = await forget.run(...argv);
      assert.equal(result.code, 0, result.stderr);
      return result;
    };
    const mounted = await ok('mount', '--no-window', workspace.path);
    assert.match(mounted.stderr, /no window is open; "forget open .*" opens one/);
    assert.match((await ok('status')).stdout, /windows +none open: nothing is protected/);
    assert.match((await ok('open', workspace.path)).stderr, /window 1 is open/);
    sh('echo outer >> memory/old.md', workspace.path);
    assert.deepEqual(
      JSON.parse((await ok('open', '--json', '--name', 'private', join(workspace.path, 'src'))).stdout).name,
      'private',
    );
    sh('echo inner >> memory/old.md; echo new > memory/new.md', workspace.path);
    assert.match((await ok('status')).stdout, /windows +1, private/);
    const listed = JSON.parse((await ok('status', '--json')).stdout) as {
      workspace: string;
      windows: { name: string; opened: string }[];
    }[];
    assert.deepEqual(
      listed
        .filter((one) => one.workspace === workspace.path)
        .flatMap(({ windows }) => windows)
        .map(({ name }) => name),
      ['1', 'private'],
    );
    const report = JSON.parse((await ok('close', '--json', workspace.path)).stdout);
    assert.equal(report.kind, 'window');
    assert.equal(report.name, 'private');
    assert.deepEqual(report.protected.map((record: { path: string }) => record.path).sort(), [
      'memory/new.md',
      'memory/old.md',
    ]);
    assert.match(read(workspace, 'memory/old.md'), /outer\n$/);
    const closed = await ok('close', '--name', '1');
    assert.match(closed.stderr, /memory\/old\.md +6 written/);
    assert.match(closed.stderr, /window 1 of .* is closed/);
    sh('echo real >> memory/old.md', workspace.path);
    await ok('unmount', workspace.path);
    await gone(forget);
    assert.match(readFileSync(join(workspace.path, 'memory/old.md'), 'utf8'), /real\n$/);
  },
);

withMounts('what cannot be opened or closed is told in one line', async (workspace, forget) => {
  const fails = async (pattern: RegExp, ...argv: string[]) => {
    const result = await forget.run(...argv);
    assert.equal(result.code, 125, `${argv.join(' ')}: ${result.stderr}`);
    assert.equal(result.stderr.trim().split('\n').length, 1, result.stderr);
    assert.match(result.stderr, pattern);
  };
  await fails(/is not mounted.*"forget mount .*" mounts it first/, 'open', workspace.path);
  await fails(/is not mounted/, 'close', workspace.path);
  await fails(/no window 4711-09af/, 'close', '4711-09af');
  await fails(
    /--no-window opens none that --name could name/,
    'mount',
    '--no-window',
    '--name',
    'a',
    workspace.path,
  );
  assert.equal((await forget.run('mount', '--name', 'first', workspace.path)).code, 0);
  await fails(/a window named first is open already/, 'open', '--name', 'first', workspace.path);
  await fails(/cannot be a window's name/, 'open', '--name', 'a\nb', workspace.path);
  await fails(/cannot be a window's name/, 'open', '--name', '', workspace.path);
  await fails(
    /no window named gone is open; those that are: first/,
    'close',
    '--name',
    'gone',
    workspace.path,
  );
  assert.equal((await forget.run('close', workspace.path)).code, 0);
  await fails(/no window is open; "forget open" opens one/, 'close', workspace.path);
  await fails(/no window is open/, 'close', '--name', 'first', workspace.path);
  // The current directory decides, also where several are mounted.
  const [lower, other] = [join(workspace.top, 'lower'), join(workspace.top, 'other')];
  mkdirSync(lower);
  mkdirSync(other);
  assert.equal((await forget.run('mount', lower, other)).code, 0);
  await fails(/several workspaces are mounted.*name one:/, 'open');
  const there = await runWatched(['sh', '-c', `cd src && exec "$FORGET" open --name here`], {
    user: 'root',
    cwd: workspace.path,
    env: { FORGET: join(import.meta.dirname, '../../bin/forget') },
  });
  assert.match(there.stderr, /window here is open on .*ws;/);
  assert.equal((await forget.run('unmount', other)).code, 0);
  assert.equal((await forget.run('unmount', workspace.path)).code, 0);
  await gone(forget);
  assert.deepEqual(protectedDifferences(workspace), []);
  const inside = await forgetExec(
    workspace,
    ['sh', '-c', `"$FORGET" open "$FORGET_WINDOW"; "$FORGET" close .; true`],
    {
      env: { FORGET: join(import.meta.dirname, '../../bin/forget') },
    },
  );
  assert.match(inside.stderr, /is one of forget exec.*is one of forget exec/s);
});

withMounts('forget unmount closes all windows, and reports them', async (workspace, forget) => {
  assert.equal((await forget.run('mount', workspace.path)).code, 0);
  sh('echo outer >> memory/old.md', workspace.path);
  assert.equal((await forget.run('open', workspace.path)).code, 0);
  sh('rm MEMORY.md; echo held > tmpab12cd_x', workspace.path);
  const unmounted = await forget.run('unmount', workspace.path);
  assert.match(unmounted.stderr, /memory\/old\.md +6 written.*MEMORY\.md +deleted/s);
  await gone(forget);
  assert.equal(readFileSync(join(workspace.path, 'tmpab12cd_x'), 'utf8'), 'held\n');
  assert.deepEqual(protectedDifferences(workspace), []);
});
