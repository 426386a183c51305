// `forget mount` of a window that covers several directories: one window, seen and closed as one.

import assert from 'node:assert/strict';
import { chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { WindowStatus } from '../../src/window/control.ts';
import { gone, servers, sh, withMounts } from '../cases/mounts.ts';
import { protectedDifferences, type Workspace } from '../harness/forget.ts';
import { idsOf } from '../harness/users.ts';
import { signalAll } from '../harness/watchdog.ts';

function makeHome(workspace: Workspace): string {
  const home = join(workspace.top, 'agent');
  mkdirSync(home);
  writeFileSync(join(home, 'log'), 'old\n');
  chownSync(home, idsOf(workspace.user).uid, idsOf(workspace.user).gid);
  return home;
}

withMounts(
  'a mount with a second root shows both, in status too, and one unmount closes them',
  async (ws, forget) => {
    const home = makeHome(ws);
    const made = await forget.run('mount', '--root', home, ws.path);
    assert.equal(made.code, 0, made.stderr);
    assert.deepEqual(forget.mounted().sort(), [home, ws.path].sort());
    sh(`echo new >>${home}/log; echo x >${home}/other; echo m >memory/m; echo r >real`, ws.path);
    assert.equal(sh(`cat ${home}/log memory/m`, ws.path), 'old\nnew\nm\n');
    const all = JSON.parse((await forget.run('status', '--json')).stdout) as WindowStatus[];
    const status = all.find(({ mountpoint }) => mountpoint === ws.path);
    assert.deepEqual(status?.roots, [ws.path, home]);
    const unmounted = await forget.run('unmount', ws.path);
    assert.equal(unmounted.code, 0, unmounted.stderr);
    assert.match(unmounted.stderr, /memory\/m .*created/);
    assert.match(unmounted.stderr, /agent\/log .*written/);
    await gone(forget);
    assert.deepEqual(
      [readFileSync(join(home, 'log'), 'utf8'), existsSync(join(home, 'other'))],
      ['old\n', false],
    );
    assert.deepEqual(protectedDifferences(ws), []);
  },
);

withMounts('a busy root keeps the window open, with --force it goes', async (ws, forget) => {
  const home = makeHome(ws);
  assert.equal((await forget.run('mount', '--root', home, ws.path)).code, 0);
  const held = sh(`cd ${home}; sleep 20 >/dev/null 2>&1 & echo $!`, ws.path).trim();
  try {
    const busy = await forget.run('unmount', ws.path);
    assert.equal(busy.code, 125);
    assert.match(busy.stderr, /agent is in use/);
    sh(`echo still >${home}/log; grep still ${home}/log`, '/');
    assert.equal((await forget.run('unmount', '--force', ws.path)).code, 0);
    await gone(forget);
    assert.equal(readFileSync(join(home, 'log'), 'utf8'), 'old\n');
  } finally {
    process.kill(Number(held), 'SIGKILL');
  }
});

withMounts(
  'when its server is killed, or one of its mounts is taken away by hand, none stays',
  async (ws, forget) => {
    const home = makeHome(ws);
    assert.equal((await forget.run('mount', '--root', home, ws.path)).code, 0);
    sh(`echo caught >${home}/log`, '/');
    signalAll(servers(forget), 'SIGKILL');
    await gone(forget);
    assert.equal(readFileSync(join(home, 'log'), 'utf8'), 'old\n');

    assert.equal((await forget.run('mount', '--root', home, ws.path)).code, 0);
    sh(`echo caught >${home}/log; umount -l ${home}`, '/');
    await delay(100);
    await gone(forget);
    assert.equal(readFileSync(join(home, 'log'), 'utf8'), 'old\n');
  },
);
