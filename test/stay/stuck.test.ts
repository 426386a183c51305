// Servers that are stopped, hang, or are dead: doctor finds and clears them, and never waits for them itself.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Examination } from '../../src/window/doctor.ts';
import { gone, servers, withMounts } from '../cases/mounts.ts';
import { withWorkspace } from '../cases/window.ts';
import { forgetExec, protectedDifferences, type Workspace } from '../harness/forget.ts';
import { until } from '../harness/until.ts';
import { forgetFor, users } from '../harness/users.ts';
import {
  describeProcess,
  endMarked,
  markedProcesses,
  processesWith,
  programOf,
  type RunResult,
  runWatched,
  signalAll,
} from '../harness/watchdog.ts';

/** Longer than doctor may take, whatever hangs. */
const PROMPT = 25_000;

interface Doctor {
  found(name: string): string;
  advice(name: string): string | undefined;
  milliseconds: number;
}

async function doctor(...args: string[]): Promise<Doctor> {
  const argv = [forgetFor('root'), 'doctor', '--json', ...args];
  const result = await runWatched(argv, { user: 'root', cwd: '/', timeout: PROMPT });
  const { checks } = JSON.parse(result.stdout) as Examination;
  const check = (name: string) => checks.find((one) => one.name === name)!;
  return {
    found: (name) => check(name).found,
    advice: (name) => check(name).advice,
    milliseconds: result.milliseconds,
  };
}

/** Somebody who asks the mount for what only its server knows. */
function asker(directory: string): Promise<RunResult> {
  return runWatched(['sh', '-c', 'cat "$1/nothing" 2>&1; echo told', 'sh', directory], {
    user: 'root',
    cwd: '/',
    timeout: PROMPT,
  });
}

const stateOf = (pid: number) => /^State:\s*(\S)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];

withMounts(
  'a stopped server is named, and continued by doctor --fix: those who wait get their answers',
  async (workspace, forget) => {
    assert.equal((await forget.run('mount', workspace.path)).code, 0);
    execFileSync('sh', ['-c', 'echo caught >memory/old.md'], { cwd: workspace.path });
    const [server] = servers(forget);
    process.kill(server!, 'SIGSTOP');
    const waiting = asker(workspace.path);
    const seen = await doctor();
    assert.ok(
      seen.found('windows').includes(`at ${workspace.path} (pid ${server}) is stopped`),
      seen.found('windows'),
    );
    assert.match(seen.advice('windows')!, /doctor --fix/);
    assert.ok(seen.found('mounts').includes(`no answer from ${workspace.path}`), seen.found('mounts'));
    const fixed = await doctor('--fix');
    assert.ok(fixed.found('windows').includes(`(pid ${server}) was continued`), fixed.found('windows'));
    assert.match((await waiting).stdout, /No such file[\s\S]*told/);
    assert.equal(readFileSync(join(workspace.path, 'memory/old.md'), 'utf8'), 'caught\n');
    assert.equal((await forget.run('unmount', workspace.path)).code, 0);
    await gone(forget);
    assert.deepEqual(protectedDifferences(workspace), []);
  },
);

withMounts('a stopped server is unmounted by --force, and not without', async (workspace, forget) => {
  assert.equal((await forget.run('mount', workspace.path)).code, 0);
  process.kill(servers(forget)[0]!, 'SIGSTOP');
  const refused = await forget.run('unmount', workspace.path);
  assert.equal(refused.code, 125);
  assert.match(refused.stderr, /is stopped.*--force/);
  const forced = await forget.run('unmount', '--force', workspace.path);
  assert.equal(forced.code, 0, forced.stderr);
  await gone(forget);
  assert.deepEqual(protectedDifferences(workspace), []);
});

withMounts(
  'a dead mount that no guardian took away is cleared by doctor --fix',
  async (workspace, forget) => {
    assert.equal((await forget.run('mount', workspace.path)).code, 0);
    signalAll(
      forget.processes().filter((one) => programOf(one) !== 'node'),
      'SIGKILL',
    );
    signalAll(servers(forget), 'SIGKILL');
    await until('the end of the server', () => forget.processes().length === 0);
    assert.deepEqual(forget.mounted(), [workspace.path]);
    assert.ok((await doctor()).found('mounts').includes(workspace.path));
    const fixed = await doctor('--fix');
    assert.ok(fixed.found('mounts').includes(`cleared ${workspace.path}`), fixed.found('mounts'));
    await gone(forget);
  },
);

/** The workspace seen through a FUSE filesystem that can be stopped, as a network filesystem whose server is gone. */
async function withHangingLower(
  workspace: Workspace,
  body: (path: string, hang: () => void, recover: () => void) => Promise<void>,
): Promise<void> {
  const real = join(workspace.top, 'real');
  const view = join(workspace.top, 'view');
  mkdirSync(real);
  mkdirSync(view);
  renameSync(workspace.path, join(real, 'ws'));
  const bindfs = spawn('bindfs', ['-f', real, view], { stdio: 'ignore' });
  try {
    await until('the mount of bindfs', () => existsSync(join(view, 'ws')));
    await body(
      join(view, 'ws'),
      () => bindfs.kill('SIGSTOP'),
      () => bindfs.kill('SIGCONT'),
    );
  } finally {
    bindfs.kill('SIGKILL');
    await delay(200);
    // With a mount of ours on it, perhaps, that nobody could reach.
    execFileSync('umount', ['-l', view]);
    renameSync(join(real, 'ws'), workspace.path);
  }
}

async function untilHung(server: number): Promise<void> {
  const waits = () => readFileSync(`/proc/${server}/wchan`, 'latin1').startsWith('request_wait_answer');
  await until('the hang of the server', waits);
}

withMounts(
  'when the lower hangs, doctor names the mount, and --fix gives those who wait an error',
  async (workspace, forget) => {
    await withHangingLower(workspace, async (path, hang, recover) => {
      assert.equal((await forget.run('mount', path)).code, 0);
      const [server] = servers(forget);
      hang();
      const waiting = asker(path);
      await untilHung(server!);
      const seen = await doctor();
      assert.ok(seen.found('windows').includes(`(pid ${server}) does not answer`), seen.found('windows'));
      assert.ok(seen.milliseconds < 10_000, `${seen.milliseconds} ms`);
      const refused = await forget.run('unmount', path);
      assert.match(refused.stderr, /does not answer.*--force/);
      const fixed = await doctor('--fix');
      assert.match(fixed.found('windows'), new RegExp(`\\(pid ${server}\\) was killed`));
      assert.match((await waiting).stdout, /(abort|not connected|Input\/output)[\s\S]*told/);
      recover();
      await gone(forget);
    });
    assert.deepEqual(protectedDifferences(workspace), []);
  },
);

withWorkspace(
  'when the lower hangs under forget exec, doctor --fix ends the window and its command',
  async (workspace) => {
    await withHangingLower(workspace, async (path, hang, recover) => {
      let mark = '';
      const script =
        'touch "$1"; while :; do cat nothing 2>/dev/null; sleep 0.05; [ -e memory ] || exit 9; done';
      const window = forgetExec(workspace, ['sh', '-c', script, 'sh', join(workspace.top, 'ready')], {
        cwd: path,
        timeout: 50_000,
        started: (_pid, given) => {
          mark = given;
        },
      });
      await until('the command', () => existsSync(join(workspace.top, 'ready')));
      const server = markedProcesses(mark).find((pid) => programOf(pid) === 'node')!;
      await delay(200);
      hang();
      await untilHung(server);
      const fixed = await doctor('--fix');
      assert.match(fixed.found('windows'), new RegExp(`\\(pid ${server}\\) was killed`));
      assert.deepEqual(
        markedProcesses(mark)
          .map(describeProcess)
          .filter((one) => one.includes('cat nothing') && !one.includes('forget.cjs')),
        [],
        'the command has ended; the guardian waits for the lower as well',
      );
      recover();
      await window;
      await endMarked(mark);
    });
    assert.deepEqual(protectedDifferences(workspace), []);
  },
  { users: ['root'] },
);

withWorkspace(
  'a window that is suspended with its command is left alone by doctor --fix',
  async (workspace) => {
    let mark = '';
    const ready = join(workspace.top, 'ready');
    const window = forgetExec(workspace, ['sh', '-c', 'touch "$1"; sleep 1; exit 3', 'sh', ready], {
      started: (_pid, given) => {
        mark = given;
      },
    });
    await until('the command', () => existsSync(ready));
    await delay(100);
    const pids = processesWith('FORGET_TEST_MARK', mark);
    signalAll(pids, 'SIGSTOP');
    const server = pids.find((pid) => programOf(pid) === 'node')!;
    const fixed = await doctor('--fix');
    assert.ok(
      fixed.found('windows').includes(`(pid ${server}) is suspended with its command`),
      fixed.found('windows'),
    );
    assert.equal(stateOf(server), 'T');
    signalAll(pids, 'SIGCONT');
    assert.equal((await window).code, 3);
  },
  { users: users.filter((user) => user === 'root') },
);
