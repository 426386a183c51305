// The table of named checks (test/conformance/checks) on every target, for root and for an ordinary user.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type User, users } from '../harness/users.ts';
import {
  type Check,
  listChecks,
  oracleOf,
  type Run,
  runTarget,
  type Target,
  targets,
  wantedChecks,
} from './targets.ts';
import { judge } from './verdict.ts';

const runs = new Map<string, Promise<Run>>();

/** Oracles are run once, however many targets ask for them. */
function runOnce(target: Target, user: User): Promise<Run> {
  const key = `${target.name}, ${user}`;
  const known = runs.get(key) ?? runTarget(all, target, user);
  runs.set(key, known);
  return known;
}

const all: Check[] = await listChecks();

test('the table has a hundred checks or more, and each says what it checks', () => {
  assert.ok(all.length >= 100, `${all.length} checks`);
  assert.deepEqual(
    all.filter((one) => !one.says.endsWith('.')),
    [],
  );
});

for (const user of users) {
  for (const target of targets) {
    test(`every check comes out right in ${target.name}, as ${user}`, { timeout: 300_000 }, async () => {
      const oracle = await runOnce(oracleOf(target), user);
      const run = await runOnce(target, user);
      const wanted = wantedChecks(all, target, user);
      const wrong = judge(wanted, run, oracle)
        .filter((one) => one.verdict === 'wrong')
        .map((one) => `${one.check.name} (${one.check.says}) ${one.detail}`);
      assert.deepEqual(wrong, []);
      assert.equal(run.filesystem === 'fuse.forget', target.driver !== undefined, run.filesystem);
    });
  }
}
