/** Plays the scenes and counts. What nobody waits for is left out: FORGET comes when the kernel pleases. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { difference, type Requests, requestsSoFar } from '../../scripts/bench/requests.ts';
import { driver, Session } from '../../scripts/bench/session.ts';
import { commitAll, makeSourceTree, NEEDLE } from '../../scripts/bench/source-tree.ts';
import {
  asUser,
  environmentOf,
  forgetFor,
  idsOf,
  readableFor,
  temporaryDirectory,
  type User,
} from '../harness/users.ts';
import { type Counts, total } from './comparison.ts';
import { COPIED, scenes, TREE_FILES } from './scenes.ts';

/** Bytes: sizes that one READ covers, so that how far the kernel reads ahead does not matter. */
const MEDIAN_SIZE = 1000;
const LARGEST = 16_000;
/** Events of the last step, and what they make forget tell the kernel, are through by then. */
const SETTLE_MS = 100;
const UNAWAITED = new Set(['FORGET', 'BATCH_FORGET', 'INTERRUPT']);

/**
 * The least that each step took in several runs, of which there are no more than it takes for `enough` to be content.
 * Others on the machine only ever add requests: whoever drops its caches, or needs memory, has the kernel ask again.
 */
export async function countLeast(
  user: User,
  runs: number,
  enough: (counts: Counts) => boolean = () => false,
): Promise<Counts> {
  const least = await countRequests(user);
  for (let run = 1; run < runs && !enough(least); run++) {
    for (const [title, requests] of Object.entries(await countRequests(user))) {
      if (total(requests) < total(least[title]!)) least[title] = requests;
    }
  }
  return least;
}

/** Requests of each step, by its title. */
async function countRequests(user: User): Promise<Counts> {
  const top = realpathSync(temporaryDirectory('requests', user));
  const workspace = join(top, 'ws');
  const source = join(top, 'source');
  const env = environmentOf(user, { GIT_OPTIONAL_LOCKS: '0' });
  const counted: Counts = {};
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
  makeFlatTree(source);
  const { uid, gid } = idsOf(user);
  // Before git looks at them, since it reads again what has changed its owner.
  execFileSync('chown', ['-R', `${uid}:${gid}`, workspace, source]);
  commitAll(workspace, { argv: asUser(user, []), env: environmentOf(user) });
}

/**
 * Files and directories in different ones: cp takes them by inode number, which differs from run to run, and a
 * directory made between two files of its parent costs a request.
 */
function makeFlatTree(root: string): void {
  mkdirSync(root);
  for (let d = 0; d < COPIED.directories; d++) {
    mkdirSync(join(root, `d${d}`));
    for (let f = 0; f < COPIED.files; f++) {
      const needle = f === 0 ? NEEDLE : '';
      writeFileSync(join(root, `d${d}/f${f}`), `${needle}\n${'line\n'.repeat(100)}`);
    }
  }
}

function awaited(requests: Requests): Requests {
  return Object.fromEntries(Object.entries(requests).filter(([opcode]) => !UNAWAITED.has(opcode)));
}
