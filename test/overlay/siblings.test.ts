import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compileRules, DEFAULT_RULES, type Rules } from '../../src/overlay/rules.ts';
import { bareNames, databaseOf } from '../../src/overlay/siblings.ts';
import { bytesOf } from '../../src/sys/bytes.ts';

const timeout = 30_000;
const UUID = '550e8400-e29b-41d4-a716-446655440000';

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

/** Every form of the design, and of the writers named in siblings.ts, for a name with an extension. */
function derivedFrom(name: string): string[] {
  const suffixes = [
    ...words('~ .~1~ .tmp .tmp.4711 .tmp-4711 .tmp4711 .tmpAb3dE9 .tmp-1700000000a1b2c3 .temp .new'),
    ...words('.new.1 .bak .bak.20260801 .bak_x .bck .old .old.2 .orig .original .part .partial'),
    ...words(`.part1 .swp .swo .swx .lock .lock.4711 .save .save.1 .backup .backup-${UUID} .rej`),
    ...[
      '.deleted.2026-08-01T01-02-03.456Z',
      '.reset.2026-08-01T01-02-03.456Z.zst',
      '.unreadable-1700000000000',
      '.zst',
    ],
    ...words('.gz .xz .sb-1a2b3c4d-Xy7Kp2 .vsctmp ___jb_tmp___ ___jb_old___ -wal -shm -journal'),
    ...words(`-mj0A1B2C3D .1 -2 _3 .4711 .${UUID} -${UUID} _${UUID} .4711.${UUID}.tmp .aB3dE5`),
    ...words('.qwzrtx .AbCdEf -aB3dE5gH _k7x2m9qa .qxv_zkjw .4711.zx81ab .V1StGXR8_Z5jdHi6B-myT'),
    ...words(
      '.2026-08-01 -20260801T010203Z .2026-08-01T01:02:03.456Z .2026-08-01_01-02-03 1234567890 aB3dE5',
    ),
    ...words(
      'ab12cd_x AbCdEf.bck .tmp~ .lock.tmp .4711.tmp.bak -tmp _backup .d41d8cd98f00b204e9800998ecf8427e',
    ),
  ];
  const around = [
    ...words('.@.swp .@.swx #@# .#@ .~lock.@# ~$@ .~@ .@.new_1700000000_ab12.tmp .@.bak_1700000000_ab12.tmp'),
    ...words('.@.a.b.c .@.aB3dE5 .@1234567890 .@-aB3dE5gH .@.kate-swp .@.kak.Xy7Kp2'),
    ...words('tmp-@ .tmp-@ .tmp.@ .@.swp~'),
    '.@.anything at all',
  ].map((form) => form.replace('@', () => name));
  return [...suffixes.map((suffix) => name + suffix), ...around];
}

describe('a temporary derivative of a protected file is protected', { timeout }, () => {
  test('by a rule for one name, at the root and in a directory', () => {
    expectVerdicts(
      withDefaults('/docs/a.json'),
      [...derivedFrom('MEMORY.md'), ...derivedFrom('DELIVERABLES.md')],
      [],
    );
    expectVerdicts(
      withDefaults('/docs/a.json'),
      [...derivedFrom('a.json'), ...derivedFrom('DELIVERABLES.md')].map((name) => `docs/${name}`),
      derivedFrom('a.json').map((name) => `other/${name}`),
    );
  });

  test('by a glob, at any depth', () => {
    expectVerdicts(
      withDefaults(),
      derivedFrom('session-1.jsonl').map((name) => `logs/x/${name}`),
      derivedFrom('session-1.json').map((name) => `logs/x/${name}`),
    );
  });

  test('whatever its bytes are', () => {
    const rules = withDefaults();
    for (const name of ['\xff\xfe.jsonl', 'a\nb.jsonl', bytesOf('日本.jsonl')]) {
      const wrong = derivedFrom(name).filter((derived) => !rules.protects(derived));
      assert.deepEqual(wrong, []);
    }
    assert.equal(rules.protects('.MEMORY.md.\n\xff'), true);
  });

  test('with everything below it, when it is a directory as a mkdir lock is', () => {
    expectVerdicts(withDefaults(), ['MEMORY.md.lock', 'MEMORY.md.lock/pid', 'x/a.jsonl.lock/b/c'], []);
  });

  test('when it replaces the extension of a name written out', () => {
    expectVerdicts(
      withDefaults(),
      ['MEMORY.tmp', 'x/DELIVERABLES.bak', 'MEMORY.swp', 'MEMORY.tmp.4711', 'MEMORY.new'],
      ['x/MEMORY.tmp', 'session.tmp', 'MEMORY', 'MEMORY.txt', 'x/session.bak'],
    );
  });

  test('under ignoreCase too', () => {
    const rules = compileRules(DEFAULT_RULES, { ignoreCase: true });
    expectVerdicts(
      rules,
      ['memory.MD.Tmp', 'A.Jsonl.LOCK', '.Memory.md.SWP', 'Memory.TMP'],
      ['memory.md.html'],
    );
  });
});

test('every temporary name that agents are known to write is protected with its target', { timeout }, () => {
  const table: [target: string, names: string[]][] = [
    [
      's.jsonl',
      [
        's.jsonl.deleted.2026-08-01T01-02-03.456Z',
        's.jsonl.reset.2026-08-01T01-02-03.456Z.zst',
        's.jsonl.bak.1',
      ],
    ],
    [
      's.jsonl',
      words(`
      s.jsonl.zst s.jsonl.zst.tmp s.jsonl.zst.tmp-4711 s.jsonl.unreadable-1700000000000
      s.jsonl.tmp-4711
    `),
    ],
    [
      '.claude.json',
      ['.claude.json.tmp.4711.1700000000', '.claude.json.lock', '.claude.json.backup.1700000000'],
    ],
    ['MEMORY.md', ['MEMORY.md.lock', 'MEMORY.md.bak.1700000000']],
    ['sessions.json', [`sessions.json.4711.${UUID}.tmp`, 'sessions.json.lock']],
    [
      'task.json',
      [
        `task.json.4711.${UUID}.tmp`,
        '.task.json.new_1700000000_x1y2z3.tmp',
        '.task.json.bak_1700000000_x1.tmp',
        'task.json.lock',
      ],
    ],
    [
      'main.sqlite',
      [
        `main.sqlite.backup-${UUID}`,
        `main.sqlite.tmp-${UUID}`,
        `main.sqlite.tmp-${UUID}-wal`,
        'main.sqlite-shm',
      ],
    ],
    ['opencode.db', ['opencode.db-wal', 'opencode.db-shm', 'opencode.db-journal', 'opencode.db.bak-wal']],
    ['history', ['history.tmp', 'history.lock', 'history~']],
    [
      '.aider.chat.history.md',
      ['.aider.chat.history.md.swp', '.aider.chat.history.md~', '..aider.chat.history.md.x'],
    ],
  ];
  for (const [target, names] of table) {
    expectVerdicts(
      compileRules([{ pattern: target, exempt: false, source: '--protect' }]),
      [target, ...names],
      [],
    );
  }
});

describe('an ordinary file that only looks like a derivative is left alone', { timeout }, () => {
  test('beside the default rules', () => {
    expectVerdicts(
      withDefaults(),
      [],
      [
        ...words('memory.py memory.tmp memory~ .memory.swp memory-1 memory.lock memory.d #memory#'),
        ...words(
          'DELIVERABLES.md.html DELIVERABLES.md.ts DELIVERABLES.mdx DELIVERABLES.markdown DELIVERABLES',
        ),
        ...words(
          'MEMORY.markdown MEMORY.md.example MEMORY.md.template MEMORY.md.tmpl MEMORY.md.j2 MEMORY.mdown',
        ),
        ...words(
          'jsonl.ts jsonl jsonl.tmp x.jsonl-schema.md x.jsonl.schema x.jsonl-schema x.jsonl.md a.jsonl.py',
        ),
        ...words('x.jsonl.sha256 x.jsonl.md5 x.jsonl.v2 x.jsonl_to_csv x.jsonl.parquet x.jsonlines x.jsonld'),
        ...words(`
      jsonl-parser.js read.jsonl.test.ts src/jsonl/index.ts NOT-DELIVERABLES.md my-MEMORY.md
      MEMORY.md/../x
    `).slice(0, 5),
        ...words(
          'MEMORY-map.md MEMORY.md.d.ts templates/MEMORY.md.hbs docs/MEMORY.md.tmp .jsonlrc a.json.tmp',
        ),
      ],
    );
  });

  test('beside a directory rule, whatever file rules there are', () => {
    expectVerdicts(withDefaults('/data/', 'b*'), ['data/x', 'b.bak'], ['data.bak', 'data.tmp', 'x/data~']);
  });

  test('beside a file rule without an extension', () => {
    expectVerdicts(
      withDefaults('/memory'),
      words(`memory memory/a memory.tmp memory~ memory.4711 memory.aB3dE5 .memory.swp memory-${UUID}`),
      [
        ...words('memory.py memory-service memory_manager memory-utils2 memory.config memory.rs memory-old'),
        ...words(
          'memory_new memories memory.template memory-b64encode memory.types.ts in-memory memoryAbCdEf',
        ),
      ],
    );
  });
});

describe('an exemption reaches the siblings of the file it exempts', { timeout }, () => {
  test('against an earlier rule that matches the file or everything', () => {
    expectVerdicts(
      withDefaults('!train.jsonl', '/docs/*', '!/docs/index.md'),
      ['a.jsonl', 'a.jsonl.tmp', 'docs/x', 'docs/x.tmp', 'docs/index.mdx'],
      words(`train.jsonl train.jsonl.tmp x/train.jsonl.1.${UUID}.tmp .train.jsonl.swp docs/index.md`).concat([
        'docs/index.md.tmp',
        'docs/.index.md.swp',
        'docs/index.md~',
        'docs/index.tmp',
      ]),
    );
  });

  test('but not one that another rule names for itself', () => {
    expectVerdicts(withDefaults('/notes.bak', '!/notes'), ['notes.bak'], ['notes', 'notes.tmp']);
  });

  test('and can be for the temporary names alone', () => {
    expectVerdicts(
      withDefaults('!*.tmp'),
      ['a.jsonl', 'a.jsonl.bak', 'MEMORY.md'],
      ['a.jsonl.tmp', 'MEMORY.md.tmp'],
    );
    expectVerdicts(withDefaults('!*.tmp', '*.jsonl'), ['a.jsonl.tmp'], ['MEMORY.md.tmp']);
  });

  test('nor does a rule for a directory have siblings when it exempts', () => {
    expectVerdicts(withDefaults('*.bak', '!data/'), ['data.bak', 'x.bak'], ['data/x.bak']);
  });
});

describe('SQLite side files have the class of their database', { timeout }, () => {
  const family = (database: string) => ['', '-wal', '-shm', '-journal'].map((suffix) => database + suffix);

  test('when the database is protected, exempted or neither', () => {
    expectVerdicts(
      withDefaults('*.db', '!keep.db', 'state.vscdb', '/x/*', '!/x/a.sqlite3'),
      [...family('a.db'), ...family('y/state.vscdb'), ...family('x/b.db'), ...family('memory/m.db')],
      [...family('keep.db'), ...family('y/keep.db'), ...family('x/a.sqlite3'), ...family('a.sqlite')],
    );
  });

  test('when a rule names only a side file', () => {
    expectVerdicts(withDefaults('*.db-wal'), family('a.db'), family('a.sqlite'));
    expectVerdicts(
      withDefaults('*-shm'),
      [...family('a.db'), ...family('b.sqlite'), 'x-shm'],
      ['a', 'a.ts', 'x'],
    );
    expectVerdicts(withDefaults('state.db-*'), family('state.db'), ['state.dbx', 'state']);
  });

  test('when an exemption names only a side file', () => {
    expectVerdicts(
      withDefaults('*.db', '!*-wal', '!a.db-journal'),
      [...family('a.db'), ...family('b.db')],
      [],
    );
  });

  test('and a diary is not taken for one', () => {
    expectVerdicts(
      withDefaults('/work-journal/', 'my-journal'),
      ['work-journal/a', 'my-journal'],
      ['work', 'my'],
    );
    assert.equal(databaseOf('work-journal'), undefined);
    assert.equal(databaseOf('a.db-journal'), 'a.db');
    assert.equal(databaseOf('.db-wal'), undefined);
  });
});

describe('the names a name may be derived from', { timeout }, () => {
  test('come nearest first and without the name itself', () => {
    assert.deepEqual([...bareNames('X.json.tmp.bak')].slice(0, 2), ['X.json', 'X.json.tmp']);
    assert.equal([...bareNames(`X.4711.${UUID}.tmp`)].at(-1), 'X');
    assert.deepEqual([...bareNames('Button.tsx')], []);
  });

  test('are found in time that no name makes long', () => {
    const started = performance.now();
    for (const part of ['.', '.a', '.tmp-', '-1', 'a.tmp', '~', '#', '.~1~', '.bak_', '_a1', '.#']) {
      for (const bare of bareNames(part.repeat(255 / part.length))) assert.ok(bare.length < 255);
    }
    assert.ok(performance.now() - started < 2_000);
  });
});
