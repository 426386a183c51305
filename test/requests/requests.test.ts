// Requests by opcode of fixed work, against the committed numbers: the one measure of speed that no noise touches.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { users } from '../harness/users.ts';
import { type Counts, differences, readExpected, total, verdict } from './comparison.ts';
import { countLeast } from './count.ts';
import { CREATED, scenes } from './scenes.ts';

const RUNS = 3;
const titles = scenes('').flatMap(({ steps }) => steps.map(([title]) => title));
const expected = readExpected();

for (const user of users) {
  describe(`requests, as ${user}`, () => {
    let counted: Counts;
    before(
      async () => {
        counted = await countLeast(user, RUNS, (counts) =>
          titles.every((title) => differences(title, expected, counts[title]!).length === 0),
        );
      },
      { timeout: 120_000 },
    );

    for (const title of titles) {
      test(`${title}: as many requests of each kind as committed`, () => {
        assert.equal(verdict(title, differences(title, expected, counted[title]!)), '');
      });
    }

    test('what was read before is read again without any request', () => {
      for (const title of ['git status, third', 'rg, third', 'rg of the copy, third, protected']) {
        assert.deepEqual(counted[title], {}, title);
      }
    });

    test('a small file is made, written and closed with four requests, and one for its directory', () => {
      for (const where of ['protected', 'unprotected']) {
        const requests = counted[`${CREATED} small files, ${where}`]!;
        assert.ok(total(requests) <= 5 * CREATED + 10, JSON.stringify(requests));
      }
    });

    test('a first search asks at most twice for a directory, and once for a file', () => {
      const { READDIR = 0, READDIRPLUS = 0, READ = 0 } = counted['rg, first']!;
      assert.ok(READDIR + READDIRPLUS <= 2 * 32, `${READDIR + READDIRPLUS} for 31 directories`);
      assert.ok(READ <= 310, `${READ} for 300 files`);
    });
  });
}

test('expected.json holds the steps that there are, and no others', () => {
  assert.deepEqual(Object.keys(expected.counts), titles);
});
