// The short form of `npm run soak`.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { soak } from '../../scripts/soak/soak.ts';
import { users } from '../harness/users.ts';

const SECONDS = 35;
const seed = process.env.FORGET_TEST_SEED ?? '1';

test(`${SECONDS} s of an agent's mix of work in 8 processes, with other windows, a mount and outside edits beside`, {
  timeout: 180_000,
}, async (t) => {
  t.diagnostic(`FORGET_TEST_SEED=${seed}`);
  const result = await soak({
    seconds: SECONDS,
    user: users[0]!,
    processes: 8,
    seed,
    sampleEverySeconds: 1,
  });
  assert.deepEqual(result.wrong, []);
  assert.ok(result.samples.length >= 6, `${result.samples.length} samples`);
  assert.ok(result.windows > 2, `${result.windows} windows beside`);
  assert.ok(result.outsideEdits > 50, `${result.outsideEdits} outside edits`);
  // What the kernel no longer knows is no node any more.
  assert.ok(
    result.nodes.quiet < 300,
    `${result.nodes.quiet} nodes after the work, ${result.nodes.most} in it`,
  );
});
