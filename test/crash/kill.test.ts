// kill -9 of forget or of its command at random moments: promises 4 and 6.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  disposeWorkspace,
  forgetExec,
  makeWorkspace,
  protectedDifferences,
  type Workspace,
} from '../harness/forget.ts';
import { snapshot } from '../harness/tree.ts';
import { readableFor, type User, users } from '../harness/users.ts';
import { allPids, describeProcess, endMarked, forgetMounts, markedProcesses } from '../harness/watchdog.ts';

const writer = fileURLToPath(new URL('./writer.py', import.meta.url));
const seed = Number(process.env.FORGET_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

/** A small generator, so that a printed seed brings a failure back. */
function randomFrom(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** What the writer's log promises of the unprotected part of the lower. */
function assertAcknowledged(workspace: Workspace, log: string): number {
  const lines = existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1) : [];
  const last = (word: string) =>
    Number(
      lines
        .filter((line) => line.startsWith(`${word} `))
        .at(-1)
        ?.split(' ')[1] ?? -1,
    );
  const text = (path: string) => readFileSync(join(workspace.path, path), 'utf8');
  const appended = last('append');
  if (appended >= 0) {
    const expected = Array.from({ length: appended + 1 }, (_, n) => `line ${n}\n`).join('');
    assert.ok(
      text('src/log.txt').startsWith(expected),
      `appends up to ${appended} returned: ${text('src/log.txt').slice(-200)}`,
    );
  }
  const removed = last('remove');
  for (let n = 0; n <= removed; n++) {
    assert.ok(!existsSync(join(workspace.path, `src/born/${n}`)), `src/born/${n} was removed, and is back`);
  }
  // The removal that follows the last promise may have happened without its line.
  for (let n = removed + 2; n <= last('create'); n++) assert.equal(text(`src/born/${n}`), `born ${n}\n`);
  const replaced = last('replace');
  if (replaced >= 0)
    assert.ok(JSON.parse(text('src/state.json')).n >= replaced, `replace ${replaced} returned`);
  return lines.length;
}

/** The process to kill: forget's own, or the command's (python), or any of them. */
function victims(mark: string, which: 'forget' | 'command'): number[] {
  const isCommand = (pid: number) => /python/.test(describeProcess(pid));
  return markedProcesses(mark).filter((pid) => isCommand(pid) === (which === 'command'));
}

async function untilGone(mark: string): Promise<string[]> {
  for (let i = 0; i < 100 && markedProcesses(mark).length > 0; i++) await delay(50);
  return markedProcesses(mark).map(describeProcess);
}

async function killOnce(user: User, which: 'forget' | 'command', random: () => number): Promise<number> {
  const workspace = makeWorkspace(user);
  const log = join(workspace.top, 'log');
  let mark = '';
  try {
    const before = new Set(forgetMounts(allPids()).map((mount) => mount.connection));
    const argv = ['python3', readableFor(user, writer), log, String(Math.floor(random() * 1e9))];
    const running = forgetExec(workspace, argv, {
      timeout: 30_000,
      started: (_pid, given) => {
        mark = given;
      },
    });
    const ended = running.catch(() => undefined);
    // From before the mount to well into the work: most of a start takes a tenth of a second.
    await delay(random() * 700);
    const pids = victims(mark, which);
    const pid = pids[Math.floor(random() * pids.length)];
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
    else for (let i = 0; i < 100 && victims(mark, which).length === 0; i++) await delay(10);
    if (pid === undefined) for (const one of victims(mark, which)) process.kill(one, 'SIGKILL');
    const outcome = await Promise.race([ended.then(() => 'ended'), delay(10_000, 'still running')]);
    assert.equal(outcome, 'ended', 'forget and its command end when one of them is killed');
    assert.deepEqual(await untilGone(mark), [], 'no process is left');
    const mounts = forgetMounts(allPids()).filter(
      (mount) => !before.has(mount.connection) && mount.mountpoint.startsWith(workspace.top),
    );
    assert.deepEqual(mounts, [], 'no mount is left');
    assert.deepEqual(protectedDifferences(workspace), [], 'the protected part of the lower is identical');
    const leaks = [...snapshot(workspace.path)].filter(([path]) =>
      /mem_|leak|crossed|tmp-1|\.fuse_hidden|canary/.test(path),
    );
    assert.deepEqual(
      leaks.map(([path]) => path).filter((path) => path !== 'src/born/leak.txt'),
      [],
      'no file is left',
    );
    return assertAcknowledged(workspace, log);
  } finally {
    await endMarked(mark);
    disposeWorkspace(workspace);
  }
}

for (const user of users) {
  for (const which of ['forget', 'command'] as const) {
    test(`kill -9 of ${which === 'forget' ? 'forget' : 'the command'} at 25 random moments keeps every promise, as ${user}`, {
      timeout: 300_000,
    }, async (t) => {
      t.diagnostic(`FORGET_TEST_SEED=${seed}`);
      const random = randomFrom(seed + which.length);
      let acknowledged = 0;
      for (let round = 0; round < 25; round++) {
        acknowledged += await killOnce(user, which, random).catch((error: Error) => {
          error.message = `round ${round}, FORGET_TEST_SEED=${seed}: ${error.message}`;
          throw error;
        });
      }
      assert.ok(acknowledged > 50, `the writer got somewhere: ${acknowledged} writes in 25 rounds`);
    });
  }
}
