/** `forget list` and `forget diff`: what a window holds, seen from outside it and from inside. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { python } from '../cases/window.ts';
import { isProtectedByDefault } from '../harness/protected.ts';
import { parseSnapshot, snapshot, snapshotProgram, type Tree } from '../harness/tree.ts';
import { forgetFor, readableFor } from '../harness/users.ts';
import { type OpenWindow, withOpenWindow } from './windows.ts';

/** Every sort of change, in protected places: contents, attributes, names, types, whole directories. */
const EVERYTHING = `
printf 'more\\n' >> memory/old.md
chmod 0600 MEMORY.md
printf 'x\\0y' > memory/binary
mkdir -p memory/made/deep
echo deep > memory/made/deep/file
rm memory/people/charles.md
rm -r memory/deep
mv memory/run.sh memory/moved.sh
ln memory/people/ada.md memory/third-name.md
ln -sfn elsewhere memory/link-to-old
mv memory/.hidden memory/shown
rm -r memory/people/../empty.md
chmod 0711 memory/people
printf 'a' > DELIVERABLES.md.tmp1 && mv DELIVERABLES.md.tmp1 DELIVERABLES.md
rm logs/b.jsonl; mkdir logs/b.jsonl; echo now-a-directory > logs/b.jsonl/x
mv src/tool.sh memory/tool.sh
mkfifo memory/fifo
echo plain > src/new.txt
`;

async function viewOf(window: OpenWindow): Promise<Tree> {
  const program = readableFor(window.workspace.user, snapshotProgram);
  return parseSnapshot(Buffer.from(await window.inside(`python3 ${program} .`), 'utf8').toString('utf8'));
}

/** Kinds of change by path, worked out from two trees; a directory is changed where its own attributes are. */
function changesBetween(lower: Tree, view: Tree): Record<string, string> {
  const out: Record<string, string> = {};
  const same = (path: string) => {
    const [a, b] = [lower.get(path)!, view.get(path)!];
    const fields = ['type', 'mode', 'uid', 'gid', 'content', 'target', 'xattrs'] as const;
    return fields.every((field) => JSON.stringify(a[field]) === JSON.stringify(b[field]));
  };
  for (const path of view.keys()) {
    if (!lower.has(path)) out[path] = 'created';
    else if (!same(path)) out[path] = 'changed';
  }
  for (const path of lower.keys()) if (!view.has(path)) out[path] = 'deleted';
  return out;
}

interface Listed {
  path: string;
  kind: string;
  renamedFrom?: string;
  type: string | null;
  program?: { pid: number; command: string };
}

async function list(window: OpenWindow, ...paths: string[]): Promise<Listed[]> {
  const { stdout, stderr, code } = await window.forget('list', '--json', ...paths);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as Listed[];
}

withOpenWindow('what a window lists is how the view differs from the workspace', async (window) => {
  await window.inside(EVERYTHING);
  const expected = changesBetween(snapshot(window.workspace.path), await viewOf(window));
  const listed = await list(window);
  const found = Object.fromEntries(listed.map(({ path, kind }) => [path, kind]));
  // A file with three names is one: with a new one its other two are no longer what the workspace has.
  for (const path of ['memory/people/ada.md', 'memory/people/ada-again.md']) {
    assert.equal(found[path], 'changed');
    delete found[path];
  }
  assert.deepEqual(found, expected);
  const renamed = listed.filter(({ renamedFrom }) => renamedFrom !== undefined);
  assert.deepEqual(Object.fromEntries(renamed.map(({ path, renamedFrom }) => [path, renamedFrom])), {
    'memory/moved.sh': 'memory/run.sh',
    'memory/tool.sh': 'src/tool.sh',
    'memory/shown': 'memory/.hidden',
    'memory/shown/note.md': 'memory/.hidden/note.md',
  });
  assert.equal(listed.find(({ path }) => path === 'memory/binary')?.program?.command, 'sh');
  assert.deepEqual(
    (await list(window, 'memory/made')).map(({ path }) => path),
    ['memory/made', 'memory/made/deep', 'memory/made/deep/file'],
  );
  await window.close();
  assert.deepEqual(changesBetween(window.workspace.before, snapshot(window.workspace.path)), {
    'src/new.txt': 'created',
  });
});

withOpenWindow(
  'a diff applied to the workspace gives the view',
  async (window) => {
    await window.inside(`
      printf 'one\\ntwo\\n' > memory/new.md
      printf 'no newline at the end' > memory/old.md
      rm memory/people/charles.md
      mv memory/run.sh memory/moved.sh; chmod 0644 memory/moved.sh
      ln -sfn elsewhere memory/link-to-old
      printf 'odd' > "memory/tab	quote\\".md"
      : > memory/hollow
      mkdir memory/made; echo x > memory/made/x; mv memory/deep memory/deeper
    `);
    const { stdout, code, stderr } = await window.forget('diff');
    assert.equal(code, 0, stderr);
    const apply = spawnSync('git', ['apply', '--unsafe-paths', '-'], {
      cwd: window.workspace.path,
      input: stdout,
      encoding: 'utf8',
    });
    assert.equal(apply.status, 0, `${apply.stderr}\n${stdout}`);
    const [lower, view] = [snapshot(window.workspace.path), await viewOf(window)];
    const wanted = [...view.keys()].filter(
      (path) => isProtectedByDefault(path) && view.get(path)!.type !== 'directory',
    );
    assert.ok(wanted.includes('memory/tab\tquote".md'));
    for (const path of wanted) {
      const [a, b] = [lower.get(path), view.get(path)!];
      assert.deepEqual([path, a?.content, a?.target], [path, b.content, b.target]);
    }
    assert.equal(lower.has('memory/people/charles.md'), false);
    assert.equal(lower.has('memory/run.sh'), false);
  },
  { users: ['root'] },
);

withOpenWindow(
  'binary and large files are named with their sizes, and a name can be given',
  async (window) => {
    await window.inside(
      `printf 'x\\0y' > memory/binary; head -c 6000000 /dev/zero | tr '\\0' a > memory/large; rm memory/big.bin`,
    );
    const { stdout } = await window.forget('diff');
    assert.match(stdout, /^Binary files \/dev\/null and b\/memory\/binary differ \(nothing, 3 bytes\)$/m);
    assert.match(stdout, /^Large files \/dev\/null and b\/memory\/large differ \(nothing, 5\.7M\)$/m);
    assert.match(
      stdout,
      /^deleted file mode 100644\nBinary files a\/memory\/big.bin and \/dev\/null differ/m,
    );
    const one = await window.forget('diff', '--json', 'memory/binary');
    const [entry, ...others] = JSON.parse(one.stdout) as Record<string, unknown>[];
    assert.deepEqual(
      [entry?.path, entry?.content, entry?.diff, others.length],
      ['memory/binary', 'binary', null, 0],
    );
  },
  { users: ['ordinary'] },
);

withOpenWindow(
  'on a terminal a diff goes through the pager, coloured, and content cannot steer the terminal',
  async (window) => {
    await window.inside(`printf 'evil \\033[31m\\007\\n' > memory/old.md`);
    const { user, path: cwd } = window.workspace;
    const onTerminal = (env: readonly string[]) =>
      execFileSync(
        'sh',
        [
          '-c',
          `${python(`
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    line = ["env", "-u", "CI", *${JSON.stringify(env)}, "${forgetFor(user)}", "diff", "--window", "${window.id}"]
    os.execvp(line[0], line)
out = []
while True:
    try: data = os.read(fd, 65536)
    except OSError: break
    if not data: break
    out.append(data)
os.waitpid(pid, 0)
sys.stdout.buffer.write(b"".join(out))
`)}`,
        ],
        { cwd, encoding: 'latin1', timeout: 20_000 },
      );
    const coloured = onTerminal(['TERM=xterm', 'PAGER=cat']);
    assert.ok(coloured.includes('\u001b[32m+evil ^[[31m^G'), coloured);
    const paged = onTerminal(['TERM=xterm', 'NO_COLOR=1', 'PAGER=sed s/^/P:/']);
    assert.match(paged, /^P:\+evil \^\[\[31m\^G/m);
    assert.ok(!paged.includes('\u001b'), paged);
  },
  { users: ['root'] },
);

withOpenWindow(
  'what a directory is opaque over is deleted, and what is made in it again is changed',
  async (window) => {
    await window.inside('rm -r memory; mkdir memory; echo anew > memory/old.md; echo more > memory/more.md');
    const kinds = Object.fromEntries((await list(window)).map(({ path, kind }) => [path, kind]));
    assert.equal(kinds['memory/old.md'], 'changed');
    assert.equal(kinds['memory/more.md'], 'created');
    assert.equal(kinds['memory/people/ada.md'], 'deleted');
    assert.equal(kinds['memory/people'], 'deleted');
    assert.equal(kinds.memory, undefined);
    assert.equal((await window.inside('ls memory')).trim(), 'more.md\nold.md');
  },
  { users: ['ordinary'] },
);
