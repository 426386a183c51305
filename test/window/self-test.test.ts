import assert from 'node:assert/strict';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { judge, leakedTo, newCanary } from '../../src/window/self-test.ts';
import { testInChild } from '../../src/window/self-test-child.ts';

describe('the self-test', () => {
  let directory: string;
  before(() => {
    directory = mkdtempSync(`${tmpdir()}/forget-self-test-`);
  });
  after(() => rmSync(directory, { recursive: true }));

  test('a shell of its own writes the canary and reads it back, below any name', {
    timeout: 30_000,
  }, async () => {
    const { name, token } = newCanary();
    const odd = `${directory}/ \n%s\\n$(id)\x81\xff`;
    mkdirSync(Buffer.from(odd, 'latin1'));
    assert.equal(await testInChild(`${odd}/${name}`, token), 'held');
    assert.ok(existsSync(Buffer.from(`${odd}/${name}`, 'latin1')));
    assert.equal(await testInChild(`${odd}/none/${name}`, token), 'refused');
    assert.equal(await testInChild('/dev/full', token), 'refused');
    assert.equal(await testInChild('/dev/null', token), 'lost');
  });

  test('a canary in the lower is found, and taken away', () => {
    const lower = openSync(directory, 'r');
    writeFileSync(`${directory}/canary`, '');
    assert.equal(leakedTo(lower, 'canary'), true);
    assert.equal(leakedTo(lower, 'canary'), false);
    closeSync(lower);
  });

  test('a window holds only where the canary did, and a read-only one where it was refused', () => {
    const lower = openSync(directory, 'r');
    judge('held', false, false, lower);
    judge('refused', false, true, lower);
    for (const outcome of ['held', 'refused', 'lost', undefined] as const) {
      assert.throws(() => judge(outcome, true, false, lower), /reached the real workspace/);
      if (outcome !== 'held') assert.throws(() => judge(outcome, false, false, lower), /nothing was started/);
      if (outcome !== 'refused')
        assert.throws(() => judge(outcome, false, true, lower), /nothing was started/);
    }
    closeSync(lower);
  });
});
