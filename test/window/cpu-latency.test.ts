// Idle processors wait awake while requests come fast, where they would halt at once and this user may change that; and no longer.
import assert from 'node:assert/strict';
import { closeSync, existsSync, openSync, readFileSync, readSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { withWorkspace } from '../cases/window.ts';
import { withViews } from '../freshness/views.ts';
import { until } from '../harness/until.ts';
import { users } from '../harness/users.ts';

const DEVICE = '/dev/cpu_dma_latency';
const POLLS_FOR = '/sys/module/haltpoll/parameters/guest_halt_poll_ns';
const DRIVER = '/sys/devices/system/cpu/cpuidle/current_driver';
const AS_IT_LIKES = 2_000_000_000;

const read = (path: string) => (existsSync(path) ? readFileSync(path, 'latin1').trim() : '');
const haltsAtOnce = read(DRIVER) === 'haltpoll' && read(POLLS_FOR) === '0' && existsSync(DEVICE);

/** What all processes together ask for, in microseconds. Without the device, or for whom it is not: nothing. */
function latency(): number {
  if (!users.includes('root') || !existsSync(DEVICE)) return AS_IT_LIKES;
  const value = Buffer.alloc(4);
  const fd = openSync(DEVICE, 'r');
  readSync(fd, value);
  closeSync(fd);
  return value.readInt32LE();
}

// The answer that there is none is never kept.
const ASK = `
import os, time
end = time.monotonic() + 0.4
while time.monotonic() < end:
    try: os.getxattr('.', 'user.none')
    except OSError: pass
`;
const ASK_SELDOM = ASK.replace('os.getxattr', 'time.sleep(0.002); os.getxattr');

withWorkspace('processors that halt at once wait awake while requests come fast', async (workspace) => {
  await withViews(workspace, async ({ inside }) => {
    const seenDuring = async (script: string) => {
      await until('it is quiet', () => latency() === AS_IT_LIKES);
      const seen = new Set<number>();
      let running = true;
      const run = inside.run('python3', '-c', script).finally(() => {
        running = false;
      });
      for (; running; await delay(5)) seen.add(latency());
      await run;
      return seen;
    };
    const awake = workspace.user === 'root' && haltsAtOnce;
    assert.equal((await seenDuring(ASK)).has(0), awake);
    assert.equal((await seenDuring(ASK_SELDOM)).has(0), false);
    await until('they halt again', () => latency() === AS_IT_LIKES);
  });
});
