import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Leftover } from '../../src/window/leftovers.ts';
import { installDriver } from './install-driver.ts';

describe('what a command leaves behind', () => {
  let driver: Awaited<ReturnType<typeof installDriver>>;
  let directory: string;
  before(async () => {
    driver = await installDriver();
    directory = mkdtempSync(`${tmpdir()}/forget-left-`);
  });
  after(() => {
    driver.remove();
    rmSync(directory, { recursive: true });
  });

  /** A command that leaves something behind, and what forget said of it. `$D` is a scratch directory. */
  const run = (
    script: string,
    options: string[] = [],
  ): { left: Leftover[]; ms: number; code: number | null } => {
    const file = `${directory}/left.json`;
    const begun = performance.now();
    const { status, stderr } = spawnSync(
      driver.forget,
      ['exec', `--leftovers=${file}`, ...options, '--', 'bash', '-c', script],
      { timeout: 30_000, encoding: 'utf8', env: { ...process.env, D: directory } },
    );
    assert.ok(existsSync(file), stderr);
    return { left: JSON.parse(readFileSync(file, 'utf8')), ms: performance.now() - begun, code: status };
  };
  const gone = (one: Leftover): void =>
    assert.ok(!existsSync(`/proc/${one.pid}`), `${one.command} still runs`);

  test('nothing left: nothing is waited for', { timeout: 30_000 }, () => {
    const { left, ms } = run('exit 4');
    assert.deepEqual(left, []);
    assert.ok(ms < 2000, `${ms} ms`);
  });

  test('a background sleep is terminated after the grace, and named; the code stays', {
    timeout: 30_000,
  }, () => {
    const { left, ms, code } = run('sleep 1000 & exit 4', ['--grace=300']);
    assert.deepEqual(
      left.map(({ command, how }) => ({ command, how })),
      [{ command: 'sleep 1000', how: 'terminated' }],
    );
    assert.equal(code, 4);
    assert.ok(ms >= 300 && ms < 3000, `${ms} ms`);
    gone(left[0]!);
  });

  test('what ends within the grace is left to it', { timeout: 30_000 }, () => {
    const { left } = run('(sleep 0.4; echo written > $D/late) & exit 0');
    assert.ok(left.length > 0 && left.every(({ how }) => how === 'ended'), JSON.stringify(left));
    assert.equal(readFileSync(`${directory}/late`, 'utf8'), 'written\n');
  });

  test('a daemon that forked twice into its own session is found', { timeout: 30_000 }, () => {
    // A fork on its way out may be seen, too.
    const left = run('setsid -f setsid -f sleep 1001', ['--grace=300']).left.filter(
      ({ how }) => how !== 'ended',
    );
    assert.deepEqual(
      left.map(({ command, how }) => ({ command, how })),
      [{ command: 'sleep 1001', how: 'terminated' }],
    );
    gone(left[0]!);
  });

  test('a process that ignores SIGTERM is killed', { timeout: 30_000 }, () => {
    const { left } = run('(trap "" TERM; exec sleep 1002) & sleep 0.2', ['--grace=300']);
    assert.deepEqual(
      left.map(({ command, how }) => ({ command, how })),
      [{ command: 'sleep 1002', how: 'killed' }],
    );
    gone(left[0]!);
  });

  test('a stopped process is ended', { timeout: 30_000 }, () => {
    const { left } = run('sleep 1003 & sleep 0.2; kill -STOP $!', ['--grace=300']);
    assert.deepEqual(
      left.map(({ command, how }) => ({ command, how })),
      [{ command: 'sleep 1003', how: 'terminated' }],
    );
    gone(left[0]!);
  });

  test('what the calling shell had started before it became forget is left alone', {
    timeout: 30_000,
  }, () => {
    const file = `${directory}/before.json`;
    const begun = performance.now();
    const { stdout } = spawnSync(
      'bash',
      [
        '-c',
        `"$0" exec --grace=5000 --leftovers=${file} -- sh -c 'echo out; echo err >&2' 2> >(sleep 0.5; sed s/^/the-/) | cat`,
        driver.forget,
      ],
      { timeout: 20_000, encoding: 'utf8' },
    );
    assert.equal(stdout, 'out\nthe-err\n');
    assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), []);
    assert.ok(performance.now() - begun < 4000);
  });

  test('a process that forks on and on is ended', { timeout: 30_000 }, () => {
    writeFileSync(`${directory}/chain`, 'sleep 0.03; exec setsid -f bash "$0"\n');
    const { left } = run('setsid -f bash $D/chain', ['--grace=200']);
    assert.ok(left.length > 0);
    for (const one of left) gone(one);
    const running = spawnSync('pgrep', ['-f', `bash ${directory}/chain`], { encoding: 'utf8' });
    assert.equal(running.stdout, '');
  });

  test('a process that came into the window from outside is found by its namespace', {
    timeout: 30_000,
  }, async (t) => {
    if (process.geteuid!() !== 0) return t.skip('entering a namespace needs root');
    const file = `${directory}/entered.json`;
    const pidFile = `${directory}/pid`;
    const forget = spawn(
      driver.forget,
      [
        'exec',
        '--private',
        '--grace=300',
        `--leftovers=${file}`,
        '--',
        'sh',
        '-c',
        `echo $$ > ${pidFile}; sleep 1.5`,
      ],
      { timeout: 20_000 },
    );
    const ended = new Promise((resolve) => forget.once('exit', resolve));
    while (!existsSync(pidFile) || readFileSync(pidFile, 'utf8') === '') await sleep(20);
    const visitor = spawn('nsenter', ['-t', readFileSync(pidFile, 'utf8').trim(), '-m', 'sleep', '1004']);
    await ended;
    assert.deepEqual(
      (JSON.parse(readFileSync(file, 'utf8')) as Leftover[]).map(({ pid, how }) => ({ pid, how })),
      [{ pid: visitor.pid, how: 'terminated' }],
    );
  });

  test('an impatient SIGTERM to forget ends the grace', { timeout: 30_000 }, async () => {
    const file = `${directory}/impatient.json`;
    const begun = performance.now();
    const forget = spawn(
      driver.forget,
      ['exec', '--grace=20000', `--leftovers=${file}`, '--', 'sh', '-c', 'sleep 1005 & echo left'],
      { timeout: 25_000, stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const ended = new Promise((resolve) => forget.once('exit', resolve));
    await new Promise((resolve) => forget.stdout.once('data', resolve));
    await sleep(500);
    forget.kill('SIGTERM');
    await ended;
    assert.ok(performance.now() - begun < 10_000);
    assert.equal((JSON.parse(readFileSync(file, 'utf8')) as Leftover[])[0]?.how, 'terminated');
  });
});
