// Looking into, and keeping of, windows that stand one over the other.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { protectedDifferences } from '../harness/forget.ts';
import { type Live, onMount } from './live.ts';

const lower = ({ workspace }: Live, path: string) => readFileSync(join(workspace.path, path), 'utf8');
const write = (path: string, text: string) =>
  `open(${JSON.stringify(path)}, "a").write(${JSON.stringify(text)})`;

onMount(
  'list and diff show what all windows hold together, and the log goes on from one to the next',
  async (live) => {
    const agent = await live.agent();
    const look = async (...argv: string[]) => (await live.forget(...argv)).stdout;
    const [here] = [live.view];
    await live.open('outer');
    await agent.does(write('memory/old.md', 'outer\n'));
    await live.open('inner');
    await agent.does(write('memory/old.md', 'inner\n'));
    await agent.does(write('memory/new.md', 'new\n'));
    const { pid } = await live.status();
    const window = ['--window', (await live.status()).id];
    assert.ok(pid > 0);
    assert.match(await look('list', ...window), /memory\/new\.md +created.*\n.*memory\/old\.md +changed/);
    const diff = await look('diff', ...window, join(here, 'memory/old.md'));
    assert.match(diff, /\+outer\n\+inner\n/);
    await live.close('inner');
    assert.doesNotMatch(await look('diff', ...window), /inner|new\.md/);
    await live.close('outer');
    assert.match(await look('list', ...window), /holds nothing/);
    const log = await look('log', ...window);
    assert.match(
      log,
      /write +memory\/old\.md +6 bytes.*\n.*write +memory\/old\.md +6 bytes.*\n.*create +memory\/new\.md/s,
    );
    assert.deepEqual(protectedDifferences(live.workspace), []);
  },
);

onMount(
  'what an inner window keeps is real for the outer ones too, and its own changes after that are gone',
  async (live) => {
    const agent = await live.agent();
    const keep = async (...globs: string[]) => {
      const window = ['--window', (await live.status()).id];
      const result = await live.forget('keep', ...window, ...globs);
      assert.equal(result.code, 0, result.stderr);
    };
    await live.open('outer');
    await agent.does(write('memory/of-outer.md', 'outer\n'));
    await live.open('inner');
    await agent.does(write('memory/of-inner.md', 'kept\n'));
    await agent.does(write('memory/of-outer.md', 'and inner\n'));
    await agent.does('import os; os.makedirs("memory/deep/er")');
    await agent.does(write('memory/deep/er/file', 'deep\n'));
    await keep('/memory/of-inner.md', '/memory/deep/');
    assert.equal(lower(live, 'memory/of-inner.md'), 'kept\n');
    await agent.does(write('memory/of-inner.md', 'later\n'));
    await live.close('inner');
    assert.equal(
      await agent.does('print(open("memory/of-inner.md").read(), open("memory/deep/er/file").read())'),
      'kept\n deep',
    );
    assert.equal(await agent.does('print(open("memory/of-outer.md").read())'), 'outer');
    await keep('/memory/of-outer.md');
    await live.close('outer');
    assert.equal(lower(live, 'memory/of-outer.md'), 'outer\n');
    assert.equal(lower(live, 'memory/of-inner.md'), 'kept\n');
    assert.equal(lower(live, 'memory/deep/er/file'), 'deep\n');
    assert.equal(await agent.does('print(open("memory/of-inner.md").read())'), 'kept');
  },
);

onMount('a name that a closed window covered is no conflict for the next one', async (live) => {
  const agent = await live.agent();
  const at = join(live.workspace.path, 'memory/old.md');
  await live.open();
  await agent.does('import os; os.unlink("memory/old.md")');
  await live.close();
  rmSync(at);
  await live.open();
  await agent.does(write('memory/old.md', 'made anew\n'));
  const { id } = await live.status();
  const kept = await live.forget('keep', '--window', id, '/memory/old.md');
  assert.equal(kept.code, 0, kept.stderr);
  await live.close();
  assert.equal(readFileSync(at, 'utf8'), 'made anew\n');

  // And a real one is still seen.
  await live.open();
  await agent.does(write('memory/old.md', 'in the window\n'));
  writeFileSync(at, 'outside\n');
  const refused = await live.forget('keep', '--window', id, '/memory/old.md');
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /memory\/old\.md.*changed/);
  await live.close();
  assert.equal(readFileSync(at, 'utf8'), 'outside\n');
});

onMount('a page of a closed window that was copied into the code is found at that close', async (live) => {
  const agent = await live.agent();
  const page = Array.from(
    { length: 40 },
    (_, i) => `word${i * 7919} of a private page that nobody else has`,
  ).join(' ');
  await live.open();
  await agent.does(write('memory/page.md', `${page}\n`));
  await agent.does(write('src/copied.txt', `${page}\n`));
  const report = await live.close();
  assert.deepEqual(
    report.escapes.map(({ kind, path }) => [kind, path]),
    [['text', 'src/copied.txt']],
  );
  assert.ok(existsSync(join(live.workspace.path, 'src/copied.txt')));
});
