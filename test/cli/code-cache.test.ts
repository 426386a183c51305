import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { compileBundle } from '../../src/sys/bundle.ts';
import { checkout } from '../harness/users.ts';

/** All functions take 1.4 MB, those that a window calls 0.8. */
const WHOLE = 1_200_000;

test('V8 takes the compilation that the build leaves, which is of what a window calls', {
  timeout: 30_000,
}, () => {
  const bundle = join(checkout, 'dist/main.cjs');
  const cache = readFileSync(`${bundle}.cache`);
  assert.equal(compileBundle(bundle, cache).cachedDataRejected, false);
  assert.ok(cache.length < WHOLE, `${cache.length} bytes: no window could be opened during the build`);
});
