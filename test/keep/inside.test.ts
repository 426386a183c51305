/** Who is inside a window may look, and does not hold the pen. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { withMounts } from '../cases/mounts.ts';
import { forgetFor } from '../harness/users.ts';
import { type OpenWindow, withOpenWindow } from './windows.ts';

const forgetIn = (window: OpenWindow) => forgetFor(window.workspace.user);
const kept = (window: OpenWindow) => existsSync(join(window.workspace.path, 'memory/new.md'));

withOpenWindow('a process inside may list, diff and read the log, and keeps nothing', async (window) => {
  const forget = forgetIn(window);
  await window.inside('echo new > memory/new.md');
  assert.match(await window.inside(`${forget} list`), /^memory\/new\.md {2}created, 4 bytes {2}\(sh \d+\)$/m);
  assert.match(await window.inside(`cd memory; ${forget} diff new.md`), /^\+new$/m);
  assert.match(await window.inside(`${forget} log`), / create {2}memory\/new\.md /);
  assert.match(await window.inside(`${forget} status`), new RegExp(`^${window.id} `, 'm'));
  const refusal = /a process inside the window may not keep anything of it/;
  assert.match(await window.inside(`${forget} keep '*' || [ $? = 125 ]`), refusal);
  assert.match(await window.inside(`${forget} keep --dry-run '*' || [ $? = 125 ]`), refusal);
  // One that is nobody's child any more is forget's.
  await window.inside(
    `(setsid sh -c 'sleep 0.2; exec ${forget} keep "*" > memory/said 2>&1' &) ; for i in $(seq 100); do grep -q . memory/said 2>/dev/null && break; sleep 0.1; done`,
  );
  assert.match(await window.inside('cat memory/said'), refusal);
  assert.match(
    await window.inside(`${forget} unmount ${window.id} || [ $? = 125 ]`),
    /may not close it|closes when its command ends/,
  );
  assert.equal(kept(window), false);
  assert.equal((await window.forget('keep', 'new.md')).code, 0);
  assert.equal(kept(window), true);
});

withOpenWindow(
  'what was allowed at the start may keep from inside',
  async (window) => {
    await window.inside(`echo new > memory/new.md; ${forgetIn(window)} keep new.md`);
    assert.equal(kept(window), true);
  },
  { options: ['--allow-control'] },
);

withOpenWindow(
  'a window that hides what the workspace has does not show it to those inside',
  async (window) => {
    await window.inside('mkdir -p memory; echo new > memory/old.md');
    const told = await window.inside(`${forgetIn(window)} diff || [ $? = 125 ]`);
    assert.match(told, /hides what the workspace has/);
    assert.doesNotMatch(told, /prefers tabs/);
    assert.match((await window.forget('diff')).stdout, /^-Ada prefers tabs\.$/m);
  },
  { options: ['--hide'], users: ['root'] },
);

withMounts(
  'on a mount the window is found by the directory, and everybody may keep',
  async (workspace, forget) => {
    assert.equal((await forget.run('mount', workspace.path)).code, 0);
    const sh = (script: string) =>
      execFileSync('sh', ['-c', script], {
        cwd: join(workspace.path, 'memory'),
        encoding: 'utf8',
        timeout: 20_000,
      });
    sh('echo new > new.md');
    assert.match(sh(`${forgetFor('root')} list new.md`), /^memory\/new\.md {2}created/);
    assert.match(sh(`${forgetFor('root')} keep /memory/new.md`), /^kept memory\/new\.md {2}4 bytes$/m);
    sh('echo more >> new.md');
    assert.match(sh(`${forgetFor('root')} diff`), /^ new\n\+more$/m);
    const closed = await forget.run('unmount', workspace.path);
    assert.match(closed.stdout + closed.stderr, /kept 1 path, which stay/);
    assert.equal(execFileSync('cat', [join(workspace.path, 'memory/new.md')], { encoding: 'utf8' }), 'new\n');
  },
);
