// 200 mounts in one process, and 200 windows one after the other: nothing of them is left.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import {
  disposeWorkspace,
  forgetExec,
  makeWorkspace,
  protectedDifferences,
  type Workspace,
} from '../harness/forget.ts';
import { Machine } from '../harness/machine.ts';
import {
  checkout,
  environmentOf,
  ORDINARY_ID,
  temporaryDirectory,
  type User,
  users,
} from '../harness/users.ts';
import {
  allPids,
  forgetMounts,
  markedProcesses,
  orphanedConnections,
  runWatched,
} from '../harness/watchdog.ts';
import { bundle } from '../window/install-driver.ts';
import type { Trace } from './mounts.ts';

/** What one round costs for good would be 180 times that between the two: 22 KB a round pass. */
const MOST_GROWTH = 4 << 20;
/** As in mounts.ts, which is a program and cannot be imported. */
const WARM_UP = 20;

describe('mounts in one process', () => {
  let driver = '';
  before(async () => {
    const directory = temporaryDirectory('mounts', 'ordinary');
    const entries = { mounts: 'test/stay/mounts.ts', 'make-upper': 'src/window/make-upper.ts' };
    await bundle(join(directory, 'dist'), entries);
    symlinkSync(join(checkout, 'node_modules'), join(directory, 'node_modules'));
    driver = join(directory, 'dist/mounts.cjs');
  });
  const machine = new Machine('');
  after(() => machine.end());

  const rounds: Record<User, number> = { root: 200, ordinary: 20 };
  for (const user of users) {
    const count = rounds[user];
    test(`${count} mounts, each unmounted in another way, leave the process as it was, as ${user}`, {
      timeout: 180_000,
    }, async () => {
      const workspace = makeWorkspace(user);
      try {
        const argv = [process.execPath, '--expose-gc', driver, workspace.path, workspace.path, `${count}`];
        const line = await machine.line(user === 'root' ? 0 : ORDINARY_ID, argv);
        const result = await runWatched(line, {
          user: users.includes('root') ? 'root' : 'ordinary',
          cwd: '/',
          timeout: 170_000,
          env: environmentOf(user),
          started: (_pid, mark) => workspace.marks.push(mark),
        });
        assert.equal(result.code, 0, result.stderr);
        assert.equal(result.stderr, '');
        const traces = JSON.parse(result.stdout) as Trace[];
        assert.equal(traces.length, count);
        const { rss: atFirst, ...first } = traces[Math.min(WARM_UP, count) - 1]!;
        const { rss: atLast, ...last } = traces.at(-1)!;
        assert.deepEqual(last, first);
        assert.deepEqual([first.mounts, first.sockets, first.children, first.listeners], [[], [], [], 0]);
        const settled = Math.min(...traces.slice(-10).map(({ rss }) => rss)) - atFirst;
        if (count > WARM_UP) {
          assert.ok(settled < MOST_GROWTH * 4, `${settled} bytes more from ${atFirst} to ${atLast}`);
          // What leaks goes on leaking: the second half grows no more than a little.
          const middle = Math.max(...traces.slice(count / 2 - 5, count / 2 + 5).map(({ rss }) => rss));
          const end = Math.min(...traces.slice(-10).map(({ rss }) => rss));
          assert.ok(end - middle < MOST_GROWTH, `${end - middle} bytes more in the second half`);
        }
        assert.deepEqual(protectedDifferences(workspace), []);
        assert.deepEqual(markedProcesses(result.mark), []);
      } finally {
        await disposeWorkspace(workspace);
      }
    });
  }
});

/** Control sockets whose window has ended. */
function deadSockets(): string[] {
  return [...readFileSync('/proc/net/unix', 'latin1').matchAll(/@forget\/\d+\/(\d+)-\S+/g)]
    .filter(([, pid]) => !allPids().includes(Number(pid)))
    .map(([name]) => name);
}

async function execs(workspace: Workspace, count: number): Promise<string[]> {
  const marks: string[] = [];
  for (let i = 0; i < count; i++) {
    const script =
      'echo leak >>memory/old.md; ls -R >/dev/null; exec 3<README.md; (cd src; sleep 0.01) & wait; exit 7';
    const result = await forgetExec(workspace, ['sh', '-c', script], {
      started: (_pid, mark) => marks.push(mark),
    });
    assert.equal(result.code, 7, result.stderr);
    assert.equal(result.stderr, '');
  }
  return marks;
}

for (const user of users) {
  test(`100 windows, four at a time, leave no mount, connection, socket, process or file, as ${user}`, {
    timeout: 180_000,
  }, async () => {
    const workspaces = [makeWorkspace(user), makeWorkspace(user)];
    const temporary = environmentOf(user).TMPDIR!;
    const orphans = new Set(orphanedConnections());
    const files = readdirSync(temporary);
    try {
      // Two at a time on the same workspace.
      const marks = (await Promise.all([0, 1, 0, 1].map((i) => execs(workspaces[i]!, 25)))).flat();
      const left = () => ({
        mounts: forgetMounts(allPids()).filter(({ mountpoint }) =>
          workspaces.some(({ top }) => mountpoint.startsWith(top)),
        ),
        sockets: deadSockets(),
        processes: marks.flatMap(markedProcesses),
        files: readdirSync(temporary).filter((name) => !files.includes(name)),
      });
      assert.equal(marks.length, 100);
      assert.deepEqual(left(), { mounts: [], sockets: [], processes: [], files: [] });
      // Other windows of this machine may be opening or closing at this moment.
      let connections: number[] = [];
      for (let i = 0; i < 20; i++) {
        connections = orphanedConnections().filter((one) => !orphans.has(one));
        if (connections.length === 0) break;
        await delay(100);
      }
      assert.deepEqual(connections, []);
      for (const workspace of workspaces) assert.deepEqual(protectedDifferences(workspace), []);
    } finally {
      for (const workspace of workspaces) await disposeWorkspace(workspace);
    }
  });
}
