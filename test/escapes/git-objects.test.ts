// git's objects, read from a repository that git made.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  gitObjectPath,
  looseObject,
  messageOf,
  packedObjects,
  treeEntries,
} from '../../src/window/escapes/git-objects.ts';
import { environmentOf, temporaryDirectory } from '../harness/users.ts';

const MOST = 1 << 20;
let repository = '';
const git = (...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.invalid', ...args], {
    cwd: repository,
    env: environmentOf('ordinary'),
    encoding: 'utf8',
  });

before(() => {
  repository = temporaryDirectory('git', process.getuid?.() === 0 ? 'root' : 'ordinary');
  git('init', '--quiet');
  for (let n = 0; n < 4; n++) {
    writeFileSync(
      join(repository, 'page.txt'),
      `${'a page with many lines\n'.repeat(200)}and line ${n} of its own\n`,
    );
    git('add', 'page.txt');
    git('commit', '--quiet', '-m', `Commit ${n}\n\nWith a body`);
  }
});
after(() => rmSync(repository, { recursive: true, force: true }));

test('loose commits, trees and blobs are read', () => {
  const objects = join(repository, '.git/objects');
  const types: Record<string, number> = {};
  for (const directory of readdirSync(objects).filter((name) => name.length === 2)) {
    for (const name of readdirSync(join(objects, directory))) {
      const object = looseObject(readFileSync(join(objects, directory, name)), MOST)!;
      types[object.type] = (types[object.type] ?? 0) + 1;
      if (object.type === 'commit')
        assert.match(messageOf(object.body).toString(), /^Commit \d\n\nWith a body\n$/);
      if (object.type === 'tree')
        assert.deepEqual(
          [...treeEntries(object.body, 20)].map((entry) => entry.name),
          ['page.txt'],
        );
    }
  }
  assert.deepEqual(types, { commit: 4, tree: 4, blob: 4 });
});

test('all objects of a pack are read, differences among them', () => {
  git('repack', '--quiet', '-a', '-d');
  const packs = join(repository, '.git/objects/pack');
  const name = readdirSync(packs).find((one) => one.endsWith('.pack'))!;
  assert.deepEqual(gitObjectPath(`sub/.git/objects/pack/${name}`), { repository: 'sub/.git', id: undefined });
  const objects = [...packedObjects(readFileSync(join(packs, name)), MOST)];
  assert.equal(objects.length, 12);
  assert.ok(
    objects.some(({ type }) => type === 'delta'),
    objects.map(({ type }) => type).join(),
  );
  for (let n = 0; n < 4; n++) {
    assert.ok(
      objects.some(({ body }) => body.includes(`${n} of its own`) || body.includes(`line ${n}`)),
      `line ${n}`,
    );
  }
});

test('what is no object, or larger than wanted, is none', () => {
  assert.equal(looseObject(Buffer.from('no zlib'), MOST), undefined);
  assert.deepEqual([...packedObjects(Buffer.from('PACK and something else that is no pack'), MOST)], []);
  assert.equal(gitObjectPath('src/objects/ab/c.ts'), undefined);
});
