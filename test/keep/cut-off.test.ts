/** A keep that does not come to its end: by Ctrl-C, by `kill -9`, at each of its stages. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import {
  doStep,
  type Journal,
  lockKeeping,
  recoverKeep,
  type Step,
  writeJournal,
} from '../../src/overlay/keep-journal.ts';
import { isProtectedByDefault } from '../harness/protected.ts';
import { identityDifferences, part, snapshot } from '../harness/tree.ts';
import { asUser, environmentOf, forgetFor, temporaryDirectory } from '../harness/users.ts';
import { type OpenWindow, openWindow, outside, withOpenWindow } from './windows.ts';

const journalOf = (window: OpenWindow) => join(window.workspace.path, '.forget-keep.json');

/** Starts `forget keep '*'` outside, and waits until the server is at it. */
async function startKeeping(
  window: OpenWindow,
): Promise<{ client: ReturnType<typeof spawn>; ended: Promise<number | null> }> {
  const { user, path: cwd } = window.workspace;
  const [program, ...line] = asUser(user, [forgetFor(user), 'keep', '*', '--window', window.id]);
  const client = spawn(program!, line, { cwd, env: environmentOf(user), stdio: 'ignore' });
  const ended = new Promise<number | null>((resolve) => client.once('close', (code) => resolve(code)));
  while (!existsSync(journalOf(window))) {
    if (client.exitCode !== null) throw new Error('the keep ended before it was seen');
    await delay(1);
  }
  return { client, ended };
}

const LARGE = 'head -c 120M /dev/zero > memory/large; echo changed > memory/old.md; rm memory/empty.md';

withOpenWindow(
  'Ctrl-C while keeping leaves nothing half done, and the window goes on',
  async (window) => {
    await window.inside(LARGE);
    const { client, ended } = await startKeeping(window);
    client.kill('SIGINT');
    await ended;
    while (existsSync(journalOf(window))) await delay(10);
    const protectedBefore = part(window.workspace.before, isProtectedByDefault);
    const after = part(snapshot(window.workspace.path), isProtectedByDefault);
    // The directory itself had a file in it for a moment.
    for (const tree of [protectedBefore, after]) tree.delete('memory');
    assert.deepEqual(identityDifferences(protectedBefore, after), []);
    assert.equal((await window.inside('stat -c %s memory/large')).trim(), String(120 << 20));
    assert.equal((await window.forget('keep', '/memory/old.md')).code, 0);
    assert.equal(readFileSync(join(window.workspace.path, 'memory/old.md'), 'utf8'), 'changed\n');
  },
  { users: ['root'] },
);

for (const how of ['doctor', 'the next window'] as const) {
  withOpenWindow(
    `after kill -9 while keeping ${how} puts the workspace right`,
    async (window) => {
      const { workspace } = window;
      await window.inside(LARGE);
      await startKeeping(window);
      process.kill(window.pid, 'SIGKILL');
      await window.close();
      assert.ok(existsSync(journalOf(window)), 'it was cut off');
      if (how === 'doctor') {
        const found = await outside(workspace, workspace.user, ['doctor']);
        assert.match(found.stdout, /^warn +keeping +.*a keep was cut off/m);
        const fixed = await outside(workspace, workspace.user, ['doctor', '--fix']);
        assert.match(fixed.stdout, /^ok +keeping +.*taken back: nothing of it is in the workspace/m);
      } else {
        const next = await openWindow(workspace);
        assert.equal((await next.inside('ls -A memory | grep forget-keep || true')).trim(), '');
        assert.match((await next.close()).stderr, /a keep that was cut off was taken back/);
      }
      const names = [...snapshot(workspace.path).keys()];
      assert.deepEqual(
        names.filter((name) => name.includes('.forget-keep') || name === 'memory/large'),
        [],
      );
      assert.equal(
        readFileSync(join(workspace.path, 'memory/old.md'), 'utf8'),
        '# What I know\n\nAda prefers tabs.\n',
      );
    },
    { users: how === 'doctor' ? ['root', 'ordinary'] : ['ordinary'] },
  );
}

withOpenWindow(
  'while one keeps, another of the same workspace is told to wait',
  async (window) => {
    const other = await openWindow(window.workspace);
    await other.inside('echo other > memory/other.md');
    await window.inside(LARGE);
    const { ended } = await startKeeping(window);
    const refused = await other.forget('keep', '*');
    if (refused.code !== 0) assert.match(refused.stderr, /another keep is under way/);
    assert.equal(await ended, 0);
    assert.equal((await other.forget('keep', '*')).code, refused.code === 0 ? 125 : 0);
    assert.equal(statSync(join(window.workspace.path, 'memory/large')).size, 120 << 20);
  },
  { users: ['ordinary'] },
);

interface Prepared {
  path: string;
  root: number;
  steps: Step[];
}

/** A directory with two files and new ones beside them, as a keep has prepared it. */
function prepared(): Prepared {
  const path = temporaryDirectory('journal', 'root');
  mkdirSync(join(path, 'd'));
  const put = (name: string, text: string) => writeFileSync(join(path, name), text);
  put('d/changed', 'original');
  put('d/deleted', 'original');
  put('d/.forget-keep-1-0', 'new');
  put('d/.forget-keep-1-1', 'new');
  const ino = (name: string) => statSync(join(path, name)).ino;
  const steps: Step[] = [
    {
      kind: 'swap',
      directory: 'd',
      name: 'changed',
      temporary: '.forget-keep-1-0',
      ino: ino('d/.forget-keep-1-0'),
    },
    {
      kind: 'put',
      directory: 'd',
      name: 'created',
      temporary: '.forget-keep-1-1',
      ino: ino('d/.forget-keep-1-1'),
    },
    { kind: 'remove', directory: 'd', name: 'deleted', temporary: '.forget-keep-1-2', ino: 0 },
  ];
  return { path, root: openSync(path, 'r'), steps };
}

const textsIn = (path: string) =>
  Object.fromEntries(
    [...snapshot(path).values()]
      .filter(({ type }) => type === 'file')
      .map((entry) => [entry.path, readFileSync(join(path, entry.path), 'utf8')]),
  );

const BEFORE = { 'd/changed': 'original', 'd/deleted': 'original' };
const AFTER = { 'd/changed': 'new', 'd/created': 'new' };

async function cutOffAt(stage: Journal['stage'], done: number): Promise<Record<string, string>> {
  const { path, root, steps } = prepared();
  const lock = lockKeeping(root);
  await writeJournal(root, lock, { version: 1, stage, steps });
  for (const step of steps.slice(0, done)) assert.equal(doStep(root, step), 0);
  closeSync(lock);
  assert.match(recoverKeep(root)!, stage === 'clean' ? /was done/ : /taken back/);
  assert.equal(recoverKeep(root), undefined);
  closeSync(root);
  const texts = textsIn(path);
  rmSync(path, { recursive: true });
  return texts;
}

test('a keep that was cut off at any point is taken back, or was done', async () => {
  assert.deepEqual(await cutOffAt('prepare', 0), BEFORE);
  for (const done of [0, 1, 2, 3]) assert.deepEqual(await cutOffAt('commit', done), BEFORE);
  assert.deepEqual(await cutOffAt('clean', 3), AFTER);
});

test('a journal is left alone while somebody keeps, and where it is not this user’s own', async () => {
  const { path, root, steps } = prepared();
  const lock = lockKeeping(root);
  await writeJournal(root, lock, { version: 1, stage: 'commit', steps });
  assert.equal(recoverKeep(root), undefined);
  closeSync(lock);
  const journal = join(path, '.forget-keep.json');
  const text = readFileSync(journal, 'utf8');
  rmSync(journal);
  // As it would come with a repository.
  writeFileSync(journal, text, { mode: 0o644 });
  assert.throws(() => recoverKeep(root), /was not written by a forget of this user/);
  rmSync(journal);
  writeFileSync(journal, text.replace('"d"', '"../d"'), { mode: 0o600 });
  assert.throws(() => recoverKeep(root), /is not a journal/);
  assert.equal(readFileSync(join(path, 'd/changed'), 'utf8'), 'original');
  closeSync(root);
  rmSync(path, { recursive: true });
});
