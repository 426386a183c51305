import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { PAGE, renewed } from '../../scripts/presets/page.ts';
import { validateConfig } from '../../src/window/config-schema.ts';
import { KNOWN_PRESETS } from '../../src/window/presets/known.ts';

const limit = { timeout: 10_000 };

test('docs/presets.md has the table that the data gives; "npm run presets" writes it', limit, () => {
  const page = readFileSync(PAGE, 'utf8');
  assert.equal(renewed(page), page);
});

test('the example of docs/presets.md is a configuration', limit, () => {
  const [, example] = /```json\n(.*?)```/s.exec(readFileSync(PAGE, 'utf8'))!;
  const config = validateConfig(JSON.parse(example!), 'docs/presets.md');
  assert.equal(config.presets?.[0]?.places.length, 2);
});

test('a preset that forget knows would pass in a configuration too', limit, () => {
  const copy = JSON.parse(JSON.stringify(KNOWN_PRESETS));
  assert.deepEqual(validateConfig({ presets: copy }, 'x').presets, copy);
});
