import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { KNOWN_PRESETS } from '../../src/window/presets/known.ts';
import type { ShownPreset } from '../../src/window/presets/show.ts';
import { environmentOf, forgetFor, ORDINARY_ID, temporaryDirectory, users } from '../harness/users.ts';

const limit = { timeout: 60_000 };
const user = users[0]!;
let home: string;
let workspace: string;

beforeEach(() => {
  home = temporaryDirectory('choice', user);
  workspace = join(home, 'work');
  mkdirSync(workspace);
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

function forget(args: readonly string[], env: Record<string, string> = {}) {
  return spawnSync(forgetFor(user), args, {
    cwd: workspace,
    env: environmentOf(user, { HOME: home, XDG_CONFIG_HOME: '', ...env }),
    encoding: 'utf8',
    timeout: 30_000,
  });
}

function configure(config: object): void {
  mkdirSync(join(home, '.config/forget'), { recursive: true });
  writeFileSync(join(home, '.config/forget/config.json'), JSON.stringify(config));
}

function shown(args: readonly string[], env: Record<string, string> = {}): ShownPreset[] {
  const { stdout, stderr } = forget(['presets', '--json', ...args], env);
  assert.equal(stderr, '');
  return JSON.parse(stdout) as ShownPreset[];
}

const own = {
  name: 'diary-bot',
  title: 'Diary bot',
  programs: ['diary'],
  places: [{ directory: '${DIARY_HOME:-~/.diary}', rules: ['/*', '!/settings.toml'] }],
  workspace: { rules: ['/diary.md'] },
};

test('forget presets shows what is covered here and now', limit, () => {
  assert.deepEqual(
    shown([]).map(({ name }) => name),
    KNOWN_PRESETS.map(({ name }) => name),
  );
  const [codex] = shown(['codex'], { CODEX_HOME: '/srv/codex', CODEX_SQLITE_HOME: 'databases' });
  assert.deepEqual(
    codex?.covers.map(({ directory }) => directory),
    ['/srv/codex', join(workspace, 'databases')],
  );
  assert.ok(codex?.covers[0]?.rules.includes('!/auth.json'));
  assert.ok(codex.sources.length > 0 && codex.sources.every(({ date }) => date !== undefined));
  const [claude] = shown(['claude+config']);
  assert.deepEqual(claude?.covers.at(-1), { directory: home, rules: ['/.claude.json'] });
  assert.deepEqual(
    claude?.parts.map(({ name, chosen }) => [name, chosen]),
    [['config', true]],
  );
  const text = forget(['presets', 'claude']).stdout;
  for (const part of [`${home}/.claude`, '!/settings.json', 'claude+config', '2026-', '.credentials.json'])
    assert.ok(text.includes(part), part);
  assert.match(forget(['presets']).stdout, /^codex +Codex: ~\/\.codex$/m);
});

test('a preset or a part that is not known is one line with those that are', limit, () => {
  for (const args of [
    ['presets', 'claud'],
    ['exec', '--agent', 'claud', '--', 'true'],
    ['mount', '--agent', 'claud', workspace],
  ]) {
    const { status, stdout, stderr } = forget(args);
    assert.equal(status, 125);
    assert.equal(stdout, '');
    assert.match(
      stderr,
      /^forget: no preset "claud" \(did you mean claude\?\); known are claude, codex, .*\n$/,
    );
  }
  const meant = (name: string) => /did you mean ([a-z]+)\?/.exec(forget(['presets', name]).stderr)?.[1];
  assert.equal(meant('cursor-agent'), 'cursor');
  assert.equal(meant('Claude Code'), 'claude');
  assert.equal(meant('opncode'), 'opencode');
  assert.equal(meant('xyzzy'), undefined);
  assert.match(
    forget(['presets', 'openclaw+databases']).stderr,
    /has no part "databases"; it has real-databases\n$/,
  );
  assert.match(forget(['presets', 'pi+x']).stderr, /has no part "x"; it has none\n$/);
  assert.match(
    forget(['exec', '--agent', 'none', '--agent', 'pi', '--', 'true']).stderr,
    /none stands alone/,
  );
});

test('exec says what it covers, and --agent and --quiet change that', limit, () => {
  mkdirSync(join(home, 'bin'));
  for (const name of ['pi', 'openclaw'])
    writeFileSync(join(home, 'bin', name), '#!/bin/sh\n', { mode: 0o755 });
  const lines = (...args: string[]) =>
    forget(['exec', ...args])
      .stderr.split('\n')
      .filter(Boolean);
  assert.deepEqual(lines('--', join(home, 'bin/pi')), [
    'forget: covering pi: ~/.pi/agent; "forget presets pi" says what is forgotten there and what stays',
  ]);
  const claw = lines('--', join(home, 'bin/openclaw'));
  assert.equal(claw.length, 2);
  assert.match(claw[1]!, /sign-ins .* --agent openclaw\+real-databases changes that$/);
  assert.equal(lines('--agent', 'openclaw+real-databases', '--', join(home, 'bin/openclaw')).length, 1);
  assert.deepEqual(lines('--quiet', '--', join(home, 'bin/pi')), []);
  assert.deepEqual(lines('--agent', 'none', '--', join(home, 'bin/pi')), []);
  assert.deepEqual(lines('--', 'true'), []);
  assert.deepEqual(
    lines('--agent', 'pi', '--agent', 'mem0', '--', 'true').map((line) => /covering (\S+):/.exec(line)?.[1]),
    ['pi', 'mem0'],
  );
});

test("a person's own preset is recognised, shown, and holds", limit, () => {
  configure({ presets: [own] });
  mkdirSync(join(home, 'bin'));
  const program = join(home, 'bin/diary');
  writeFileSync(program, '#!/bin/sh\nfor f; do echo "dear diary" > "$f"; done\n', { mode: 0o755 });
  mkdirSync(join(home, '.diary'));
  const written = ['.diary/2026.txt', '.diary/settings.toml', 'work/diary.md', 'work/other.md'];
  const { status, stderr } = forget(['exec', '--', program, ...written.map((path) => join(home, path))]);
  assert.equal(status, 0, stderr);
  assert.match(stderr, /^forget: covering Diary bot: ~\/\.diary, the workspace; /);
  const real = spawnSync('find', ['.', '-name', '*.t*', '-o', '-name', '*.md'], {
    cwd: home,
    encoding: 'utf8',
  });
  assert.deepEqual(real.stdout.split('\n').filter(Boolean).sort(), [
    './.diary/settings.toml',
    './work/other.md',
  ]);
  const [mine] = shown(['diary-bot'], { DIARY_HOME: '/d' });
  assert.equal(mine?.own, true);
  assert.deepEqual(mine?.covers, [{ directory: '/d', rules: ['/*', '!/settings.toml'] }]);
  assert.equal(shown([])[0]?.name, 'diary-bot');
});

test('a place in a directory that all share is made, closed to others, and alone is covered', limit, () => {
  const shared = join(home, 'shared');
  const place = join(shared, 'diary');
  mkdirSync(shared);
  const otherwise = `${shared}/diary-$UID`;
  configure({ presets: [{ ...own, places: [{ directory: place, rules: ['/*'], make: true, otherwise }] }] });
  const write = (): string => {
    const script = `for d in ${place}*; do echo quince > $d/log; done; grep -o ' ${shared}[^ ]*' /proc/self/mountinfo`;
    const { stdout, stderr } = forget(['exec', '--agent', 'diary-bot', '--', 'sh', '-c', script]);
    assert.match(stderr, /^forget: covering Diary bot: /m);
    return stdout.trim();
  };
  assert.equal(write(), place);
  assert.deepEqual(readdirSync(place), []);
  assert.equal(statSync(place).mode & 0o777, 0o700);
  assert.equal(write(), place);
  assert.deepEqual(readdirSync(place), []);
  if (user !== 'root') return;
  chownSync(place, ORDINARY_ID, ORDINARY_ID);
  assert.equal(write(), `${place}-0`, "another user's is not covered, but what is taken in its place");
  assert.deepEqual([readdirSync(place), readdirSync(`${place}-0`)], [['log'], []]);
  chownSync(`${place}-0`, ORDINARY_ID, ORDINARY_ID);
  assert.equal(write(), '', 'both are');
});

test('a preset of the same name stands in the place of the one that is known', limit, () => {
  configure({ presets: [{ ...own, name: 'pi' }] });
  const all = shown([]);
  assert.equal(all.length, KNOWN_PRESETS.length);
  assert.equal(all.find(({ name }) => name === 'pi')?.title, 'Diary bot');
});

test('parts of the configuration are always chosen', limit, () => {
  configure({ parts: { openclaw: ['real-databases'] } });
  const [openclaw] = shown(['openclaw']);
  assert.ok(openclaw?.parts[0]?.chosen);
  assert.ok(openclaw.covers[0]?.rules.includes('!/state/openclaw*.sqlite*'));
  configure({ parts: { opencla: ['real-databases'] } });
  assert.match(forget(['exec', '--', 'true']).stderr, /no preset "opencla" \(did you mean openclaw\?\)/);
});

test('a preset that is none is refused, with its place in the file', limit, () => {
  const refusal = (preset: object) => {
    configure({ presets: [preset] });
    const { status, stderr } = forget(['exec', '--agent', 'diary-bot', '--', 'true']);
    assert.equal(status, 125, stderr);
    return stderr;
  };
  assert.match(
    refusal({ ...own, programs: 'diary' }),
    /config\.json: presets\[0\]\.programs is wrong; .*docs\/presets\.md/,
  );
  assert.match(refusal({ ...own, name: 'none' }), /presets\[0\]\.name is wrong/);
  assert.match(refusal({ ...own, program: ['x'] }), /presets\[0\]\.program is not known there/);
  assert.match(
    refusal({ ...own, places: [{ directory: '~', file: '~/x' }] }),
    /presets\[0\]\.places\[0\] is wrong/,
  );
  assert.match(refusal({ ...own, places: [{ directory: '~/x' }] }), /presets\[0\]\.places\[0\] is wrong/);
  assert.match(
    refusal({ ...own, places: [{ file: '~/x', make: true }] }),
    /presets\[0\]\.places\[0\] is wrong/,
  );
  assert.match(
    refusal({ ...own, places: [{ directory: '~/x', rules: ['/*'], otherwise: '/y' }] }),
    /presets\[0\]\.places\[0\] is wrong/,
  );
  assert.match(
    refusal({ ...own, places: [{ file: '${X' }] }),
    /^forget: preset diary-bot: "\$\{X" is no path/,
  );
  assert.match(
    refusal({ ...own, places: [{ directory: '~/x', rules: ['{1..3}'] }] }),
    /preset diary-bot: the pattern "\{1\.\.3\}" cannot be used/,
  );
});

test("a workspace's presets and parts are ignored, and that is said", limit, () => {
  writeFileSync(
    join(workspace, '.forgetrc'),
    JSON.stringify({ presets: [{ ...own, programs: ['true'] }], parts: { openclaw: ['real-databases'] } }),
  );
  const { status, stderr } = forget(['exec', '--quiet', '--', 'true']);
  assert.equal(status, 0);
  assert.match(stderr, /^forget: \.forgetrc: ignored presets: /m);
  assert.match(stderr, /^forget: \.forgetrc: ignored parts: /m);
  assert.doesNotMatch(stderr, /covering/);
  assert.match(forget(['exec', '--agent', 'diary-bot', '--', 'true']).stderr, /no preset "diary-bot"/);
});
