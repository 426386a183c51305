/** `forget log`: protected operations as they happen. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { python } from '../cases/window.ts';
import { asUser, environmentOf, forgetFor } from '../harness/users.ts';
import { withOpenWindow } from './windows.ts';

interface Entry {
  number: number;
  at: string;
  operation: string;
  path: string;
  renamedFrom?: string;
  pid: number;
  command: string;
  bytes: number;
  count: number;
}

const entriesIn = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Entry);

withOpenWindow(
  'the log tells each operation with program, path and bytes, small writes as one',
  async (window) => {
    await window.inside(`
    ${python(`
import os
fd = os.open("memory/many", os.O_WRONLY | os.O_CREAT)
for i in range(500): os.write(fd, b"12")
`)}
    mv memory/many memory/moved
    rm memory/old.md
    echo real > src/real.txt
    chmod 0600 memory/moved; true
  `);
    const { stdout, stderr, code } = await window.forget('log', '--json');
    assert.equal(code, 0, stderr);
    const entries = entriesIn(stdout);
    assert.deepEqual(
      entries.map(({ operation, path, command }) => [operation, path, command]),
      [
        ['create', 'memory/many', 'python3'],
        ...entries
          .filter(({ operation }) => operation === 'write')
          .map(() => ['write', 'memory/many', 'python3']),
        ['rename', 'memory/moved', 'mv'],
        ['delete', 'memory/old.md', 'rm'],
        ['change', 'memory/moved', 'chmod'],
      ],
    );
    const writes = entries.filter(({ operation }) => operation === 'write');
    const sum = (of: (entry: Entry) => number) => writes.reduce((total, entry) => total + of(entry), 0);
    assert.deepEqual([sum(({ bytes }) => bytes), sum(({ count }) => count)], [1000, 500]);
    assert.ok(writes.length <= 20, `${writes.length} entries for 500 writes`);
    assert.equal(entries.find(({ operation }) => operation === 'rename')?.renamedFrom, 'memory/many');
    assert.ok(entries.every(({ pid, at }) => pid > 0 && !Number.isNaN(Date.parse(at))));
    const person = await window.forget('log');
    assert.match(
      person.stdout,
      /^\d\d:\d\d:\d\d\.\d{3} {2}rename {2}memory\/moved {2}from memory\/many {2}\(mv \d+\)$/m,
    );
  },
);

withOpenWindow(
  'a log that is followed goes on until the window closes, and misses nothing',
  async (window) => {
    const { user, path: cwd } = window.workspace;
    await window.inside('echo before > memory/a');
    const [program, ...line] = asUser(user, [forgetFor(user), 'log', '-f', '--json', '--window', window.id]);
    const client = spawn(program!, line, {
      cwd,
      env: environmentOf(user),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    client.stdout.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    const ended = new Promise<number | null>((resolve) => client.once('close', (code) => resolve(code)));
    const until = async (found: () => boolean) => {
      for (let i = 0; i < 400 && !found(); i++) await delay(10);
      assert.ok(found(), text);
    };
    await until(() => text.includes('"memory/a"'));
    await window.inside('for i in $(seq 30); do echo $i > memory/f$i; done');
    await until(() => text.includes('"memory/f30"'));
    await window.inside('echo last > memory/last');
    await window.close();
    assert.equal(await ended, 0);
    const entries = entriesIn(text);
    assert.deepEqual(
      entries.map(({ number }) => number),
      entries.map((_, i) => i + 1),
    );
    for (let i = 1; i <= 30; i++) {
      const written = entries.filter(
        ({ path, operation }) => path === `memory/f${i}` && operation === 'write',
      );
      assert.equal(
        written.reduce((sum, { bytes }) => sum + bytes, 0),
        String(i).length + 1,
      );
    }
    assert.equal(entries.at(-1)?.path, 'memory/last');
  },
);
