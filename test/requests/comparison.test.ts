// The guard itself: it must speak up when the numbers get worse, and when they get better.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { differences, thisKernel, verdict } from './comparison.ts';

const expected = { kernel: thisKernel(), counts: { walk: { LOOKUP: 300, READ: 10 } } };

test('equal counts are no difference', () => {
  assert.deepEqual(differences('walk', expected, { READ: 10, LOOKUP: 300 }), []);
});

test('one request more fails, and says which and how to commit it', () => {
  const text = verdict('walk', differences('walk', expected, { LOOKUP: 301, READ: 10 }));
  assert.match(text, /walk:\n {2}LOOKUP: 301, 1 more than the 300 expected\nMore requests/);
});

test('an opcode that was not there fails', () => {
  const text = verdict('walk', differences('walk', expected, { LOOKUP: 300, READ: 10, OPEN: 1 }));
  assert.match(text, /OPEN: 1, 1 more than the 0 expected/);
});

test('fewer requests fail too, and ask for the new number', () => {
  const text = verdict('walk', differences('walk', expected, { LOOKUP: 300 }));
  assert.match(text, /READ: 0, 10 fewer than the 10 expected\nFewer requests.*--update/s);
});

test('another kernel is given room, and no more than that', () => {
  const other = { ...expected, kernel: '5.10' };
  assert.deepEqual(differences('walk', other, { LOOKUP: 360, READ: 25 }), []);
  assert.equal(differences('walk', other, { LOOKUP: 500, READ: 10 }).length, 1);
});
