// E7, E8, 6, 45 and DESIGN 3 "Siblings" and "Held": a writer's temporary names never put protected bytes in the lower.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { forgetExec, protectedDifferences } from '../harness/forget.ts';
import { snapshot } from '../harness/tree.ts';
import { inWindow, python, withWorkspace } from './window.ts';

inWindow('a log renamed to a name that says deleted leaves neither name in the lower', {
  script:
    'mv logs/a.jsonl logs/a.jsonl.deleted; echo new > logs/c.jsonl; mv logs/c.jsonl logs/c.jsonl.deleted.2026; ls logs',
  prints: 'a.jsonl.deleted\nb.jsonl\nc.jsonl.deleted.2026\nplain.txt\n',
  lower: { 'logs/a.jsonl.deleted': null, 'logs/c.jsonl': null, 'logs/c.jsonl.deleted.2026': null },
});

const derived = [
  'DELIVERABLES.md~',
  '.DELIVERABLES.md.swp',
  '#DELIVERABLES.md#',
  '.DELIVERABLES.md.x7Kq',
  'DELIVERABLES.md.tmp',
  'DELIVERABLES.md.tmp-123',
  'DELIVERABLES.md.temp',
  'DELIVERABLES.md.new',
  'DELIVERABLES.md.bak',
  'DELIVERABLES.md.old',
  'DELIVERABLES.md.orig',
  'DELIVERABLES.md.part',
  'DELIVERABLES.md.lock',
  'DELIVERABLES.md.gz',
  'DELIVERABLES.md.4711',
  'DELIVERABLES.md-4711',
  'DELIVERABLES.md_4711',
  'DELIVERABLES.md.0b5f1c1e-6a54-4a0c-9d3c-0f2f4f6f8a10',
  'docs/DELIVERABLES.md.tmp.99',
  'logs/a.jsonl.tmp1',
  'logs/z.jsonl.zst',
  'logs/.a.jsonl.abc',
  'logs/a.jsonl.unreadable-1700000000',
  'logs/a.jsonl.reset.2026-01-02',
  'MEMORY.md.bak.20260102',
  '.MEMORY.md.swp',
  'MEMORY.md.lock',
];
inWindow('temporary names derived from a protected file are protected from birth', {
  script: derived.map((name) => `echo leak > '${name}'; cat '${name}'`).join('\n'),
  prints: 'leak\n'.repeat(derived.length),
  lower: Object.fromEntries(derived.map((name) => [name, null])),
});

const others = [
  'memory.py',
  'src/DELIVERABLES.txt',
  'logs/jsonl.py',
  'README.md.bak',
  'docs/MEMORY.md',
  'main.jsonl2.py',
];
inWindow('names that only resemble protected ones are written for real', {
  script: others.map((name) => `echo real > '${name}'; cat '${name}'`).join('\n'),
  prints: 'real\n'.repeat(others.length),
  lower: Object.fromEntries(others.map((name) => [name, 'real\n'])),
});

inWindow("a database's side files have its class, whatever their own name", {
  script: python(`
import os, sqlite3
for path in ("notes.db", "memory/notes.db"):
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("CREATE TABLE t(x)")
    db.execute("INSERT INTO t VALUES (1)")
    print(sorted(n for n in os.listdir(os.path.dirname(path) or ".") if n.startswith("notes.db")), flush=True)
os._exit(0)`),
  prints: "['notes.db', 'notes.db-shm', 'notes.db-wal']\n".repeat(2),
  exec: { options: ['--quiet', '--protect', '/notes.db'] },
  lower: { 'notes.db': null, 'notes.db-wal': null, 'notes.db-shm': null },
});

inWindow(
  'a temporary name beside an anchored file is held: on the protected name it stays, elsewhere it is real',
  {
    script: python(`
import os
def put(name, text):
    with open(name, "x") as f:
        f.write(text)
put(".mem_x9.tmp", "memory\\n"); os.replace(".mem_x9.tmp", "MEMORY.md")
put("tmpab12cd", "real\\n"); os.replace("tmpab12cd", "real.txt")
put("tmpzz99yy", "still there\\n")
print(open("MEMORY.md").read() + open("real.txt").read() + open("tmpzz99yy").read(), end="")`),
    prints: 'memory\nreal\nstill there\n',
    lower: { '.mem_x9.tmp': null, 'real.txt': 'real\n', tmpzz99yy: 'still there\n' },
  },
);

inWindow('a held file that grows past 4 MiB becomes real, with all its bytes', {
  script: 'head -c 6000000 /dev/zero | tr "\\0" x > tmpq1w2e3; stat -c %s tmpq1w2e3',
  prints: '6000000\n',
  lower: { tmpq1w2e3: 'x'.repeat(6_000_000) },
});

/** Bytes written to protected names during the run; the lower is searched for them all the time, by name and content. */
withWorkspace(
  'the lower never holds a byte or a name of an atomic write, not even for a moment',
  async (workspace) => {
    const seen: string[] = [];
    const watcher = spawn(
      'inotifywait',
      [
        '-m',
        '-q',
        '-e',
        'create,modify,moved_to,moved_from,attrib,delete',
        '--format',
        '%w%f %e',
        workspace.path,
        join(workspace.path, 'memory'),
        join(workspace.path, 'logs'),
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    watcher.stdout.on('data', (chunk: Buffer) => seen.push(chunk.toString('latin1')));
    try {
      await delay(300);
      const script = `
for i in 1 2 3 4 5; do
  echo secret > DELIVERABLES.md.tmp-$i; mv DELIVERABLES.md.tmp-$i DELIVERABLES.md
  echo secret > .mem_$i$i.tmp; mv .mem_$i$i.tmp MEMORY.md
  echo secret > memory/n$i.tmp; mv memory/n$i.tmp memory/old.md
  echo secret >> logs/a.jsonl; rm logs/b.jsonl; echo secret > logs/b.jsonl
done
cat DELIVERABLES.md MEMORY.md memory/old.md`;
      const result = await forgetExec(workspace, ['sh', '-c', script]);
      assert.equal(result.stdout, 'secret\n'.repeat(3), result.stderr);
      await delay(200);
    } finally {
      watcher.kill();
    }
    assert.deepEqual(seen, []);
    assert.deepEqual(protectedDifferences(workspace), []);
  },
);

// 6
withWorkspace(
  'an agent killed at its start leaves no stub of a protected file that was absent',
  async (workspace) => {
    const before = readdirSync(workspace.path);
    await forgetExec(workspace, ['sh', '-c', 'kill -9 $$'], {
      options: ['--quiet', '--protect', '/PLAN.md', '--protect', '/plans/'],
    });
    assert.deepEqual(readdirSync(workspace.path), before);
  },
);

// E33
withWorkspace(
  'opening a window and its self-test leave every byte, name, time and inode of the lower',
  async (workspace) => {
    const result = await forgetExec(workspace, ['true']);
    assert.equal(result.code, 0, result.stderr);
    assert.equal(result.stderr, '');
    assert.deepEqual(
      protectedDifferences(workspace, () => true),
      [],
    );
    assert.equal(snapshot(workspace.path).size, workspace.before.size);
  },
);
