// Readers of a directory whose names come and go. ext4 holds what is asked here; tmpfs (6.18) repeats names after a seek.
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { withWorkspace } from '../cases/window.ts';
import { forgetExec, plainExec, protectedDifferences } from '../harness/forget.ts';
import { snapshot } from '../harness/tree.ts';
import { readableFor } from '../harness/users.ts';

const checks = fileURLToPath(new URL('../conformance/checks', import.meta.url));
const program = fileURLToPath(new URL('./programs/listings.py', import.meta.url));
const ROUNDS = 25;
const FIRST_SEED = process.env.FORGET_TEST_SEED ?? '1';

/** Names that were there before the window. */
const FILL = `
import os
for directory, count in [('src/few', 10), ('src/many', 300), ('memory/few', 10), ('memory/many', 300)]:
    os.mkdir(directory)
    for i in range(count): open(f'{directory}/s{i}', 'w').close()
`;

for (const [what, directory] of [
  ['an unprotected directory of few names', 'src/few'],
  ['an unprotected directory of many names', 'src/many'],
  ['a protected directory of few names', 'memory/few'],
  ['a protected directory of many names', 'memory/many'],
  ['a protected directory that only the window has', 'memory/new'],
] as const) {
  withWorkspace(
    `whoever reads ${what} while names come and go gets what stays once, and nothing that is not there`,
    async (workspace) => {
      const { code, stderr } = await plainExec(workspace, ['python3', '-c', FILL]);
      assert.equal(code, 0, stderr);
      workspace.before = snapshot(workspace.path);
      const at = readableFor(workspace.user, program);
      const calls = readableFor(workspace.user, checks);
      const script = `mkdir -p ${directory}; PYTHONPATH=$1 exec python3 "$2" ${FIRST_SEED} ${ROUNDS} ${directory}`;
      const inside = await forgetExec(workspace, ['sh', '-c', script, 'sh', calls, at]);
      assert.equal(inside.code, 0, inside.stdout + inside.stderr);
      assert.equal(inside.stdout, `${ROUNDS} rounds\n`);
      assert.deepEqual(protectedDifferences(workspace), []);
    },
  );
}
