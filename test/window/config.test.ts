import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { compileRules } from '../../src/overlay/rules.ts';
import { type BuiltSettings, buildSettings, type SettingsOptions } from '../../src/window/settings.ts';
import { temporaryDirectory, users } from '../harness/users.ts';

const limit = { timeout: 20_000 };
const person = users[0]!;
let top: string;
let workspace: string;
const saved = process.env.XDG_CONFIG_HOME;

beforeEach(() => {
  top = temporaryDirectory('config', person);
  workspace = join(top, 'ws');
  mkdirSync(workspace);
  process.env.XDG_CONFIG_HOME = join(top, 'xdg');
});
afterEach(() => {
  rmSync(top, { recursive: true, force: true });
  if (saved === undefined) delete process.env.XDG_CONFIG_HOME;
  else process.env.XDG_CONFIG_HOME = saved;
});

function write(path: string, text: string | object): void {
  mkdirSync(join(top, path, '..'), { recursive: true });
  writeFileSync(join(top, path), typeof text === 'string' ? text : JSON.stringify(text));
}

function build(options: Partial<SettingsOptions> = {}): Promise<BuiltSettings> {
  return buildSettings({ workspace, rules: [], ...options }, top);
}

/** Which of these names, relative to the workspace, the settings protect. */
function protectedAmong({ settings }: BuiltSettings, names: string[]): string[] {
  const rules = compileRules(settings.rules, { ignoreCase: settings.ignoreCase });
  return names.filter((name) => rules.protects(name));
}

/** The one line a bad configuration is refused with. */
async function refusal(options: Partial<SettingsOptions> = {}): Promise<string> {
  try {
    await build(options);
  } catch (error) {
    const { name, message } = error as Error;
    assert.equal(name, 'Failure', message);
    assert.ok(!message.includes('\n'), message);
    return message;
  }
  assert.fail('accepted');
}

test('without a configuration file the default rules hold', limit, async () => {
  const built = await build();
  assert.deepEqual(protectedAmong(built, ['memory/a', 'logs/b.jsonl', 'DELIVERABLES.md', 'src/a.ts']), [
    'memory/a',
    'logs/b.jsonl',
    'DELIVERABLES.md',
  ]);
  assert.deepEqual(built.notices, []);
  assert.ok(built.settings.upperSize > 0 && built.settings.upperSize <= 1024 ** 3);
});

for (const [file, text] of [
  ['.forgetrc', 'protect:\n  - "/notes/"\n  - "*.log"\n'],
  ['.forgetrc', '{\n\t"protect": ["/notes/", "*.log"]\n}'],
  ['forget.config.json', '{"protect": ["/notes/", "*.log"]}'],
  ['package.json', '{"name": "x", "forget": {"protect": ["/notes/", "*.log"]}}'],
] as const) {
  test(
    `${file} beginning with ${JSON.stringify(text.slice(0, 8))} adds to the default rules`,
    limit,
    async () => {
      write(`ws/${file}`, text);
      const built = await build();
      assert.deepEqual(protectedAmong(built, ['notes/a', 'deep/x.log', 'memory/a', 'src/a.ts']), [
        'notes/a',
        'deep/x.log',
        'memory/a',
      ]);
      assert.ok(built.settings.configFiles.includes(`${built.settings.workspace}/${file}`));
    },
  );
}

const filesIn = (workspace: string) =>
  ['.forgetrc', 'forget.config.json'].map((name) => `${workspace}/${name}`);

test('a package.json without rules stays writable inside, and costs no schema', limit, async () => {
  write('ws/package.json', { name: 'x', dependencies: { forget: '1' } });
  const { settings } = await build();
  assert.deepEqual(settings.configFiles, filesIn(settings.workspace));
});

test('without a configuration file neither zod nor yaml is loaded', limit, () => {
  const script = `
    const { buildSettings } = await import(${JSON.stringify(new URL('../../src/window/settings.ts', import.meta.url).href)});
    await buildSettings({ workspace: ${JSON.stringify(workspace)}, rules: [] }, '/');
    const { createRequire } = await import('node:module');
    const cached = Object.keys(createRequire(import.meta.url).cache);
    console.log(cached.filter((name) => /node_modules.(zod|yaml)/.test(name)).length);
  `;
  const out = execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
    encoding: 'utf8',
  });
  assert.equal(out.trim(), '0');
});

test('a workspace may protect more and not less, and what was ignored is said', limit, async () => {
  write('ws/.forgetrc', {
    protect: ['/notes/', '!DELIVERABLES.md'],
    exempt: ['/memory/'],
    defaults: false,
    ignoreCase: true,
    quiet: true,
    upperSize: '1T',
    readonly: true,
    hide: true,
  });
  const built = await build();
  assert.deepEqual(protectedAmong(built, ['notes/a', 'memory/a', 'DELIVERABLES.md', 'MEMORY/x']), [
    'notes/a',
    'memory/a',
    'DELIVERABLES.md',
  ]);
  const { settings, notices } = built;
  assert.deepEqual(
    [settings.readonly, settings.hide, settings.quiet, settings.ignoreCase],
    [true, true, false, false],
  );
  assert.ok(settings.upperSize <= 1024 ** 3);
  for (const what of [
    '!DELIVERABLES.md',
    '/memory/',
    'defaults: false',
    'ignoreCase',
    'quiet',
    'upperSize',
  ]) {
    assert.ok(
      notices.some((line) => line.startsWith('.forgetrc: ignored') && line.includes(what)),
      `${what} is not in:\n${notices.join('\n')}`,
    );
  }
});

test("the person's own configuration may exempt, and leave out the defaults", limit, async () => {
  write('xdg/forget/config.yaml', 'exempt: ["train.jsonl"]\nignoreCase: true\nupperSize: 64M\nquiet: true\n');
  const built = await build();
  assert.deepEqual(protectedAmong(built, ['train.jsonl', 'log.JSONL']), ['log.JSONL']);
  assert.deepEqual([built.settings.upperSize, built.settings.quiet], [64 * 1024 ** 2, true]);
  assert.deepEqual(built.notices, []);

  write('xdg/forget/config.yaml', 'defaults: false\n');
  assert.deepEqual(protectedAmong(await build(), ['memory/a', 'b.jsonl']), []);
});

test(
  "a workspace protects again what the person's configuration exempts, and an option has the last word",
  limit,
  async () => {
    write('xdg/forget/config.json', { exempt: ['*.jsonl'] });
    write('ws/.forgetrc', { protect: ['s.jsonl'] });
    assert.deepEqual(protectedAmong(await build(), ['s.jsonl', 'b.jsonl']), ['s.jsonl']);
    const rules = [{ pattern: '*.jsonl', exempt: true, source: '--exempt' }];
    assert.deepEqual(protectedAmong(await build({ rules }), ['s.jsonl', 'b.jsonl']), []);
  },
);

test('--config is read in place of all others and may exempt; --no-config reads none', limit, async () => {
  write('ws/.forgetrc', { protect: ['/notes/'] });
  write('mine.yaml', 'exempt: ["/memory/"]');
  assert.deepEqual(protectedAmong(await build({ config: 'mine.yaml' }), ['notes/a', 'memory/a', 'b.jsonl']), [
    'b.jsonl',
  ]);
  assert.deepEqual(protectedAmong(await build({ config: false }), ['notes/a', 'memory/a']), ['memory/a']);
  assert.match(await refusal({ config: 'absent.yaml' }), /^absent\.yaml: no such configuration file/);
});

test(
  'in a part of a repository the configuration at its root holds, with patterns relative to that root',
  limit,
  async () => {
    mkdirSync(join(workspace, '.git'));
    mkdirSync(join(workspace, 'sub'));
    write('ws/.forgetrc', {
      protect: ['/sub/notes/', '/top/', 'any.txt', '/s*/**/x.md', '{sub,other}/both/'],
    });
    const built = await build({ workspace: join(workspace, 'sub') });
    assert.deepEqual(
      protectedAmong(built, ['notes/a', 'top/a', 'd/any.txt', 'd/x.md', 'both/a', 'sub/notes/a', 'code.ts']),
      ['notes/a', 'd/any.txt', 'd/x.md', 'both/a'],
    );
    assert.deepEqual(built.settings.configFiles, [
      ...filesIn(built.settings.workspace),
      `${workspace}/.forgetrc`,
    ]);

    write('ws/sub/.forgetrc', { protect: ['/own/'] });
    assert.deepEqual(
      protectedAmong(await build({ workspace: join(workspace, 'sub') }), ['notes/a', 'own/a']),
      ['own/a'],
    );
  },
);

test('a rule that covers the whole workspace from above protects all of it', limit, async () => {
  mkdirSync(join(workspace, '.git'));
  mkdirSync(join(workspace, 'sub'));
  write('ws/.forgetrc', { protect: ['/sub/'] });
  assert.deepEqual(protectedAmong(await build({ workspace: join(workspace, 'sub') }), ['a', 'b/c']), [
    'a',
    'b/c',
  ]);
});

test('a configuration above the workspace and outside its repository is not read', limit, async () => {
  write('.forgetrc', { protect: ['/notes/'] });
  assert.deepEqual(protectedAmong(await build(), ['notes/a']), []);
});

test('a bad configuration names its file, the key and what is allowed', limit, async () => {
  const cases: [string, RegExp][] = [
    ['{"protect": "memory"}', /^\.forgetrc: protect is wrong; protect must be a list of globs/],
    ['{"protect": ["a", 7]}', /^\.forgetrc: protect\[1\] is wrong/],
    ['{"protect": [""]}', /^\.forgetrc: protect\[0\] is wrong/],
    ['{"hide": "yes"}', /^\.forgetrc: hide is wrong; hide must be true or false/],
    ['{"protekt": []}', /^\.forgetrc: "protekt" is not a key; allowed are protect, exempt/],
    ['{"upperSize": "10Q"}', /^\.forgetrc: upperSize: "10Q" is not a size/],
    ['{"upperSize": 0}', /^\.forgetrc: upperSize: "0" is too small/],
    ['just words', /^\.forgetrc: must be a map with the keys/],
    ['protect:\n  - *.jsonl\n', /^\.forgetrc: is not YAML: .*quotes/],
    ['protect: [!x]\n', /^\.forgetrc: is not YAML: .*quotes/],
    ['protect: [a\n', /^\.forgetrc: is not YAML/],
    ['protect: !!js/function "x"\n', /^\.forgetrc: is not YAML/],
    ['hide: true\nhide: false\n', /^\.forgetrc: is not YAML: Map keys must be unique/],
  ];
  for (const [text, expected] of cases) {
    write('ws/.forgetrc', text);
    assert.match(await refusal(), expected, text);
  }
  write('ws/.forgetrc', '# nothing yet\n');
  await build();
});

test(
  'a file that is no ordinary, bounded, UTF-8 file is refused, and a fifo does not make forget wait',
  limit,
  async () => {
    const at = join(workspace, '.forgetrc');
    writeFileSync(join(top, 'elsewhere'), 'protect: []\n');
    symlinkSync('../elsewhere', at);
    assert.match(await refusal(), /^\.forgetrc: is a symbolic link/);
    rmSync(at);
    execFileSync('mkfifo', [at]);
    assert.match(await refusal(), /^\.forgetrc: is not an ordinary file/);
    rmSync(at);
    mkdirSync(at);
    assert.match(await refusal(), /^\.forgetrc: is not an ordinary file/);
    rmSync(at, { recursive: true });
    writeFileSync(at, `protect: [${'x'.repeat(2 * 1024 * 1024)}]`);
    assert.match(await refusal(), /^\.forgetrc: is larger than 1 MiB/);
    writeFileSync(at, Buffer.from('protect: ["\xff"]', 'latin1'));
    assert.match(await refusal(), /^\.forgetrc: is not UTF-8/);
  },
);

test('two configurations side by side are refused, both named', limit, async () => {
  write('ws/.forgetrc', { protect: ['a'] });
  write('ws/package.json', { forget: { protect: ['b'] } });
  assert.match(await refusal(), /^two configurations, \.forgetrc and package\.json#forget/);
});

test("the person's own configuration is read-only inside when the workspace holds it", limit, async () => {
  write('xdg/forget/config.json', { protect: ['a'] });
  const { settings } = await build({ workspace: top });
  assert.ok(settings.configFiles.includes(`${settings.workspace}/xdg/forget/config.json`));
});
