// One file's bytes against a buffer in memory, by two processes: fsx.c, with new seeds each time.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withWorkspace } from '../cases/window.ts';
import { forgetExec, plainExec, protectedDifferences } from '../harness/forget.ts';
import { snapshot } from '../harness/tree.ts';

const source = fileURLToPath(new URL('./fsx.c', import.meta.url));
const OPERATIONS = 2000;
const LARGEST = 1 << 20;
/** Past what copy-up does at once, so that it goes in slices (overlay/copy-up.ts). */
const LARGER = 6 << 20;

const LARGE = 'memory/large.bin';

const FILES: [what: string, path: string, largest: number][] = [
  ['a new unprotected file', 'src/fsx', LARGEST],
  ['an unprotected file that was there', 'src/big.txt', LARGEST],
  ['a new protected file', 'memory/fsx', LARGEST],
  ['a protected file that was there', 'memory/big.bin', LARGER],
  ['a protected file that is copied up in slices', LARGE, LARGER],
];

const MAKE_LARGE = `import random
with open('${LARGE}', 'wb') as f: f.write(random.Random(1).randbytes(5 << 20))`;

for (const [what, path, largest] of FILES) {
  withWorkspace(`${what} holds what was written to it by two processes`, async (workspace) => {
    const fsx = join(workspace.top, 'fsx');
    execFileSync('gcc', ['-O2', '-Wall', '-o', fsx, source]);
    chmodSync(fsx, 0o755);
    if (path === LARGE) {
      assert.equal((await plainExec(workspace, ['python3', '-c', MAKE_LARGE])).code, 0);
      workspace.before = snapshot(workspace.path);
    }
    const seed = process.env.FORGET_TEST_SEED ?? '1';
    const result = await forgetExec(workspace, [fsx, path, seed, String(OPERATIONS), String(largest)]);
    assert.equal(
      result.code,
      0,
      `fsx ${path} ${seed} ${OPERATIONS} ${largest}\n${result.stdout}${result.stderr}`,
    );
    assert.match(result.stdout, /operations/);
    assert.deepEqual(protectedDifferences(workspace), []);
  });
}
