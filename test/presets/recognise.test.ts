import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KNOWN_PRESETS } from '../../src/window/presets/known.ts';
import { recognise } from '../../src/window/presets/recognise.ts';

const timeout = 10_000;
const named = (line: string) => recognise(line.split(' '), KNOWN_PRESETS)?.preset.name;

test('an agent is recognised by the base name of its program', { timeout }, () => {
  for (const { name, programs } of KNOWN_PRESETS) {
    for (const program of programs) {
      assert.equal(named(program), name);
      assert.equal(named(`/opt/some where/bin/${program}`.replace(' ', '_')), name);
      assert.equal(named(`./node_modules/.bin/${program} --print hello`), name);
    }
  }
});

test('an agent is recognised through npx and through node, by its package', { timeout }, () => {
  for (const { name, packages = [] } of KNOWN_PRESETS) {
    for (const one of packages) {
      assert.equal(named(`npx ${one} exec`), name);
      assert.equal(named(`npx -y ${one}@1.2.3 exec`), name);
      assert.equal(named(`node --enable-source-maps /usr/lib/node_modules/${one}/dist/cli.js`), name);
      assert.equal(named(`/usr/lib/node_modules/${one}/bin/x.js`), name);
    }
  }
  assert.equal(named('node /usr/local/bin/gemini -p hello'), 'gemini');
});

test('env is looked through, and what it sets is told', { timeout }, () => {
  const found = recognise(
    ['env', '-u', 'XDG_DATA_HOME', '-i', 'CODEX_HOME=/x=y', 'A=', '/usr/bin/env', 'npx', '@openai/codex'],
    KNOWN_PRESETS,
  );
  assert.equal(found?.preset.name, 'codex');
  assert.deepEqual(
    [...found!.env],
    [
      ['CODEX_HOME', '/x=y'],
      ['A', ''],
    ],
  );
});

test('what is no agent is not taken for one', { timeout }, () => {
  for (const line of [
    ...['true', 'sh -c claude', 'claude-squad', 'xclaude', 'node claude.js', 'node', 'env', 'env A=b', 'npx'],
    ...[
      'npx left-pad claude',
      'npx @openai/codex-sdk',
      'node /x/node_modules/@openai/codex-sdk/cli.js',
      'git codex',
    ],
    ...['node /x/node_modules/openclaw/node_modules/other/cli.js', 'echo codex', 'timeout 5 claude', ''],
  ]) {
    assert.equal(named(line), undefined, line);
  }
  assert.equal(recognise([], KNOWN_PRESETS), undefined);
});

test('of two presets for one program the first one counts', { timeout }, () => {
  const own = { name: 'mine', title: 'Mine', programs: ['claude'], places: [] };
  assert.equal(recognise(['claude'], [own, ...KNOWN_PRESETS])?.preset.name, 'mine');
});

test('recognising takes less than a millisecond', { timeout }, () => {
  const line = [
    'env',
    'A=b',
    'node',
    '/usr/lib/node_modules/no-such-agent/dist/cli.js',
    ...Array(200).fill('x'),
  ];
  const times = Array.from({ length: 5 }, () => {
    const begun = performance.now();
    recognise(line, KNOWN_PRESETS);
    return performance.now() - begun;
  });
  // The least: on a busy machine any one of them may have been interrupted.
  assert.ok(Math.min(...times) < 1, `${times} ms`);
});
