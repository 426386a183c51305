// 33, 34: names that break what was written with friendly names in mind.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { disposeWorkspace, forgetExec, makeWorkspace, protectedDifferences } from '../harness/forget.ts';
import { snapshot } from '../harness/tree.ts';
import { forgetFor, users } from '../harness/users.ts';
import { runWatched } from '../harness/watchdog.ts';
import { inWindow, python, withWorkspace } from './window.ts';

const SCRIPT =
  'cat memory/old.md; echo leak >> memory/old.md; echo leak > x.jsonl; echo real > real.txt; tail -n 1 memory/old.md; basename "$PWD" | od -An -c';

for (const [what, name] of [
  ['a command substitution', '$(touch pwn)'],
  ['a comma and an equals sign, as in mount options', 'a,b=c,nosuid'],
  ['a newline', 'new\nline'],
  ['a trailing space', 'trailing '],
  ['quotes and a backslash', `it's "so" \\012`],
  ['a leading dash', '-w'],
  ['255 bytes', 'n'.repeat(255)],
  ['glob characters', '[a-z]*?{x,y}!'],
] as const) {
  withWorkspace(
    `a workspace whose name has ${what} is mounted, and protected`,
    async (workspace) => {
      const result = await forgetExec(workspace, ['sh', '-c', SCRIPT]);
      assert.equal(result.code, 0, result.stderr);
      assert.match(result.stdout, /^# What I know\n\nAda prefers tabs\.\nleak\n/);
      assert.deepEqual(protectedDifferences(workspace), []);
      assert.ok(existsSync(join(workspace.path, 'real.txt')));
      assert.deepEqual(readdirSync(workspace.top), [name], 'nothing was executed');
    },
    { shape: { name } },
  );
}

for (const user of users) {
  test(`a workspace whose name is not UTF-8 is mounted, and protected, as ${user}`, {
    timeout: 60_000,
  }, async () => {
    const workspace = makeWorkspace(user);
    try {
      const odd = Buffer.concat([Buffer.from(`${workspace.top}/`), Buffer.from([0x77, 0xff, 0xfe, 0x73])]);
      renameSync(workspace.path, odd);
      // A shell passes the bytes on; Node's own spawn would not.
      const shell = [
        'sh',
        '-c',
        'cd "$1"/w* && exec "$2" exec --quiet -- sh -c "$3"',
        'sh',
        workspace.top,
        forgetFor(user),
        SCRIPT,
      ];
      const result = await runWatched(shell, { user, cwd: workspace.top });
      assert.equal(result.code, 0, result.stderr);
      assert.match(result.stdout, /^# What I know\n\nAda prefers tabs\.\nleak\n +w +377 +376 +s/);
      const named = await runWatched(
        [
          'sh',
          '-c',
          'exec "$2" exec --quiet -w "$1"/w* -- cat "$1"/w*/memory/old.md',
          'sh',
          workspace.top,
          forgetFor(user),
        ],
        { user, cwd: workspace.top },
      );
      assert.equal(named.stdout, '# What I know\n\nAda prefers tabs.\n', named.stderr);
      renameSync(odd, workspace.path);
      assert.deepEqual(protectedDifferences(workspace), []);
      assert.ok(existsSync(join(workspace.path, 'real.txt')));
    } finally {
      await disposeWorkspace(workspace);
    }
  });
}

inWindow('a newline or a foreign byte in a name does not lead past the rules', {
  script: python(`
import os
names = [b"memory/a\\nb.md", b"memory/x\\ny", b"memory/\\xff", b"\\xff.jsonl", b"a\\nb.jsonl", b"names/\\xff.jsonl", b"memory/.hid\\nden/\\xfe/z"]
os.makedirs(b"dir\\nx")
names.append(b"dir\\nx/y.jsonl")
for name in names:
    os.makedirs(os.path.dirname(name) or b".", exist_ok=True)
    with open(name, "wb") as f:
        f.write(b"leak")
    print(open(name).read(), os.path.basename(name) in os.listdir(os.path.dirname(name) or b"."))
with open(b"dir\\nx/\\xff\\n.txt", "w") as f:
    f.write("real")
`),
  prints: 'leak True\n'.repeat(8),
  afterwards: (workspace) => {
    const paths = [...snapshot(workspace.path).keys()];
    assert.ok(paths.includes('dir\nx/\xff\n.txt'), 'an unprotected odd name is real');
    assert.deepEqual(
      paths.filter((path) => path.endsWith('y.jsonl') || path === '\xff.jsonl' || path === 'a\nb.jsonl'),
      [],
    );
  },
});
