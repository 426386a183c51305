import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import {
  compileRules,
  DEFAULT_RULES,
  RuleError,
  type RuleLine,
  type Rules,
} from '../../src/overlay/rules.ts';
import { bytesOf } from '../../src/sys/bytes.ts';

const timeout = 30_000;

/** Rules from gitignore text as a person writes it. */
function rulesOf(text: string, options: { ignoreCase?: boolean } = {}): Rules {
  return compileRules(
    text.split('\n').map((pattern) => ({ pattern, exempt: false, source: '.forgetrc' })),
    options,
  );
}

function withDefaults(...patterns: string[]): Rules {
  return compileRules([
    ...DEFAULT_RULES,
    ...patterns.map((pattern) => ({ pattern, exempt: false, source: '--protect' })),
  ]);
}

/** A list written as text. */
function words(text: string): string[] {
  return text.split(/\s+/).filter(Boolean);
}

function expectVerdicts(rules: Rules, protectedPaths: string[], unprotectedPaths: string[]): void {
  const wrong = [
    ...protectedPaths.filter((path) => !rules.protects(bytesOf(path))).map((path) => ({ leaks: path })),
    ...unprotectedPaths.filter((path) => rules.protects(bytesOf(path))).map((path) => ({ swallows: path })),
  ];
  assert.deepEqual(wrong, []);
}

describe('the default rules', { timeout }, () => {
  const defaults = compileRules(DEFAULT_RULES);

  test('protect memory, session logs and deliverables, and leave source code alone', () => {
    expectVerdicts(
      defaults,
      words('memory memory/a memory/.h/a memory/a/b/c.py a.jsonl logs/b.jsonl .x.jsonl .jsonl').concat([
        'DELIVERABLES.md',
        'docs/DELIVERABLES.md',
        'MEMORY.md',
        'run.jsonl/part-1',
        'MEMORY.md/x',
      ]),
      [
        '',
        'src/memory/x.py',
        'memory.py',
        'memory2/a',
        'memories/a',
        'docs/MEMORY.md',
        'MEMORY/x.md',
        'a.JSONL',
      ].concat(['a.json', 'jsonl', 'jsonl/a', 'deliverables.md', 'src/index.ts', 'xmemory', 'MEMORY.mdx']),
    );
  });

  test('protect names with a newline, and names that are not UTF-8', () => {
    for (const path of ['memory/a\nb', 'dir\nx/y.jsonl', 'a\nb.jsonl', '\n/DELIVERABLES.md']) {
      assert.equal(defaults.protects(path), true, JSON.stringify(path));
    }
    assert.equal(defaults.protects('\xff.jsonl'), true);
    assert.equal(defaults.protects('memory/\xfe\xff'), true);
    assert.equal(defaults.protects('\xff\xfe/\x80.jsonl.tmp'), true);
    assert.equal(defaults.protects('\xff.json'), false);
  });

  test('never tear a repository: nothing inside .git is protected, however deep the repository stands', () => {
    expectVerdicts(
      defaults,
      [],
      words(
        '.git .git/refs/heads/x.jsonl .git/logs/refs/heads/x.jsonl vendor/lib/.git/x.jsonl .git/memory/a',
      ).concat(['.git/refs/heads/x.jsonl.lock', '.git/modules/a/.git/b.jsonl', '.git/DELIVERABLES.md']),
    );
  });

  test('treat .git inside a protected directory as part of it', () => {
    expectVerdicts(
      defaults,
      ['memory/.git', 'memory/.git/config', 'memory/sub/.git/refs/heads/main', 'x.jsonl/.git/HEAD'],
      [],
    );
  });
});

describe('the guard on .git', { timeout }, () => {
  test('holds against rules that came later and do not name .git', () => {
    expectVerdicts(
      withDefaults('*.md', 'memory/', '/docs/'),
      ['a.md', 'src/memory/x', 'docs/.git/HEAD'],
      ['.git/refs/heads/a.md', 'lib/.git/refs/heads/a.md', '.git/memory/x', '.git/refs/heads/a.md.lock'],
    );
  });

  test('gives way to a rule that names .git, wherever other rules stand', () => {
    expectVerdicts(
      withDefaults('.git/hooks/', '*.md'),
      ['.git/hooks/pre-commit', '.git/hooks/a.md'],
      ['.git/refs/a.md', '.git/config'],
    );
    expectVerdicts(withDefaults('**/.git/'), ['.git', '.git/config', 'a/.git/x'], ['.gitignore']);
  });

  test('does not undo an exemption inside a protected directory, nor stop one', () => {
    expectVerdicts(withDefaults('!/memory/.git/'), ['memory/a'], ['memory/.git/config']);
    expectVerdicts(withDefaults('!/memory/.git/x/', '*.md'), ['memory/.git/x/a.md'], ['memory/.git/x/a']);
  });

  test('is no part of rules without the default line', () => {
    expectVerdicts(rulesOf('*.jsonl'), ['.git/refs/heads/x.jsonl'], []);
  });
});

describe('gitignore syntax', { timeout }, () => {
  const table: [name: string, patterns: string, yes: string[], no: string[]][] = [
    [
      'a trailing slash protects the name and all below',
      'memory/',
      ['memory', 'memory/a', 'src/memory/b'],
      ['memo'],
    ],
    ['a pattern without a slash matches at any depth', '*.log', ['a.log', 'x/y/a.log'], ['a.logs', 'log']],
    ['a leading slash anchors', '/a.txt', ['a.txt'], ['x/a.txt']],
    [
      'a slash in the middle anchors',
      'docs/a.txt',
      ['docs/a.txt', 'docs/a.txt/b'],
      ['x/docs/a.txt', 'a.txt'],
    ],
    [
      'X/** protects X itself too, since X may be made again',
      'memory/**',
      ['memory', 'memory/.h/a'],
      ['x/memory/a'],
    ],
    [
      'a leading ** matches at any depth',
      '**/memory/**',
      ['memory/a', 'x/y/memory/a', 'memory'],
      ['memoryx/a'],
    ],
    [
      '** in the middle matches no and many directories',
      'a/**/b',
      ['a/b', 'a/x/b', 'a/x/.y/b/c'],
      ['a/xb', 'x/a/b', 'ab'],
    ],
    ['** beside other characters is one star', 'a**b', ['ab', 'axb', 'x/axxb'], ['a/b', 'ax/b']],
    ['* does not cross a slash', 'a/*/b', ['a/x/b'], ['a/b', 'a/x/y/b']],
    ['* matches hidden names', 'a/*', ['a/.h', 'a/.h/x', 'a/x'], ['a']],
    ['? is one character', 'a?c', ['abc', 'aéc', 'a日c', 'a\nc'], ['ac', 'abbc', 'a/c']],
    ['[...] is one of a set', 'x[a-c1]', ['xa', 'xc', 'x1'], ['x', 'xd', 'x-', 'xaa']],
    [
      '[!...] and [^...] are one of the rest',
      'x[!a]\ny[^b]',
      ['xb', 'x]', 'ya', 'xé'],
      ['xa', 'yb', 'x', 'x/'],
    ],
    ['a class holds characters, not bytes', '[éа-в]x', ['éx', 'бx'], ['gx', '\u00c3x', 'дx']],
    ['] may come first in a class', '[]x]', [']', 'x'], ['[', '[]x]']],
    ['POSIX classes are known', 'n[[:digit:]_]', ['n1', 'n_'], ['nd', 'n:']],
    [
      'a backslash takes the special meaning',
      '\\*.c\na\\?b\n\\[x]',
      ['*.c', 'a?b', '[x]'],
      ['a.c', 'axb', 'x'],
    ],
    ['a backslash before a letter is nothing', '\\d\\w*', ['dw', 'dwx'], ['1a', '\\d\\w']],
    ['\\# and \\! are the characters', '\\#a\n\\!b', ['#a', '!b'], ['a', 'b']],
    ['comments and blank lines are no rules', '# a\n\n   \n#b', [], ['a', '# a', '#b', 'b', ' ']],
    [
      'trailing spaces go, escaped ones stay',
      'a   \nb\\ \nc\\  ',
      ['a', 'b ', 'c '],
      ['a ', 'b', 'c', 'c  '],
    ],
    ['leading spaces stay', ' a', [' a'], ['a']],
    ['the carriage return of a CRLF file goes', 'memory/\r\n*.log\r', ['memory/a', 'a.log'], ['a.log\r']],
    [
      'names with regular expression characters are names',
      'a+b(c).$x^|y',
      ['a+b(c).$x^|y'],
      ['aab(c).$x^|y', 'aabc'],
    ],
    ['names with quotes and dollar signs are names', '"q"*\n$(x)\n@a', ['"q"z', '$(x)', '@a'], ['qz', 'a']],
    ['./ is the root, and repeated slashes are one', './a\nb//c', ['a', 'b/c'], ['x/a', 'c']],
    ['* alone and ** alone protect everything', '**', ['a', '.h', 'a/b'], ['']],
    [
      'matching is case-sensitive',
      'Memory/\n*.Jsonl',
      ['Memory/a', 'a.Jsonl'],
      ['memory/a', 'a.jsonl', 'MEMORY/a'],
    ],
    [
      'the last match wins',
      '*.log\n!keep.log\n/x/keep.log',
      ['a.log', 'x/keep.log'],
      ['keep.log', 'y/keep.log'],
    ],
    [
      'an exemption reaches into a protected directory',
      '/m/\n!/m/pub/\n/m/pub/x',
      ['m/a', 'm/pub/x'],
      ['m/pub', 'm/pub/y'],
    ],
    ['a later rule takes an exemption back', '!*.log\n*.log', ['a.log'], []],
    [
      'a rule inside an exempted directory must come later',
      '*.log\n!/d/',
      ['a.log', 'x/d/a.log'],
      ['d/a.log', 'd/x/a.log'],
    ],
    ['braces are a list', '*.{db,sqlite{,3}}', ['a.db', 'x/a.sqlite', 'a.sqlite3'], ['a.d', 'a.{db,sqlite}']],
    [
      'braces without a comma, or escaped, are characters',
      '{a}\n\\{b,c\\}\n{}',
      ['{a}', '{b,c}', '{}'],
      ['a', 'b', 'c'],
    ],
    [
      'non-ASCII patterns match the bytes of their UTF-8',
      'größe/*.日本',
      ['größe/a.日本'],
      ['grösse/a.日本'],
    ],
  ];
  for (const [name, patterns, yes, no] of table) {
    test(name, () => expectVerdicts(rulesOf(patterns), yes, no));
  }

  test('agrees with git check-ignore on random patterns and paths', () => {
    const random = seeded(20_260_801);
    const atoms = [
      'a',
      'b',
      'ab',
      '*',
      '?',
      '[ab]',
      '[!a]',
      '[^b]',
      '[a-c]',
      '\\*',
      '\\a',
      '.',
      '+',
      '(',
      ')',
      '$',
      '@',
    ].concat(['**', '[[:alpha:]]', '"', '~', '[]a]', '\\[', ' x', '{', '\\d', '!']);
    const names = words('a b c ab abc a.b .a * d (a) $ a+ @b " ~a ] [ab]')
      .concat(['a x', '{a', '!a', '.', '1', 'a\nb', '\n'])
      .filter((name) => name !== '.');
    const directory = mkdtempSync(join(tmpdir(), 'forget-rules-'));
    try {
      execFileSync('git', ['init', '-q', directory]);
      for (let round = 0; round < 120; round++) {
        const segments = Array.from({ length: 1 + random(3) }, () =>
          random(4) === 0
            ? '**'
            : Array.from({ length: 1 + random(3) }, () => atoms[random(atoms.length)]).join(''),
        );
        const pattern = (random(3) === 0 ? '/' : '') + segments.join('/');
        // What rules.ts says is not git's: `X/**` is X too, `.` as a segment is dropped, `~/` is refused.
        if (/^(?:!|~\/|~$)|(?:^|\/)\*\*$|(?:^|\/)\.{1,2}(?:\/|$)/.test(pattern)) continue;
        const rules = rulesOf(pattern);
        writeFileSync(join(directory, '.gitignore'), `${pattern}\n`);
        const paths = Array.from({ length: 60 }, () =>
          Array.from({ length: 1 + random(4) }, () => names[random(names.length)]).join('/'),
        );
        const ignored = new Set(checkIgnore(directory, paths));
        const ours = paths.filter((path) => rules.protects(bytesOf(path)));
        assert.deepEqual(new Set(ours), ignored, `pattern ${JSON.stringify(pattern)}`);
      }
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});

test('ignoreCase folds whole characters, in patterns and in paths', { timeout }, () => {
  const rules = compileRules(
    [...DEFAULT_RULES, { pattern: 'ÉTÉ[A-C]*.TXT', exempt: false, source: '--protect' }],
    {
      ignoreCase: true,
    },
  );
  expectVerdicts(
    rules,
    ['MEMORY/x.md', 'a.JSONL', 'Deliverables.MD', 'memory.md', 'étéb.txt', 'x/ÉTÉB9.Txt', 'a.JSONL.TMP'],
    ['ãtãb.txt', '.GIT/refs/heads/x.jsonl', 'src/MEMORY/x'],
  );
  assert.equal(rules.protects('\xff\xc9.JSONL'), true, 'a name that is not UTF-8');
});

describe('a pattern that cannot be a rule', { timeout }, () => {
  const table: [pattern: string, advice: RegExp][] = [
    ['', /write a path or a glob/],
    ['   ', /write a path or a glob/],
    ['/', /write a name/],
    ['//', /write a name/],
    ['!', /write a name/],
    ['./', /write a name/],
    ['../x', /leads out of the root/],
    ['a/../b', /leads out of the root/],
    ['[abc', /write `\\\[`/],
    ['a[]', /write `\\\[`/],
    ['[b-a]', /lower end first/],
    ['[[:nope:]]', /unknown class/],
    ['a\\', /write `\\\\`/],
    ['a\0b', /NUL/],
    ['~/memory', /relative to the root/],
    ['/home/me/work/memory', /relative to/],
    ['*.@(db|sqlite)', /one pattern for each/],
    ['(a|b)', /one pattern for each/],
    ['file{1..3}', /write `\[a-b\]`/],
    ['#notes', /write `\\#`/],
    [`${'{a,b}'.repeat(10)}`, /more than 256/],
    ['a/'.repeat(40), /more than 30 parts/],
  ];
  for (const [pattern, advice] of table) {
    test(`${JSON.stringify(pattern.slice(0, 30))} is refused, with its source and what to write`, () => {
      const line: RuleLine = { pattern, exempt: false, source: '--protect' };
      assert.throws(
        () => compileRules([...DEFAULT_RULES, line]),
        (error) => {
          assert.ok(error instanceof RuleError);
          assert.equal(error.pattern, pattern);
          assert.equal(error.source, '--protect');
          assert.match(error.message, /^--protect: /);
          assert.match(error.message, advice);
          return true;
        },
      );
    });
  }
});

test('an exemption is the same as a line with `!`, and as one with both', { timeout }, () => {
  for (const [pattern, exempt] of [
    ['!keep.jsonl', false],
    ['keep.jsonl', true],
    ['!keep.jsonl', true],
  ] as const) {
    const rules = compileRules([...DEFAULT_RULES, { pattern, exempt, source: '--exempt' }]);
    expectVerdicts(rules, ['a.jsonl'], ['keep.jsonl']);
  }
});

describe('moving a directory', { timeout }, () => {
  const table: [name: string, patterns: string, from: string, to: string, may: boolean][] = [
    ['between unprotected places', '', 'src', 'lib', false],
    ['deep between unprotected places', '', 'a/b/c', 'x', false],
    ['out of a protected directory', '', 'memory/a', 'src', true],
    ['into a protected directory', '', 'src', 'memory/a', true],
    ['onto a protected name', '', 'src', 'memory', true],
    ['within a protected directory', '', 'memory/a', 'memory/b/c', false],
    ['between two protected directories', '/other/', 'memory/a', 'other/a', false],
    ['that is a repository', '', 'repo', 'vendor/repo', false],
    ['out of .git', '', '.git/x', 'x', true],
    ['that becomes a .git', '', 'git', 'x/.git', true],
    ['that is .git and stays one', '', 'a/.git', 'b/.git', false],
    ['to where an anchored pattern could match below', '/docs/notes/*.md', 'src', 'docs', true],
    ['to where an anchored pattern could match deeper', '/docs/notes/*.md', 'src', 'docs/notes', true],
    ['below what an anchored pattern reaches', '/docs/*.md', 'src', 'docs/notes', false],
    ['beside what an anchored pattern reaches', '/docs/notes/*.md', 'src', 'doc/notes', false],
    ['to a name that begins a floating pattern', '**/a/b', 'x', 'y/a', true],
    ['that keeps the name that begins a floating pattern', '**/a/b', 'x/a', 'y/a', false],
    ['within the reach of an anchored **', '/d/**/x', 'd/a', 'd/b/c', false],
    ['out of the reach of an anchored **', '/d/**/x', 'd/a', 'e', true],
    ['out of an exempted directory', '!/pub/', 'pub/a', 'a', true],
    ['out of an exempted place in a protected directory', '!/memory/pub/', 'memory/pub', 'src', true],
    ['to a protected directory that has an exemption', '/o/\n!/o/pub', 'memory/x', 'o', true],
    ['to a sibling name of a protected file', '', 'src', 'MEMORY.md.lock', true],
  ];
  for (const [name, patterns, from, to, may] of table) {
    test(`${name} ${may ? 'may change a verdict' : 'changes none'}`, () => {
      assert.equal(withDefaults(...patterns.split('\n').filter(Boolean)).moveMayChangeClass(from, to), may);
    });
  }

  test('is never called harmless when some path below changes class', () => {
    const random = seeded(7);
    const names = ['a', 'b', 'memory', '.git', 'x.jsonl', 'n.md', 'n.md.tmp'];
    const patterns = words('/a/ b/ *.md /a/b/*.md **/a/n.md !/b/ !/a/b !n.md a/**/b/ /memory/');
    const path = (length: number) => Array.from({ length }, () => names[random(names.length)]).join('/');
    let harmless = 0;
    for (let round = 0; round < 400; round++) {
      const chosen = Array.from({ length: 1 + random(4) }, () => patterns[random(patterns.length)]!);
      const rules = random(2) === 0 ? withDefaults(...chosen) : rulesOf(chosen.join('\n'));
      const from = path(1 + random(3));
      const to = path(1 + random(3));
      if (rules.moveMayChangeClass(from, to)) continue;
      harmless++;
      for (let i = 0; i < 40; i++) {
        const below = path(1 + random(3));
        const here = rules.protects(`${from}/${below}`);
        assert.equal(here, rules.protects(`${to}/${below}`), `${chosen}: ${from} to ${to}, below: ${below}`);
      }
    }
    assert.ok(harmless > 50, `only ${harmless} moves were harmless`);
  });
});

describe('a held name', { timeout }, () => {
  const names = [
    ...words('.mem_x9.tmp .oc-1f2e.tmp .subl3f.tmp tmpab12cd tmpab12cdef tmpk_xqzvwj tmp1x2y3z4w.md'),
    ...words('tmp.aB3dE5gH1j .tmpAb12Cd .tmpqwErty sedA1b2C3 .goutputstream-X1Y2Z3 4913 1234567890'),
    ...[
      '550e8400-e29b-41d4-a716-446655440000',
      '550e8400-e29b-41d4-a716-446655440000.tmp',
      'etilqs_aB12',
      'a1B2c3D4',
    ],
    ...['tmp-4711', '.tmp-4711-ab12', '1700000000.tmp', 'Xy7Kp2.tmp'],
  ];
  const ordinary = [
    ...words('foo.tmp.ts src template tmp temp .tmp tmp.txt tmpfiles tmpdir README.md a.ts'),
    ...words('.env .eslintrc .gitignore .npmrc Makefile Dockerfile LICENSE CHANGELOG package.json'),
    ...words('2024 index.js data.tmp seed sedan node_modules .prettierrc .editorconfig MyModule'),
    ...words('Procfile tempest temperature.csv tmp-notes Gemfile2 jsconfig PKGBUILD .dockerignore'),
    ...['.DS_Store', '.babelrc', 'readme2', '.vscode', '.bashrc', 'Cargo.lock', 'mkdocs.yml'],
  ];

  test('is a temporary one that tells nothing of its target', () => {
    const defaults = compileRules(DEFAULT_RULES);
    assert.deepEqual(
      names.filter((name) => !defaults.holds(name)),
      [],
    );
    assert.deepEqual(
      ordinary.filter((name) => defaults.holds(name)),
      [],
    );
  });

  test('is held in the directory of an anchored file rule only', () => {
    const rules = withDefaults('/docs/NOTES.md', '/logs/*.txt', '/data/', '/deep/**/x.md');
    const held = ['', 'docs/', 'logs/', 'deep/', 'deep/y/'];
    const free = ['src/', 'docs/sub/', 'data/', 'memory/', 'x/docs/'];
    for (const place of held) assert.equal(rules.holds(`${place}.mem_x9.tmp`), true, place);
    for (const place of free) assert.equal(rules.holds(`${place}.mem_x9.tmp`), false, place);
    assert.equal(rulesOf('*.jsonl\nDELIVERABLES.md\n/memory/').holds('.mem_x9.tmp'), false);
  });

  test('is not one that is protected, nor one beside a file that was exempted again', () => {
    assert.equal(compileRules(DEFAULT_RULES).holds('.MEMORY.md.tmp'), false);
    assert.equal(withDefaults('!/MEMORY.md').holds('.mem_x9.tmp'), false);
    assert.equal(compileRules(DEFAULT_RULES).holds(''), false);
  });

  test('may have random capitals under ignoreCase too', () => {
    const rules = compileRules([{ pattern: '/Docs/NOTES.md', exempt: false, source: '--protect' }], {
      ignoreCase: true,
    });
    assert.equal(rules.holds('docs/sedA1b2C3'), true);
    assert.equal(rules.holds('DOCS/tmp.aBcDeFgHiJ'), true);
  });
});

/** mulberry32: the same sequence for the same seed, on every machine. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

function checkIgnore(directory: string, paths: string[]): string[] {
  // git exits 1 when nothing is ignored; a pattern that matches all keeps that from being an error here.
  const input = `${paths.join('\0')}\0`;
  const output = execFileSync(
    'sh',
    ['-c', 'git -C "$1" check-ignore --no-index -z --stdin || [ $? = 1 ]', 'sh', directory],
    {
      input,
    },
  );
  return output.toString('utf8').split('\0').filter(Boolean);
}
