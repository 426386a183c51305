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
import {
  allPids,
  describeProcess,
  endMarked,
  forgetMounts,
  markedProcesses,
  programOf,
  signalAll,
  stacksOf,
} from '../harness/watchdog.ts';

const writer = fileURLToPath(new URL('./writer.py', import.meta.url));
const seed = Number(process.env.FORGET_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

// src/born/leak.txt is an ordinary file until its rename (DESIGN 3, last words on held names).
const LEFT = /mem_|crossed|tmp-1|\.fuse_hidden|canary/;

/** A small generator, so that a printed seed brings a failure back. */
function randomFrom(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function lines(log: string): string[] {
  return existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1) : [];
}

/** What the writer's log promises of the unprotected part of the lower. */
function assertAcknowledged(workspace: Workspace, log: string): number {
  const promises = lines(log);
  const last = (word: string) =>
    Number(
      promises
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
  return promises.length;
}

/** The process to kill: forget's own, or the command's (python), or any of them. */
function victims(mark: string, which: 'forget' | 'command'): number[] {
  const isCommand = (pid: number) => programOf(pid).startsWith('python');
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
    const run = forgetExec(workspace, argv, {
      timeout: 30_000,
      started: (_pid, given) => {
        mark = given;
      },
    });
    const ended = run.catch(() => undefined);
    // From before the mount to well into the work: most of a start takes a tenth of a second.
    await delay(random() * 700);
    const pids = victims(mark, which);
    for (let i = 0; i < 500 && pids.length === 0; i++) {
      await delay(10);
      pids.push(...victims(mark, which));
    }
    const victim = pids[Math.floor(random() * pids.length)];
    if (victim === undefined) throw new Error(`nothing to kill: ${JSON.stringify(await ended)}`);
    const name = `${describeProcess(victim)} (${which})`;
    signalAll([victim], 'SIGKILL');
    const outcome = (patience: number) =>
      Promise.race([ended.then(() => 'ended'), delay(patience, 'still running')]);
    if ((await outcome(3000)) === 'still running' && which === 'forget') {
      // A helper process of forget's was hit: then the window either ended, or goes on as if nothing had happened.
      const before = lines(log).length;
      await delay(500);
      const state = lines(log).length > before ? '' : markedProcesses(mark).map(stacksOf).join('\n');
      assert.equal(state, '', `${name} was killed, and the window neither ended nor went on:\n${state}`);
      signalAll(victims(mark, which), 'SIGKILL');
    }
    const now = await outcome(10_000);
    const running = now === 'ended' ? '' : markedProcesses(mark).map(stacksOf).join('\n');
    assert.equal(now, 'ended', `${name} was killed, and 10 s later these run:\n${running}`);
    assert.deepEqual(await untilGone(mark), [], 'no process is left');
    const mounts = forgetMounts(allPids()).filter(
      (mount) => !before.has(mount.connection) && mount.mountpoint.startsWith(workspace.top),
    );
    assert.deepEqual(mounts, [], 'no mount is left');
    assert.deepEqual(protectedDifferences(workspace), [], 'the protected part of the lower is identical');
    const left = [...snapshot(workspace.path).keys()].filter((path) => LEFT.test(path));
    // A held file that its dead writer never renamed moves to the lower when the window closes in order (DESIGN 3);
    // when forget itself dies, nothing moves.
    assert.deepEqual(
      left.filter((path) => which === 'forget' || path !== '.mem_x9.tmp'),
      [],
      'no file is left',
    );
    return assertAcknowledged(workspace, log);
  } finally {
    await endMarked(mark);
    await disposeWorkspace(workspace);
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

// E8
for (const user of users) {
  test(`forget killed between an atomic write and its rename leaves no temporary file, as ${user}`, {
    timeout: 60_000,
  }, async () => {
    const workspace = makeWorkspace(user);
    let mark = '';
    try {
      const names = [
        '.mem_x9.tmp',
        'DELIVERABLES.md.4711.0b5f1c1e-6a54-4a0c-9d3c-0f2f4f6f8a10.tmp',
        '.DELIVERABLES.md.new_1700000000_x7k.tmp',
        'memory/old.md.tmp',
        'logs/a.jsonl.tmp-4711',
      ];
      const program = `
import os, sys, time
for name in sys.argv[1:]:
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, b"secret")
    os.fsync(fd)
os.fsync(os.open(".", os.O_RDONLY))
open("../ready", "w").close()
time.sleep(60)`;
      const ended = forgetExec(workspace, ['python3', '-c', program, ...names], {
        timeout: 30_000,
        started: (_pid, given) => {
          mark = given;
        },
      });
      for (let i = 0; i < 500 && !existsSync(join(workspace.top, 'ready')); i++) await delay(10);
      if (!existsSync(join(workspace.top, 'ready')))
        assert.fail(`it does not start: ${JSON.stringify(await ended)}`);
      signalAll(victims(mark, 'forget'), 'SIGKILL');
      await ended;
      assert.deepEqual(await untilGone(mark), []);
      assert.deepEqual([...snapshot(workspace.path).keys()], [...workspace.before.keys()]);
      assert.deepEqual(protectedDifferences(workspace), []);
    } finally {
      await disposeWorkspace(workspace);
    }
  });
}

for (const user of users) {
  test(`a process that left the command's session ends with forget, and never meets the bare workspace, as ${user}`, {
    timeout: 60_000,
  }, async () => {
    const workspace = makeWorkspace(user);
    let mark = '';
    try {
      // A file for each write: whichever one got through would show.
      const on =
        'i=0; while :; do i=$((i + 1)); echo secret > "memory/on-$i.md"; : > ../ready; sleep 0.01; done';
      const ended = forgetExec(workspace, ['sh', '-c', `setsid sh -c '${on}' & sleep 60`], {
        timeout: 30_000,
        started: (_pid, given) => {
          mark = given;
        },
      });
      for (let i = 0; i < 500 && !existsSync(join(workspace.top, 'ready')); i++) await delay(10);
      if (!existsSync(join(workspace.top, 'ready')))
        assert.fail(`it does not start: ${JSON.stringify(await ended)}`);
      // The guardian stands ready a moment later (exec.ts).
      await delay(500);
      const forget = markedProcesses(mark).filter((pid) => /^(node|MainThread)$/.test(programOf(pid)));
      assert.equal(forget.length, 1);
      process.kill(forget[0]!, 'SIGKILL');
      await ended;
      assert.deepEqual(await untilGone(mark), []);
      assert.deepEqual(protectedDifferences(workspace), []);
    } finally {
      await disposeWorkspace(workspace);
    }
  });
}
