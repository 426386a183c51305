// `npm ci` of a real project, 188 packages with 21,000 files: the same node_modules as on a plain directory.
// Root alone: it has npm's cache, which the plain run fills, so that the window's runs need no network.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { equalityDifferences, parseSnapshot, snapshot, snapshotCommand, type Tree } from '../harness/tree.ts';
import { inEachPart, type Place, runInside, runPlain, told } from './suite.ts';

const project = fileURLToPath(new URL('../../scripts/demo/agents/pi', import.meta.url));
const TIMEOUT = 280_000;
const NPM_CI = 'npm ci --ignore-scripts --no-audit --no-fund --loglevel=error';

/** npm as it is configured for whoever runs the tests: the test's environment has another home. */
function npmEnvironment(): Record<string, string> {
  const configured = (key: string) =>
    execFileSync('npm', ['config', 'get', key], { encoding: 'utf8' }).trim();
  const kept = Object.entries(process.env).filter(([name]) =>
    /^(https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS)$/i.test(name),
  ) as [string, string][];
  return {
    ...Object.fromEntries(kept),
    npm_config_cache: configured('cache'),
    npm_config_registry: configured('registry'),
    npm_config_userconfig: configured('userconfig'),
  };
}

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
