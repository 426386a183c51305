// Random operations on a plain directory and in a window. The seeds are the same each time, so that a change is judged by
// what it changes; `npm run fuzz` takes new ones, for as long as you like.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type User, users } from '../harness/users.ts';
import { describe } from './describe.ts';
import { generate, MODES, type Mode, runSequence } from './fuzz.ts';
import { shrink } from './shrink.ts';

/** All of them together take about a minute. */
const EACH_MS = 6000;
const OPERATIONS = 300;
const SHRINKING_RUNS = 40;
const FIRST_SEED = Number(process.env.FORGET_TEST_SEED ?? 1);

/** [seed, mode, user]: each showed a defect once, told in test/cases/regressions.test.ts. */
const ONCE_WRONG: [number, Mode, User][] = [
  [102, 'protected', 'root'],
  [20, 'mixed', 'ordinary'],
  [33, 'mixed', 'root'],
];

async function holds(seed: number, mode: Mode, user: User): Promise<string> {
  const sequence = generate(seed, OPERATIONS, mode, user);
  const finding = await runSequence(sequence);
  if (finding.wrong.length > 0) {
    const smaller = await shrink(sequence, finding, SHRINKING_RUNS);
    assert.fail(`${describe(sequence, finding)}\nshrunk:\n${describe(smaller.sequence, smaller.finding)}`);
  }
  assertSeenSoon(finding.settled);
  return describe(sequence, finding);
}

/** Of what was done outside, most is seen inside within 200 ms, the reading of the whole tree included. */
function assertSeenSoon(settled: readonly number[]): void {
  const middle = [...settled].sort((a, b) => a - b)[settled.length >> 1] ?? 0;
  assert.ok(middle <= 200, `half of the outside changes took more than ${middle} ms to be seen: ${settled}`);
}

for (const mode of MODES) {
  for (const user of users) {
    test(`a window differs from a plain directory as documented: ${mode}, as ${user}`, {
      timeout: 300_000,
    }, async (t) => {
      const until = Date.now() + EACH_MS;
      for (let seed = FIRST_SEED; Date.now() < until; seed++) {
        t.diagnostic(await holds(seed, mode, user));
      }
    });
  }
}

for (const [seed, mode, user] of ONCE_WRONG.filter(([, , user]) => users.includes(user))) {
  test(`and with seed ${seed}, ${mode}, as ${user}`, { timeout: 300_000 }, async () => {
    await holds(seed, mode, user);
  });
}
