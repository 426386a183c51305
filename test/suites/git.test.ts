// A day with git: the same commits, the same output and the same index as on a plain directory, and a repository that
// passes its full fsck. In the unprotected part, what the window left in the lower passes it too.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readableFor } from '../harness/users.ts';
import type { RunResult } from '../harness/watchdog.ts';
import { inEachPart, runInside, runPlain, told } from './suite.ts';

const program = fileURLToPath(new URL('./programs/everyday.sh', import.meta.url));
const TIMEOUT = 240_000;
const REPOSITORIES = ['main', 'clone', 'bare.git'];

inEachPart("git's everyday work goes as on a plain directory", { timeout: 2 * TIMEOUT }, async (place) => {
  const run = (directory: string) => ['sh', readableFor(place.user, program), directory];
  const inside = await runInside(place, run(place.directory), { timeout: TIMEOUT });
  const plain = await runPlain(place, run(place.aside), { timeout: TIMEOUT });
  const observed = (result: RunResult) => {
    assert.equal(result.code, 0, told(result));
    return result.stdout.replaceAll(place.directory, 'DIRECTORY').replaceAll(place.aside, 'DIRECTORY');
  };
  assert.equal(observed(inside), observed(plain));
  for (const name of REPOSITORIES) {
    assert.match(
      observed(inside),
      new RegExp(`\\[0\\] git -C \\S*${name === 'main' ? '\\.' : name} fsck --full`),
    );
  }
  if (place.part === 'protected') return;
  for (const name of REPOSITORIES) {
    const fsck = await runPlain(place, [
      ...['git', '-C', join(place.directory, name), 'fsck', '--full', '--strict', '--no-progress'],
    ]);
    assert.equal(fsck.code, 0, `${name} in the lower after the window: ${told(fsck)}`);
  }
  for (const name of ['main', 'clone']) {
    const status = await runPlain(place, ['git', '-C', join(place.directory, name), 'status', '--porcelain']);
    assert.deepEqual([status.code, status.stdout], [0, ''], `${name} in the lower: ${told(status)}`);
  }
});
