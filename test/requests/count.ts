/** Plays the scenes and counts. What nobody waits for is left out: FORGET comes when the kernel pleases. */
import { execFileSync } from 'node:child_process';
import { realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { difference, type Requests, requestsSoFar } from '../../scripts/bench/requests.ts';
import { driver, Session } from '../../scripts/bench/session.ts';
import { commitAll, makeSourceTree } from '../../scripts/bench/source-tree.ts';
import {
  asUser,
  environmentOf,
  forgetFor,
  idsOf,
  readableFor,
  temporaryDirectory,
  type User,
} from '../harness/users.ts';
import { scenes, TREE_FILES } from './scenes.ts';

/** Bytes: sizes that one READ covers, so that how far the kernel reads ahead does not matter. */
const MEDIAN_SIZE = 1000;
const LARGEST = 16_000;
/** Events of the last step, and what they make forget tell the kernel, are through by then. */
const SETTLE_MS = 100;
const UNAWAITED = new Set(['FORGET', 'BATCH_FORGET', 'INTERRUPT']);

/** Requests of each step, by its title. */
export async function countRequests(user: User): Promise<Record<string, Requests>> {
  const top = realpathSync(temporaryDirectory('requests', user));
  const workspace = join(top, 'ws');
  const source = join(top, 'source');
  const env = environmentOf(user, { GIT_OPTIONAL_LOCKS: '0' });
  const counted: Record<string, Requests> = {};
  try {
    makeTrees(user, workspace, source);
    for (const { steps } of scenes(source)) {
      const line = asUser(user, [forgetFor(user), 'exec', '--quiet', '-w', workspace, '--']);
      const session = await Session.start(line, { cwd: workspace, env, driver: readableFor(user, driver) });
      try {
        // The root's attributes were taken back when the window's own test file left it.
        await session.do({ step: 'stat', paths: ['.'] });
        let before = await requestsSoFar(session.window!);
        for (const [title, step] of steps) {
          await session.do(step);
          await delay(SETTLE_MS);
          const after = await requestsSoFar(session.window!);
          counted[title] = awaited(difference(before, after));
          before = after;
        }
      } finally {
        await session.end();
      }
    }
  } finally {
    rmSync(top, { recursive: true, force: true });
  }
  return counted;
}

function makeTrees(user: User, workspace: string, source: string): void {
  const shape = { files: TREE_FILES, medianSize: MEDIAN_SIZE, largest: LARGEST };
  makeSourceTree(workspace, shape);
  makeSourceTree(source, { ...shape, seed: 3 });
  const { uid, gid } = idsOf(user);
  // Before git looks at them, since it reads again what has changed its owner.
  execFileSync('chown', ['-R', `${uid}:${gid}`, workspace, source]);
  commitAll(workspace, { argv: asUser(user, []), env: environmentOf(user) });
}

function awaited(requests: Requests): Requests {
  return Object.fromEntries(Object.entries(requests).filter(([opcode]) => !UNAWAITED.has(opcode)));
}
