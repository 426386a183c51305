// What tells a write that waited for its disk from one that was only preempted.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { monotonicMs } from '../../src/sys/clock.ts';
import { poll } from '../../src/sys/libc.ts';
import { voluntarySwitches } from '../../src/sys/waits.ts';
import { withBusyProcessors } from '../harness/busy.ts';

const BUSY_MS = 300;
/** A garbage collection may wait for its helpers. */
const FEW = 5;

test('waiting is counted, and losing the processor to others is not', { timeout: 30_000 }, async () => {
  const before = voluntarySwitches();
  for (let i = 0; i < 20; i++) poll(Buffer.alloc(8), 0, 1);
  assert.ok(voluntarySwitches() - before >= 20, 'waits');

  await withBusyProcessors(() => {
    const begun = voluntarySwitches();
    let longest = 0;
    let last = monotonicMs();
    for (const until = last + BUSY_MS; last < until; ) {
      const now = monotonicMs();
      longest = Math.max(longest, now - last);
      last = now;
    }
    assert.ok(longest > 1, `the processor was never lost: ${longest} ms at the most`);
    assert.ok(voluntarySwitches() - begun < FEW, `${voluntarySwitches() - begun} waits in a loop`);
  }, 2);
});
