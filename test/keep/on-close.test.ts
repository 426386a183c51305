/** `forget exec --on-close`: what becomes of protected writes when the command has ended. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { assertLower, python, withWorkspace } from '../cases/window.ts';
import { forgetExec, protectedDifferences, type Workspace } from '../harness/forget.ts';
import { asUser, environmentOf, forgetFor } from '../harness/users.ts';

const WRITE = 'echo new > memory/new.md; echo other > memory/other.txt; rm memory/empty.md';

withWorkspace('--on-close keep keeps all, and the command’s end is its own', async (workspace) => {
  const options = ['--on-close', 'keep'];
  const { code, stderr } = await forgetExec(workspace, ['sh', '-c', `${WRITE}; exit 7`], { options });
  assert.equal(code, 7, stderr);
  assert.match(stderr, /kept 3 paths, which stay as they were kept/);
  assert.doesNotMatch(stderr, /caught/);
  assertLower(workspace, {
    'memory/new.md': 'new\n',
    'memory/other.txt': 'other\n',
    'memory/empty.md': null,
  });
  const nothing = await forgetExec(workspace, ['true'], { options });
  assert.equal(nothing.code, 0);
  assert.doesNotMatch(nothing.stderr, /kept|holds|caught/);
});

withWorkspace(
  '--on-close keep over a newer file keeps nothing, says so and ends with 125',
  async (workspace) => {
    const path = join(workspace.path, 'memory/old.md');
    // Another window, which is outside of this one, changes the workspace meanwhile.
    const change = `echo theirs >> ${path}`;
    const outer = join(workspace.top, 'ready');
    const running = forgetExec(
      workspace,
      [
        'sh',
        '-c',
        `echo mine >> memory/old.md; ${WRITE}; : > ready; while [ -e ready ]; do sleep 0.05; done`,
      ],
      { options: ['--on-close', 'keep'] },
    );
    const ready = join(workspace.path, 'ready');
    execFileSync('sh', ['-c', `while [ ! -e ${ready} ]; do sleep 0.05; done; ${change}; rm ${ready}`], {
      timeout: 20_000,
      cwd: workspace.top,
    });
    const { code, stderr } = await running;
    assert.equal(code, 125, stderr);
    assert.match(
      stderr,
      /nothing was kept, since the workspace has changed meanwhile:\n {2}memory\/old\.md {2}was changed outside/,
    );
    assert.equal(existsSync(join(workspace.path, 'memory/new.md')), false);
    assert.equal(existsSync(outer), false);
    assert.ok(readFileSync(path, 'utf8').endsWith('theirs\n'));
  },
);

withWorkspace(
  '--on-close ask is refused at the start where nobody can be asked',
  async (workspace) => {
    const [program, ...line] = asUser(workspace.user, [
      ...['setsid', '--wait', forgetFor(workspace.user)],
      ...['exec', '--on-close', 'ask', '--', 'touch', 'ran'],
    ]);
    const told = execFileSync('sh', ['-c', '"$@" 2>&1; echo "code $?"', 'sh', program!, ...line], {
      cwd: workspace.path,
      env: environmentOf(workspace.user),
      encoding: 'utf8',
    });
    assert.match(told, /--on-close ask needs a terminal to ask on; say discard or keep\ncode 125\n/);
    assert.equal(existsSync(join(workspace.path, 'ran')), false);
  },
  { users: ['root'] },
);

/** Runs the command on a pseudo-terminal, and types `answers`, each when a question is open. */
function onTerminal(
  workspace: Workspace,
  command: string,
  answers: readonly string[],
): { code: number; told: string } {
  const line = asUser(workspace.user, [
    forgetFor(workspace.user),
    'exec',
    '--on-close',
    'ask',
    '--',
    'sh',
    '-c',
    command,
  ]);
  const program = python(`
import json, os, pty, select, sys
answers = json.loads(${JSON.stringify(JSON.stringify(answers))})
pid, fd = pty.fork()
if pid == 0:
    line = json.loads(${JSON.stringify(JSON.stringify(line))})
    os.execvp(line[0], line)
seen = b""
asked = 0
while True:
    ready, _, _ = select.select([fd], [], [], 20)
    if not ready: break
    try: data = os.read(fd, 65536)
    except OSError: break
    if not data: break
    seen += data
    if seen.count(b"globs of what to keep: ") > asked and asked < len(answers):
        os.write(fd, answers[asked].encode())
        asked += 1
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(json.dumps({"code": code, "told": seen.decode()}))
`);
  const out = execFileSync('sh', ['-c', program], {
    cwd: workspace.path,
    env: environmentOf(workspace.user),
    encoding: 'utf8',
    timeout: 40_000,
  });
  return JSON.parse(out);
}

withWorkspace('--on-close ask shows what there is, and keeps what the person chooses', async (workspace) => {
  const chosen = onTerminal(workspace, WRITE, ['nosuch\n', '*.md !empty.md\n']);
  assert.equal(chosen.code, 0, chosen.told);
  assert.match(chosen.told, /the window holds 3 paths:\r\n {2}memory\//);
  assert.match(chosen.told, /nothing matches "nosuch"/);
  assertLower(workspace, { 'memory/new.md': 'new\n', 'memory/other.txt': null, 'memory/empty.md': '' });
  const all = onTerminal(workspace, 'echo second > memory/second.md', ['a\n']);
  assert.equal(all.code, 0, all.told);
  assertLower(workspace, { 'memory/second.md': 'second\n' });
});

withWorkspace(
  '--on-close ask: Enter, the end of input and Ctrl-C discard',
  async (workspace) => {
    for (const answer of ['\n', '\u0004', '\u0003', 'd\n']) {
      const { code, told } = onTerminal(workspace, `${WRITE}; exit 3`, [answer]);
      assert.equal(code, 3, `${JSON.stringify(answer)}: ${told}`);
      assert.match(told, /caught 3 protected paths/);
      assert.deepEqual(protectedDifferences(workspace), []);
    }
    const nothing = onTerminal(workspace, 'true', []);
    assert.equal(nothing.code, 0);
    assert.doesNotMatch(nothing.told, /keep\?|holds|caught/);
  },
  { users: ['root'] },
);
