/**
 * `npm test [-- part-of-a-path ...]`: all tests with node's own runner, one file at a time, in a temporary directory of
 * their own, ending with a look at what was left behind. A skipped test is a failure where CI=true.
 */
import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDevFuse } from './harness/dev-fuse.ts';
import { machineLeftovers } from './harness/leftovers.ts';
import { checkout } from './harness/users.ts';

/** One file's time limit is that of its slowest test; the harness's own watchdogs speak up well before. */
const TEST_TIMEOUT = 600_000;
/** Node sorts the files by their paths, whatever the order they are given in. */
const LAST = 'test/zz-leftovers.test.ts';

function filesBelow(directory: string, ending: RegExp): string[] {
  return readdirSync(join(checkout, directory), { recursive: true, encoding: 'utf8' })
    .filter((name) => ending.test(name))
    .map((name) => `${directory}/${name}`)
    .sort();
}

function newest(paths: readonly string[]): number {
  return Math.max(0, ...paths.map((path) => statSync(join(checkout, path)).mtimeMs));
}

function buildIfStale(): void {
  const built = existsSync(join(checkout, 'dist')) ? newest(filesBelow('dist', /\.[cm]js$/)) : 0;
  if (built > newest([...filesBelow('src', /\.ts$/), 'scripts/build.mjs', 'package.json'])) return;
  const { status } = spawnSync('npm', ['run', '--silent', 'build'], { cwd: checkout, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

function skippedTests(tap: string): string[] {
  return tap.split('\n').filter((line) => /^\s*(not )?ok \d+ .*# (SKIP|TODO)/.test(line));
}

async function main(wanted: readonly string[]): Promise<number> {
  const all = filesBelow('test', /\.test\.ts$/).filter((path) => path !== LAST);
  const files = all.filter((path) => wanted.length === 0 || wanted.some((text) => path.includes(text)));
  if (files.length === 0) throw new Error(`no test file has any of these in its path: ${wanted.join(', ')}`);
  buildIfStale();
  await openDevFuse();

  const aside = mkdtempSync(join(tmpdir(), 'forget-run-'));
  const temporary = mkdtempSync(join(tmpdir(), 'fgt-'));
  chmodSync(temporary, 0o1777);
  const before = join(aside, 'before.json');
  const tap = join(aside, 'tap');
  writeFileSync(before, JSON.stringify(machineLeftovers()));
  const flags = ['--import', 'tsx', '--test', '--test-concurrency=1', `--test-timeout=${TEST_TIMEOUT}`];
  const reporters = ['spec', 'stdout', 'tap', tap].map(
    (value, at) => `--test-reporter${at % 2 === 1 ? '-destination' : ''}=${value}`,
  );
  const child = spawn(process.execPath, [...flags, ...reporters, ...files, LAST], {
    cwd: checkout,
    env: {
      ...process.env,
      TMPDIR: temporary,
      FORGET_TEST_TEMPORARY: temporary,
      FORGET_TEST_BEFORE: before,
    },
    stdio: 'inherit',
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal));
  const code = await new Promise<number>((resolve) => {
    child.once('close', (status, signal) => resolve(signal === null ? (status ?? 1) : 1));
  });
  const skipped = skippedTests(readFileSync(tap, 'utf8'));
  rmSync(aside, { recursive: true, force: true });
  if (code === 0) rmSync(temporary, { recursive: true, force: true });
  if (process.env.CI === 'true' && skipped.length > 0) {
    process.stderr.write(`skipped, which is a failure where CI=true:\n${skipped.join('\n')}\n`);
    return 1;
  }
  return code;
}

process.exitCode = await main(process.argv.slice(2));
