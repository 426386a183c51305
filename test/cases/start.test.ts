// What a window costs its user before anything has happened.
import assert from 'node:assert/strict';
import { forgetExec, plainExec } from '../harness/forget.ts';
import type { User } from '../harness/users.ts';
import { withWorkspace } from './window.ts';

/**
 * Wide margins: a busy machine moves this ratio by half. The goals, 2 for root and 3 for a user, and what was measured
 * are in docs/decisions.md.
 */
const LIMIT: Record<User, number> = { root: 4, ordinary: 5 };

withWorkspace(
  'an empty command starts in a small multiple of the time of an empty Node program',
  async (workspace) => {
    // The least of several, taken in turns: what others do on the machine only ever adds.
    const bare: number[] = [];
    const window: number[] = [];
    for (let round = 0; round < 12; round++) {
      bare.push((await plainExec(workspace, ['node', '-e', '0'])).milliseconds);
      const run = await forgetExec(workspace, ['true']);
      assert.equal(run.code, 0, run.stderr);
      window.push(run.milliseconds);
    }
    const [empty, opened] = [Math.min(...bare), Math.min(...window)];
    assert.ok(
      opened <= LIMIT[workspace.user] * empty,
      `${opened.toFixed(1)} ms against ${empty.toFixed(1)} ms`,
    );
  },
);
