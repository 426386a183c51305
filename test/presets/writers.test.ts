/** Every writer of the main job again, over an agent's home in place of the workspace; all of them in one window. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { fillWorkspace } from '../harness/forget.ts';
import { identityDifferences, snapshot } from '../harness/tree.ts';
import { forgetFor, idsOf, readableFor, temporaryDirectory, users } from '../harness/users.ts';
import { describeProcess, markedProcesses, runWatched } from '../harness/watchdog.ts';
import {
  AGENT_WRITERS,
  EDITOR_WRITERS,
  GIT_WRITERS,
  NODE_WRITERS,
  PYTHON_WRITERS,
  SHELL_WRITERS,
  SQLITE_WRITERS,
} from '../writers/list.ts';

const WRITERS = [
  ...[AGENT_WRITERS, EDITOR_WRITERS, GIT_WRITERS, NODE_WRITERS],
  ...[PYTHON_WRITERS, SHELL_WRITERS, SQLITE_WRITERS],
].flat();

/** Below it everything is forgotten. */
const PLACE = '.claude/projects/-home-ada-work';
const directory = fileURLToPath(new URL('../writers/programs', import.meta.url));

// As most people run it; the tests of the workspace have each writer as both users.
const user = users.at(-1)!;

test(`every writer, over an agent's home, leaves it as it was, as ${user}`, {
  timeout: 300_000,
}, async () => {
  const top = temporaryDirectory('home', user);
  const home = join(top, 'ada');
  const workspace = join(top, 'work');
  const programs = readableFor(user, directory);
  const { uid, gid } = idsOf(user);
  const fill = (): void => {
    mkdirSync(join(home, PLACE), { recursive: true });
    execFileSync('chown', ['-R', `${uid}:${gid}`, home]);
    for (const at of WRITERS.keys()) fillWorkspace(user, join(home, PLACE, String(at)));
  };
  const lines = WRITERS.map(({ interpreter, program, arguments: more = [] }, at) =>
    [
      `echo '== ${at}'; cd '${join(home, PLACE, String(at))}' &&`,
      interpreter,
      `'${programs}/${program}'`,
      ...more,
    ].join(' '),
  );
  const script = ['exec 2>&1', ...lines].join('\n');
  const run = (prefix: readonly string[]) =>
    runWatched([...prefix, 'sh', '-c', script], {
      user,
      cwd: workspace,
      env: { HOME: home, XDG_CONFIG_HOME: '' },
      timeout: 140_000,
    });
  try {
    mkdirSync(workspace);
    execFileSync('chown', [`${uid}:${gid}`, workspace]);
    fill();
    const plain = await run([]);
    assert.equal(plain.code, 0, plain.stdout);
    // At the very same path, since some writers print it.
    renameSync(home, `${home}-plain`);
    fill();
    const before = snapshot(home);
    const inside = await run([forgetFor(user), 'exec', '--quiet', '--agent', 'claude', '--']);
    assert.deepEqual(identityDifferences(before, snapshot(home)), []);
    const told = (text: string) => text.split(/^== /m).map((part, at) => `${WRITERS[at - 1]?.name}: ${part}`);
    assert.deepEqual(told(inside.stdout), told(plain.stdout), inside.stderr);
    assert.equal(inside.code, 0);
    assert.deepEqual(markedProcesses(inside.mark).map(describeProcess), []);
  } finally {
    rmSync(top, { recursive: true, force: true });
  }
});
