// Agents run their tools under bubblewrap; what those write is caught like the rest. And 30: a base on overlayfs.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { protectedDifferences } from '../harness/forget.ts';
import { forgetFor } from '../harness/users.ts';
import { runWatched } from '../harness/watchdog.ts';
import { inWindow, withWorkspace } from './window.ts';

const TOOL =
  'cat memory/old.md; echo leak >> memory/old.md; tail -n 1 memory/old.md; rm MEMORY.md; echo leak > DELIVERABLES.md.tmp && mv DELIVERABLES.md.tmp DELIVERABLES.md; echo real > src/tool.out; cat DELIVERABLES.md';
const TOLD = '# What I know\n\nAda prefers tabs.\nleak\nleak\n';
const lower = { 'src/tool.out': 'real\n', 'DELIVERABLES.md.tmp': null };

inWindow('a tool under bubblewrap with the workspace bound writable is caught', {
  script: `bwrap --ro-bind / / --dev /dev --proc /proc --bind "$PWD" "$PWD" --unshare-user --unshare-pid --unshare-net --die-with-parent sh -c '${TOOL}'; ls MEMORY.md || true`,
  prints: `${TOLD}ls: cannot access 'MEMORY.md': No such file or directory\n`,
  lower,
});

inWindow('a tool under bubblewrap with everything unshared is caught', {
  script: `bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --bind "$PWD" "$PWD" --unshare-all --new-session --die-with-parent --chdir "$PWD" sh -c '${TOOL}'`,
  prints: TOLD,
  lower,
});

inWindow('a tool under bubblewrap whose workspace is bound elsewhere is caught there too', {
  script: `bwrap --ro-bind / / --tmpfs /mnt --bind "$PWD" /mnt/w --unshare-all --chdir /mnt/w sh -c '${TOOL}'`,
  prints: TOLD,
  lower,
});

inWindow('a tool under bubblewrap that may only read the workspace is told so', {
  script: `bwrap --ro-bind / / --unshare-all sh -c 'cat memory/old.md; echo x > memory/old.md; echo x > src/main.py'; true`,
  prints: /^# What I know\n\nAda prefers tabs\.\n.*Read-only file system\n.*Read-only file system\n$/,
});

inWindow('a nested user namespace sees the same window', {
  script: `unshare --user --map-root-user --mount sh -c 'echo leak >> memory/old.md; tail -n 1 memory/old.md; id -u'`,
  prints: 'leak\n0\n',
});

withWorkspace(
  'a workspace on overlayfs works like any other',
  async (workspace) => {
    for (const name of ['upper', 'work', 'merged']) mkdirSync(join(workspace.top, name));
    const script = `cd "$1" && mount -t overlay overlay -o lowerdir=ws,upperdir=upper,workdir=work merged && cd merged && "$2" exec --quiet -- sh -c '${TOOL}' && cat memory/old.md src/tool.out && ls -A "$1/upper"`;
    const result = await runWatched(
      ['unshare', '--mount', 'sh', '-c', script, 'sh', workspace.top, forgetFor('root')],
      { user: 'root', cwd: workspace.top },
    );
    assert.equal(result.stdout, `${TOLD}# What I know\n\nAda prefers tabs.\nreal\nsrc\n`, result.stderr);
    assert.deepEqual(protectedDifferences(workspace), []);
  },
  { users: ['root'] },
);
