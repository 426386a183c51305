// fio writes blocks with checksums by each way into a file, several jobs at once, and reads them back: new files and
// files that the lower had, whose copy-up then falls into the middle of it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { disposeWorkspace } from '../harness/forget.ts';
import { asUser, environmentOf, readableFor, type User, users } from '../harness/users.ts';
import type { RunResult } from '../harness/watchdog.ts';
import { makePlace, parts, runInside, runPlain, told } from './suite.ts';

const jobs = fileURLToPath(new URL('./programs/verify.fio', import.meta.url));
const IO_URING = '/proc/sys/kernel/io_uring_disabled';

/** The sections of the job file that this kernel lets anybody run: some are set to refuse io_uring. */
const sections = [...readFileSync(jobs, 'utf8').matchAll(/^\[(\w+)\]/gm)]
  .map((match) => match[1]!)
  .filter((name) => name !== 'global')
  .filter(
    (name) => name !== 'io_uring' || (existsSync(IO_URING) && readFileSync(IO_URING, 'utf8').trim() === '0'),
  );

function fio(user: User, directory: string, ...options: string[]): string[] {
  const chosen = sections.map((name) => `--section=${name}`);
  return [
    ...['fio', `--directory=${directory}`, '--output-format=json', ...chosen, ...options],
    readableFor(user, jobs),
  ];
}

/** Asserts that each section ran without an error and read and wrote something. */
function verified(result: RunResult): void {
  assert.equal(result.code, 0, told(result));
  const report = JSON.parse(result.stdout.slice(result.stdout.indexOf('{'))) as {
    jobs: { jobname: string; error: number; read: { total_ios: number } }[];
  };
  assert.deepEqual(
    report.jobs.map((job) => [job.jobname, job.error, job.read.total_ios > 100]),
    sections.map((name) => [name, 0, true]),
    told(result),
  );
}

for (const user of users) {
  for (const part of parts) {
    for (const files of ['new', 'older'] as const) {
      test(`fio verifies what it wrote to ${files} files in the ${part} part, as ${user}`, {
        timeout: 300_000,
      }, async () => {
        const place = makePlace(user, part, (directory) => {
          if (files === 'new') return;
          const [program, ...rest] = asUser(user, fio(user, directory, '--create_only=1'));
          execFileSync(program!, rest, { env: environmentOf(user), cwd: directory });
        });
        try {
          verified(await runInside(place, fio(user, place.directory)));
          const left = readdirSync(place.directory);
          if (part === 'unprotected') {
            verified(await runPlain(place, fio(user, place.directory, '--verify_only')));
          } else {
            assert.equal(left.length, files === 'new' ? 0 : 2 * sections.length);
          }
        } finally {
          await disposeWorkspace(place.workspace);
        }
      });
    }
  }
}
