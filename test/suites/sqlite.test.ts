// SQLite under two writers that are killed with -9 at random moments: what was committed is there, and the database
// is whole; a database that the lower has, with a hot log or journal beside it, is found by the window as it stands.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { disposeWorkspace } from '../harness/forget.ts';
import { asUser, environmentOf, readableFor, users } from '../harness/users.ts';
import type { RunResult } from '../harness/watchdog.ts';
import { makePlace, parts, runInside, runPlain, told } from './suite.ts';

type Mode = 'wal' | 'delete';

interface Torture {
  mode: string;
  rounds: number;
  /** Rows of each writer that the database had when the torture began, and after the last kill. */
  before: [number, number];
  rows: [number, number];
  problems: string[];
}

const programs = fileURLToPath(new URL('./programs', import.meta.url));
const seed = Math.floor(Math.random() * 1e6);
const SIDE_FILE: Record<Mode, string> = { wal: '-wal', delete: '-journal' };

function torture(directory: string, mode: Mode, seconds: number, user: 'root' | 'ordinary'): string[] {
  return [
    'python3',
    join(readableFor(user, programs), 'torture.py'),
    directory,
    mode,
    `${seconds}`,
    `${seed}`,
  ];
}

function outcome(result: RunResult): Torture {
  assert.equal(result.code, 0, told(result));
  const found = JSON.parse(result.stdout) as Torture;
  assert.deepEqual(found.problems, [], `seed ${seed}: ${told(result)}`);
  return found;
}

/** Fills a database in the lower and kills its writer in a transaction: its side file stays, hot. */
function leaveHot(directory: string, mode: Mode, user: 'root' | 'ordinary'): void {
  const [program, ...rest] = asUser(user, [
    'python3',
    join(readableFor(user, programs), 'hot.py'),
    directory,
    mode,
  ]);
  const run = spawnSync(program!, rest, { env: environmentOf(user), encoding: 'utf8' });
  assert.equal(run.signal, 'SIGKILL', run.stderr);
  assert.ok(statSync(join(directory, `torture.db${SIDE_FILE[mode]}`)).size > 0, 'the side file is empty');
}

for (const user of users) {
  for (const part of parts) {
    for (const mode of ['wal', 'delete'] as const) {
      const title = `in the ${part} part, journal mode ${mode}, as ${user}`;
      test(`two SQLite writers killed at random lose no commit ${title}`, { timeout: 180_000 }, async () => {
        const place = makePlace(user, part);
        try {
          const inside = outcome(await runInside(place, torture(place.directory, mode, 3, user)));
          assert.equal(inside.mode, mode);
          assert.ok(inside.rounds >= 3 && inside.rows[0] + inside.rows[1] > 0, `${JSON.stringify(inside)}`);
          if (part === 'protected') return;
          const after = outcome(await runPlain(place, torture(place.directory, mode, 0, user)));
          assert.deepEqual(after.before, inside.rows, 'the rows in the lower after the window');
        } finally {
          await disposeWorkspace(place.workspace);
        }
      });

      test(`a hot database of the lower is recovered ${title}`, { timeout: 180_000 }, async () => {
        const place = makePlace(user, part, (directory) => leaveHot(directory, mode, user));
        try {
          const inside = outcome(await runInside(place, torture(place.directory, mode, 1, user)));
          assert.deepEqual(inside.before, [40, 40], 'what was committed before the window');
          // In the protected part runInside has compared every byte of it, the side files' too.
          const after = outcome(await runPlain(place, torture(place.directory, mode, 0, user)));
          assert.deepEqual(after.before, part === 'protected' ? [40, 40] : inside.rows);
        } finally {
          await disposeWorkspace(place.workspace);
        }
      });
    }
  }
}
