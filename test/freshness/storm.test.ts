// More changes at once than anybody can follow: the mount goes on, and nothing stale is left.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { withWorkspace } from '../cases/window.ts';
import type { Workspace } from '../harness/forget.ts';
import { identityDifferences, parseSnapshot, snapshot, snapshotProgram } from '../harness/tree.ts';
import { asUser, environmentOf, readableFor } from '../harness/users.ts';
import { programFor, type Views, withViews } from './views.ts';

/** How long after the last change everything is to be as it is outside. */
const SETTLED = 200;
/** The disk of a busy machine takes minutes for 50,000 files; an idle one 10 s. */
const LONG = 300_000;

/** Runs a program outside to its end, as the workspace's user, without holding this process up. */
async function outside(workspace: Workspace, cwd: string, ...argv: string[]): Promise<void> {
  const [program, ...rest] = asUser(workspace.user, argv);
  const child = spawn(program!, rest, {
    cwd,
    env: environmentOf(workspace.user),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const errors: Buffer[] = [];
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk));
  const [code] = (await once(child, 'close')) as [number];
  assert.equal(code, 0, `${argv.join(' ')}: ${Buffer.concat(errors)}`);
}

/** How the inside view differs from the lower: in names, types, sizes, times, contents, inode numbers. */
async function staleness(workspace: Workspace, views: Views): Promise<string[]> {
  const program = readableFor(workspace.user, snapshotProgram);
  const inside = parseSnapshot(await views.inside.run('python3', program, '.'));
  return identityDifferences(snapshot(workspace.path), inside);
}

const FILES = 2000;

/** Two branches, `one` and `two`, in which each of the 2,000 files differs, is missing, or is something else. */
function makeRepository(workspace: Workspace): void {
  const script = `
mkdir repo && cd repo && git init -q -b one . && git config core.fsync none && python3 - <<'PYTHON'
import os
for i in range(${FILES}):
    os.makedirs(f"d{i // 40}/e", exist_ok=True)
    open(f"d{i // 40}/e/f{i}", "w").write(f"one {i}\\n" * (1 + i % 50))
PYTHON
git add -A && git commit -qm one && git checkout -qb two && python3 - <<'PYTHON'
import os
for i in range(${FILES}):
    path = f"d{i // 40}/e/f{i}"
    if i % 10 == 0: os.unlink(path)
    elif i % 10 == 1: os.unlink(path); os.symlink(f"two {i}", path)
    elif i % 10 == 2: os.unlink(path); os.mkdir(path); open(path + "/in", "w").write("two")
    else: open(path, "w").write(f"two {i}\\n" * (1 + (i + 7) % 50))
    if i % 10 == 3: open(path + ".more", "w").write("new in two")
PYTHON
git add -A && git commit -qm two && git checkout -q one && git repack -adq`;
  const [program, ...rest] = asUser(workspace.user, ['sh', '-ec', script]);
  execFileSync(program!, rest, { cwd: workspace.path, env: environmentOf(workspace.user) });
}

withWorkspace(
  'a git checkout of 2,000 files outside is seen inside as a whole 100 ms later',
  async (workspace) => {
    makeRepository(workspace);
    const repository = join(workspace.path, 'repo');
    await withViews(workspace, async (views) => {
      assert.deepEqual(await staleness(workspace, views), []);
      for (const branch of ['two', 'one']) {
        await outside(workspace, repository, 'git', 'checkout', '-q', branch);
        await delay(100);
        assert.deepEqual(await staleness(workspace, views), [], branch);
      }
      assert.equal(await views.inside.run('git', '-C', 'repo', 'status', '--porcelain'), '');
    });
  },
  { users: ['root'], shape: { empty: true } },
);

withWorkspace(
  'a storm of 50,000 files and a git checkout back and forth neither stalls the mount nor leaves anything stale',
  async (workspace) => {
    makeRepository(workspace);
    const repository = join(workspace.path, 'repo');
    mkdirSync(join(workspace.path, 'node_modules'));
    execFileSync('chown', ['-R', '--reference', workspace.path, workspace.path]);
    await withViews(
      workspace,
      async (views) => {
        const stop = join(workspace.top, 'stop');
        const before = views.status();
        await views.inside.start('python3', programFor(workspace, 'look.py'), stop);
        const install = outside(
          workspace,
          workspace.path,
          'python3',
          programFor(workspace, 'storm.py'),
          'node_modules',
          '50000',
        );
        let storming = true;
        const over = install.then(() => {
          storming = false;
        });
        for (let turn = 0; storming || turn < 4; turn++) {
          await outside(workspace, repository, 'git', 'checkout', '-q', turn % 2 ? 'one' : 'two');
        }
        await over;
        writeFileSync(stop, '');
        const took = JSON.parse(await views.inside.finish()) as Record<
          'operations' | 'median' | 'p99' | 'longest',
          number
        >;
        await delay(SETTLED);
        assert.deepEqual(await staleness(workspace, views), []);
        const after = views.status();
        console.log(took, `${after.notifications - before.notifications} notifications`);
        assert.ok(took.p99 < 50, `99 of 100 operations inside took at most ${took.p99} ms`);
        assert.ok(took.longest < 1000, `the longest operation inside took ${took.longest} ms`);
      },
      { timeout: LONG },
    );
  },
  { users: ['root'], shape: { empty: true }, timeout: LONG },
);

withWorkspace(
  'processes inside and outside that make, rename and remove the same names never wait for each other for good',
  async (workspace) => {
    for (const name of ['h0', 'h1']) {
      const [program, ...rest] = asUser(workspace.user, ['mkdir', join(workspace.path, name)]);
      execFileSync(program!, rest);
    }
    const hammer = programFor(workspace, 'hammer.py');
    await withViews(workspace, async (views) => {
      const stop = join(workspace.top, 'stop');
      for (const side of [views.inside, views.outside]) {
        for (const seed of ['1', '2', '3']) await side.start('python3', hammer, stop, seed);
      }
      await delay(8000);
      writeFileSync(stop, '');
      for (const side of [views.inside, views.outside]) {
        for (let i = 0; i < 3; i++) {
          const { done, wrong } = JSON.parse(await side.finish()) as { done: number; wrong: object };
          assert.deepEqual(wrong, {});
          console.log(`${done} operations ${side === views.inside ? 'inside' : 'outside'}`);
          assert.ok(done > 50, `${done} operations`);
        }
      }
      await delay(SETTLED);
      assert.deepEqual(await staleness(workspace, views), []);
    });
  },
  { shape: { empty: true } },
);
