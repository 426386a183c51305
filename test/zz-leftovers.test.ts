// Runs last (test/run.ts sees to that), so that its result is one of node's own test lines.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type Leftovers, machineLeftovers, runProcesses } from './harness/leftovers.ts';

const temporary = process.env.FORGET_TEST_TEMPORARY;

test('the whole run leaves no mount, no process and no temporary file', {
  timeout: 10_000,
}, () => {
  assert.ok(temporary, 'this file is run by test/run.ts, after all others');
  const before = JSON.parse(readFileSync(process.env.FORGET_TEST_BEFORE!, 'utf8')) as Leftovers;
  const now = machineLeftovers();
  // tsx keeps its compile cache in the temporary directory, and Node its own.
  const files = readdirSync(temporary).filter((name) => !/^(tsx-|node-compile-cache)/.test(name));
  assert.deepEqual(
    {
      mounts: now.mounts.filter((path) => !before.mounts.includes(path) && ours(path)),
      processes: runProcesses(temporary),
      files,
    },
    { mounts: [], processes: [], files: [] },
  );
});

/** On a machine of its own everything new is this run's; on a shared one, others may be running forget as well. */
function ours(path: string): boolean {
  return process.env.CI === 'true' || path.startsWith(temporary!);
}
