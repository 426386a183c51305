// `npm ci` of a real project, 188 packages with 21,000 files: the same node_modules as on a plain directory.
// Root alone: it has npm's cache, which the plain run fills, so that the window's runs need no network.
import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { npmEnvironment } from '../harness/npm.ts';
import { equalityDifferences, parseSnapshot, snapshot, snapshotCommand, type Tree } from '../harness/tree.ts';
import { inEachPart, type Place, runInside, runPlain, told } from './suite.ts';

const project = fileURLToPath(new URL('../../scripts/demo/agents/pi', import.meta.url));
const TIMEOUT = 280_000;
const NPM_CI = 'npm ci --ignore-scripts --no-audit --no-fund --loglevel=error';

function putProject(directory: string): void {
  for (const name of ['package.json', 'package-lock.json']) {
    copyFileSync(join(project, name), join(directory, name));
  }
}

let plain: Tree | undefined;

async function plainInstall(place: Place, env: Record<string, string>): Promise<Tree> {
  if (plain === undefined) {
    putProject(place.aside);
    const run = `cd '${place.aside}' && ${NPM_CI} --prefer-offline`;
    const result = await runPlain(place, ['sh', '-c', run], { timeout: TIMEOUT, env });
    assert.equal(result.code, 0, `npm itself fails: ${told(result)}`);
    plain = snapshot(place.aside);
  }
  return plain;
}

inEachPart(
  'npm ci installs what it installs without a window',
  { users: ['root'], timeout: 2 * TIMEOUT, fill: putProject },
  async (place) => {
    const env = npmEnvironment();
    const wanted = await plainInstall(place, env);
    const [python, ...rest] = snapshotCommand('.');
    const run = `cd '${place.directory}' && ${NPM_CI} --offline >&2 && exec '${[python, ...rest].join("' '")}'`;
    const result = await runInside(place, ['sh', '-c', run], { timeout: TIMEOUT, env });
    assert.equal(result.code, 0, told(result));
    assert.ok(wanted.size > 20_000, `${wanted.size} files`);
    assert.deepEqual(equalityDifferences(wanted, parseSnapshot(result.stdout)), []);
    if (place.part === 'unprotected') {
      assert.deepEqual(
        equalityDifferences(wanted, snapshot(place.directory)),
        [],
        'the lower after the window',
      );
    }
  },
);
