/** `forget keep`: what it brings to the workspace, what it refuses, and that the window goes on. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withWorkspace } from '../cases/window.ts';
import { isProtectedByDefault } from '../harness/protected.ts';
import { parseSnapshot, snapshot, snapshotProgram, type Tree, type TreeEntry } from '../harness/tree.ts';
import { readableFor } from '../harness/users.ts';
import { type OpenWindow, openWindow, withOpenWindow } from './windows.ts';

const EVERYTHING = `
printf 'more\\n' >> memory/old.md
chmod 0604 MEMORY.md
touch -d '2001-02-03 04:05:06.123456789' MEMORY.md
printf 'x\\0y' > memory/binary
mkdir -p memory/made/deep
echo deep > memory/made/deep/file; chmod 0500 memory/made/deep
rm memory/people/charles.md
rm -r memory/deep
mv memory/run.sh memory/moved.sh
ln memory/people/ada.md memory/third-name.md
ln -sfn elsewhere memory/link-to-old
mv memory/.hidden memory/shown
chmod 0711 memory/people
printf 'a' > DELIVERABLES.md.tmp1 && mv DELIVERABLES.md.tmp1 DELIVERABLES.md
rm logs/b.jsonl; mkdir logs/b.jsonl; echo now-a-directory > logs/b.jsonl/x
mv src/tool.sh memory/tool.sh
mkfifo memory/fifo
python3 -c 'import os; os.setxattr("memory/binary", "user.colour", b"\\0red")'
truncate -s 3M memory/sparse; printf end >> memory/sparse
`;

async function viewOf(window: OpenWindow): Promise<Tree> {
  const program = readableFor(window.workspace.user, snapshotProgram);
  return parseSnapshot(await window.inside(`python3 ${program} .`));
}

const FIELDS = [
  'type',
  'mode',
  'uid',
  'gid',
  'content',
  'target',
  'xattrs',
  'rdev',
  'nlink',
  'mtime',
] as const;

/** How two trees differ, but for what a directory's filesystem and neighbours decide. */
function differences(a: Tree, b: Tree): string[] {
  const shown = (entry: TreeEntry | undefined) =>
    entry &&
    FIELDS.filter((field) => entry.type !== 'directory' || (field !== 'nlink' && field !== 'mtime')).map(
      (field) => [field, entry[field]],
    );
  return [...new Set([...a.keys(), ...b.keys()])].filter(
    (path) => JSON.stringify(shown(a.get(path))) !== JSON.stringify(shown(b.get(path))),
  );
}

/** Nothing of forget's own is left in the workspace. */
function assertNoTemporaries(window: OpenWindow): void {
  const names = [...snapshot(window.workspace.path).keys()];
  assert.deepEqual(
    names.filter((name) => name.includes('.forget-keep')),
    [],
  );
}

const kept = (window: OpenWindow, ...globs: string[]) => window.forget('keep', '--json', ...globs);
const at = (window: OpenWindow, path: string) => join(window.workspace.path, path);
const protectedPart = (tree: Tree) => new Map([...tree].filter(([path]) => isProtectedByDefault(path)));

withOpenWindow(
  'keeping everything makes the workspace what the view is, and the view stays',
  async (window) => {
    await window.inside(EVERYTHING);
    const before = await viewOf(window);
    const { code, stdout, stderr } = await kept(window, '*');
    assert.equal(code, 0, stderr);
    assert.deepEqual(JSON.parse(stdout).conflicts, []);
    assertNoTemporaries(window);
    const lower = snapshot(window.workspace.path);
    // The workspace has it under a name of its own, that was kept as well.
    assert.deepEqual(differences(before, lower), []);
    const after = await viewOf(window);
    assert.deepEqual(differences(before, after), []);
    for (const [path, entry] of before) assert.equal(after.get(path)?.ino, entry.ino, path);
    const list = await window.forget('list', '--json');
    assert.deepEqual(JSON.parse(list.stdout), []);

    // It goes on: what is written now is caught, and is all that there is to keep.
    await window.inside('echo later >> memory/old.md; rm memory/moved.sh; echo new > memory/made/new');
    assert.deepEqual(differences(lower, snapshot(window.workspace.path)), []);
    const again = JSON.parse((await window.forget('list', '--json')).stdout) as {
      path: string;
      kind: string;
    }[];
    assert.deepEqual(
      again.map(({ path, kind }) => [path, kind]),
      [
        ['memory/made/new', 'created'],
        ['memory/moved.sh', 'deleted'],
        ['memory/old.md', 'changed'],
      ],
    );
    const { stderr: report } = await window.close();
    assert.match(report, /^forget: kept \d+ paths, which stay as they were kept:$/m);
    assert.match(report, /^ {2}memory\/old\.md {2}/m);
    assert.deepEqual(differences(lower, snapshot(window.workspace.path)), []);
  },
);

withOpenWindow(
  'globs choose, and what they do not choose is forgotten',
  async (window) => {
    await window.inside(
      'echo a > memory/a.md; echo b > memory/b.md; echo c > memory/c.tmp; rm memory/old.md',
    );
    const { code, stderr } = await kept(window, '/memory/*.md', '!b.md', '!old.md');
    assert.equal(code, 0, stderr);
    await window.close();
    const added = Object.keys(Object.fromEntries(snapshot(window.workspace.path))).filter(
      (path) => !window.workspace.before.has(path),
    );
    assert.deepEqual(added, ['memory/a.md']);
    assert.ok(existsSync(at(window, 'memory/old.md')));
  },
  { users: ['ordinary'] },
);

withOpenWindow(
  'owner, mode, times and a second name come along',
  async (window) => {
    await window.inside(`
      echo mine > memory/mine.md; ln memory/mine.md memory/also-mine.md
      chown 1001:1002 memory/mine.md; chmod 4750 memory/mine.md
      touch -d '1999-01-01 00:00:00.000000007' memory/mine.md
      mkdir memory/dir; chown 1001 memory/dir; chmod 2770 memory/dir
    `);
    const { code, stderr } = await kept(window, 'mine.md', 'also-mine.md', 'dir');
    assert.equal(code, 0, stderr);
    const tree = snapshot(window.workspace.path);
    const [mine, also, dir] = ['mine.md', 'also-mine.md', 'dir'].map((name) => tree.get(`memory/${name}`)!);
    assert.deepEqual([mine!.uid, mine!.gid, mine!.mode, mine!.nlink], [1001, 1002, 0o4750, 2]);
    assert.equal(mine!.mtime, '915148800000000007');
    assert.equal(mine!.ino, also!.ino);
    assert.deepEqual([dir!.uid, dir!.mode], [1001, 0o2770]);
  },
  { users: ['root'] },
);

withOpenWindow(
  'a directory below others that the workspace lacks is made with them',
  async (window) => {
    await window.inside(
      'mkdir -p memory/x/y/z; chmod 0750 memory/x; echo 1 > memory/x/y/z/one; echo 2 > memory/x/two',
    );
    const { code, stderr } = await kept(window, '/memory/x/y/z/one');
    assert.equal(code, 0, stderr);
    const tree = snapshot(window.workspace.path);
    assert.equal(tree.get('memory/x')?.mode, 0o750);
    assert.ok(tree.has('memory/x/y/z/one') && !tree.has('memory/x/two'));
    assert.equal((await window.inside('cat memory/x/two memory/x/y/z/one')).trim(), '2\n1');
    // Nothing was in the workspace's new directory but what was kept.
    await window.inside('rm memory/x/y/z/one; ls -A memory/x/y/z; rmdir memory/x/y/z');
    assert.equal(readFileSync(at(window, 'memory/x/y/z/one'), 'utf8'), '1\n');
  },
  { users: ['ordinary'] },
);

withOpenWindow(
  'what has changed in the workspace meanwhile is named, and nothing is kept',
  async (window) => {
    await window.inside(`
    echo mine >> memory/old.md; echo new > memory/new.md; rm memory/people/charles.md
    chmod 0600 MEMORY.md; echo fine > memory/fine.md; rm -r memory/deep; echo x > memory/empty.md
  `);
    appendFileSync(at(window, 'memory/old.md'), 'theirs\n');
    writeFileSync(at(window, 'memory/new.md'), 'theirs\n');
    appendFileSync(at(window, 'memory/people/charles.md'), 'theirs\n');
    rmSync(at(window, 'MEMORY.md'));
    writeFileSync(at(window, 'memory/deep/a/b/theirs.md'), 'theirs\n');
    const before = snapshot(window.workspace.path);
    const refused = await kept(window, '*');
    assert.equal(refused.code, 1, refused.stderr);
    const { kept: none, conflicts } = JSON.parse(refused.stdout) as {
      kept: unknown[];
      conflicts: { path: string; why: string }[];
    };
    assert.deepEqual(none, []);
    assert.deepEqual(conflicts.map(({ path, why }) => `${path} ${why}`).sort(), [
      'MEMORY.md was deleted outside',
      'memory/deep/a/b was changed outside',
      'memory/deep/a/b/theirs.md was changed outside',
      'memory/new.md was made outside',
      'memory/old.md was changed outside',
      'memory/people/charles.md was changed outside',
    ]);
    assert.deepEqual(differences(before, snapshot(window.workspace.path)), []);
    const person = await window.forget('keep', 'old.md');
    assert.match(person.stderr, /nothing was kept, since the workspace has changed meanwhile \(--force/);
    assert.match(person.stderr, /^ {2}memory\/old\.md {2}was changed outside$/m);

    const fine = await kept(window, 'fine.md', 'empty.md');
    assert.equal(fine.code, 0, fine.stderr);
    const forced = await kept(window, '--force', '*');
    assert.equal(forced.code, 0, forced.stderr);
    assert.deepEqual(
      differences(protectedPart(await viewOf(window)), protectedPart(snapshot(window.workspace.path))),
      [],
    );
    assertNoTemporaries(window);
  },
);

withOpenWindow(
  'a file made again where one was deleted is compared with the deleted one',
  async (window) => {
    await window.inside(
      'rm memory/old.md; echo anew > memory/old.md; rm -r memory/people; mkdir memory/people; echo x > memory/people/ada.md',
    );
    const first = await kept(window, 'old.md', '/memory/people/');
    assert.equal(first.code, 0, first.stdout + first.stderr);
    assert.equal(readFileSync(at(window, 'memory/old.md'), 'utf8'), 'anew\n');
    assert.deepEqual(readdirSync(at(window, 'memory/people')), ['ada.md']);
    await window.inside('rm memory/old.md; echo third > memory/old.md');
    appendFileSync(at(window, 'memory/old.md'), 'theirs\n');
    assert.equal((await kept(window, 'old.md')).code, 1);
  },
  { users: ['root'] },
);

withOpenWindow(
  'a glob that matches nothing says what there is, and does nothing',
  async (window) => {
    const empty = await window.forget('keep', 'memory/');
    assert.equal(empty.code, 125);
    assert.match(empty.stderr, /nothing matches "memory\/": the window holds nothing$/m);
    await window.inside('echo a > memory/a.md');
    const { code, stderr } = await window.forget('keep', 'a.md', 'b.md');
    assert.equal(code, 125);
    assert.match(stderr, /nothing matches "b\.md"; the window holds memory\/a\.md$/m);
    assert.equal(existsSync(at(window, 'memory/a.md')), false);
    const tried = await window.forget('keep', '--dry-run', '*');
    assert.equal(tried.stdout, 'would keep memory/a.md  2 bytes\n');
    assert.equal(existsSync(at(window, 'memory/a.md')), false);
    assert.equal((await window.forget('keep', '*')).stdout, 'kept memory/a.md  2 bytes\n');
    const again = await window.forget('keep', '*');
    assert.match(again.stderr, /all that the window holds is kept$/m);
  },
  { users: ['ordinary'] },
);

withOpenWindow(
  'a full disk leaves the workspace as it was',
  async (window) => {
    try {
      await window.inside(
        'echo small > memory/small; head -c 12M /dev/urandom > memory/large; rm memory/old',
      );
      const before = snapshot(window.workspace.path);
      const { code, stderr } = await window.forget('keep', '*');
      assert.equal(code, 125);
      assert.match(stderr, /memory\/large: ENOSPC \(the disk is full\); nothing was kept$/m);
      assertNoTemporaries(window);
      assert.deepEqual(differences(before, snapshot(window.workspace.path)), []);
      assert.equal((await window.forget('keep', 'small')).code, 0);
      assert.equal((await window.inside('stat -c %s memory/large')).trim(), String(12 << 20));
    } finally {
      await window.close();
      execFileSync('umount', [window.workspace.path]);
    }
  },
  {
    users: ['root'],
    shape: {
      empty: true,
      prepare: (path) => {
        execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8M', 'tmpfs', path]);
        execFileSync('sh', ['-c', 'mkdir memory; echo old > memory/old'], { cwd: path });
      },
    },
  },
);

withOpenWindow(
  'a database is kept with its side files, whole, while it is written',
  async (window) => {
    await window.inside(`cat > /dev/null; python3 - <<'PYTHON' & 
import sqlite3, time
db = sqlite3.connect("memory/hot.db", isolation_level=None, timeout=10)
db.execute("PRAGMA journal_mode=WAL")
db.execute("PRAGMA wal_autocheckpoint=20")
db.execute("CREATE TABLE pairs(a INTEGER, b INTEGER)")
open("ready", "w").close()
end = time.monotonic() + 3
n = 0
while time.monotonic() < end:
    n += 1
    db.execute("BEGIN")
    for i in range(5):
        db.execute("INSERT INTO pairs VALUES (?, ?)", (n, i))
    db.execute("COMMIT")
PYTHON
while [ ! -e ready ]; do sleep 0.05; done`);
    for (let i = 0; i < 4; i++) {
      const { code, stdout, stderr } = await kept(window, '/memory/hot.db');
      assert.equal(code, 0, stdout + stderr);
      const names = (JSON.parse(stdout) as { kept: { path: string }[] }).kept.map(({ path }) => path).sort();
      assert.ok(names.includes('memory/hot.db') && names.includes('memory/hot.db-wal'), stdout);
      const check = `
import sqlite3, shutil, tempfile, os
top = tempfile.mkdtemp()
for side in ("", "-wal", "-shm"):
    shutil.copy("memory/hot.db" + side, top + "/hot.db" + side)
db = sqlite3.connect(top + "/hot.db")
print(db.execute("PRAGMA integrity_check").fetchall(), db.execute("SELECT count(*) > 0 FROM pairs").fetchall(), db.execute("SELECT a FROM pairs GROUP BY a HAVING count(*) != 5").fetchall())
shutil.rmtree(top)`;
      const told = execFileSync('python3', ['-c', check], { cwd: window.workspace.path, encoding: 'utf8' });
      assert.equal(told, "[('ok',)] [(1,)] []\n");
    }
  },
  { users: ['ordinary'] },
);

withOpenWindow(
  'a database that the workspace has opened meanwhile is a conflict',
  async (window) => {
    await window.inside(
      `python3 -c 'import sqlite3; db = sqlite3.connect("memory/rollback.db"); db.execute("INSERT INTO facts(text) VALUES (1)"); db.commit()'`,
    );
    writeFileSync(at(window, 'memory/rollback.db-wal'), 'theirs');
    const { code, stdout } = await kept(window, '*.db');
    assert.equal(code, 1, stdout);
    assert.match(stdout, /"path": "memory\/rollback.db-wal",\s*"why": "was made outside, beside a database"/);
  },
  { users: ['root'] },
);

withWorkspace(
  'other directories of a window are kept by their own paths, in one go with the workspace',
  async (workspace) => {
    const home = join(workspace.top, 'agent-home');
    execFileSync('sh', [
      '-c',
      `mkdir ${home}; echo old > ${home}/old; chown -R --reference=${workspace.path} ${home}`,
    ]);
    const window = await openWindow(workspace, ['--root', home]);
    const write = `cd ${home}; echo new > old; mkdir s; echo 1 > s/1.jsonl`;
    await window.inside(`echo 1 > memory/one.md; (${write})`);
    const list = await window.forget('list');
    assert.match(list.stdout, /agent-home\/s\/1\.jsonl {2}created/);
    // Anchored globs are the workspace's; the others are every root's.
    const anchored = await window.forget('keep', '/s/');
    assert.equal(anchored.code, 125);
    assert.match(anchored.stderr, /nothing matches "\/s\/"/);
    const own = await kept(window, `${home}/s/`);
    assert.equal(own.code, 0, own.stderr);
    assert.equal(readFileSync(join(home, 's/1.jsonl'), 'utf8'), '1\n');
    assert.equal(readFileSync(join(home, 'old'), 'utf8'), 'old\n');
    // A conflict in one root stops all.
    appendFileSync(join(home, 'old'), 'theirs\n');
    const refused = await kept(window, '*');
    assert.equal(refused.code, 1, refused.stderr);
    assert.equal(existsSync(at(window, 'memory/one.md')), false);
    assert.equal((await kept(window, '--force', '*')).code, 0);
    assert.deepEqual(
      [readFileSync(join(home, 'old'), 'utf8'), readFileSync(at(window, 'memory/one.md'), 'utf8')],
      ['new\n', '1\n'],
    );
    await window.close();
  },
);
