// The harness is what says that forget keeps its promises, so it must notice when it does not.
import assert from 'node:assert/strict';
import {
  appendFileSync,
  chmodSync,
  linkSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { disposeWorkspace, makeWorkspace, plainExec, protectedDifferences } from './forget.ts';
import { isProtectedByDefault } from './protected.ts';
import { equalityDifferences, part, snapshot } from './tree.ts';
import { users } from './users.ts';
import { markedProcesses } from './watchdog.ts';

const user = users[0]!;

const changes: [string, (path: string) => void, RegExp][] = [
  ['a changed byte', (path) => appendFileSync(join(path, 'memory/old.md'), 'x'), /content/],
  ['a changed mode', (path) => chmodSync(join(path, 'memory/run.sh'), 0o700), /mode/],
  ['a changed time', (path) => utimesSync(join(path, 'DELIVERABLES.md'), 1, 1), /mtime/],
  ['a new name', (path) => writeFileSync(join(path, 'logs/a.jsonl.tmp1'), ''), /only in the second/],
  ['a deletion', (path) => rmSync(join(path, 'memory/empty.md')), /only in the first/],
  ['a new link', (path) => linkSync(join(path, 'MEMORY.md'), join(path, 'src/link')), /nlink/],
  [
    'another symlink',
    (path) => {
      rmSync(join(path, 'memory/link-to-old'));
      symlinkSync('big.bin', join(path, 'memory/link-to-old'));
    },
    /target/,
  ],
  [
    'the same bytes under another inode',
    (path) => {
      writeFileSync(join(path, 'x'), '- index of memory\n- [old](memory/old.md)\n');
      renameSync(join(path, 'x'), join(path, 'MEMORY.md'));
    },
    /ino/,
  ],
];
for (const [what, change, told] of changes) {
  test(`the comparison of the lower notices ${what}`, { timeout: 30_000 }, async () => {
    const workspace = makeWorkspace(user);
    try {
      assert.deepEqual(protectedDifferences(workspace), []);
      change(workspace.path);
      assert.match(protectedDifferences(workspace).join('\n'), told);
    } finally {
      await disposeWorkspace(workspace);
    }
  });
}

test('two copies of a workspace are equal, and a broken hard link or attribute shows', {
  timeout: 30_000,
}, async () => {
  const [one, two] = [makeWorkspace(user), makeWorkspace(user)];
  try {
    assert.deepEqual(equalityDifferences(one.before, two.before), []);
    await plainExec(two, [
      'sh',
      '-c',
      'cp -p src/lib/util.py x; mv x src/lib/util.py; setfattr -n user.x -v y README.md',
    ]);
    const found = equalityDifferences(
      part(one.before, (path) => path !== ''),
      snapshot(two.path),
    ).join('\n');
    assert.match(found, /links only in the first: .*util-again/);
    assert.match(found, /README.md.*xattrs/);
  } finally {
    await disposeWorkspace(one);
    await disposeWorkspace(two);
  }
});

test('a program that hangs fails with its name and the place where it waits, and is ended', {
  timeout: 30_000,
}, async () => {
  const workspace = makeWorkspace(user, { empty: true });
  try {
    await assert.rejects(
      plainExec(workspace, ['sh', '-c', 'sleep 47 & sleep 48'], { timeout: 500 }),
      /hung for 500 ms[\s\S]*sleep 47[\s\S]*sleep/,
    );
    assert.deepEqual(workspace.marks.flatMap(markedProcesses), []);
  } finally {
    await disposeWorkspace(workspace);
  }
});

test('the hand-written predicate says of well-known names what DESIGN 3 says', () => {
  const yes = [
    'memory',
    'memory/a',
    'memory/.h/a\nb',
    'x/a.jsonl',
    'a.jsonl.zst',
    'd.jsonl/x',
    '.a.jsonl.swp',
    'DELIVERABLES.md',
    'a/DELIVERABLES.md.tmp-1',
    'MEMORY.md~',
    '\xff.jsonl',
  ];
  const no = [
    '',
    'memory.py',
    'src/memory/x',
    'MEMORY/x',
    'a.JSONL',
    'docs/MEMORY.md',
    '.git/refs/heads/x.jsonl',
    'jsonl',
    'a.jsonlx',
    'README.md',
  ];
  assert.deepEqual(
    yes.filter((path) => !isProtectedByDefault(path)),
    [],
  );
  assert.deepEqual(no.filter(isProtectedByDefault), []);
});
