// One window over several directories: the workspace, homes of agents beside it, above it and in it.
import assert from 'node:assert/strict';
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { WindowReport } from '../../src/window/report.ts';
import { withWorkspace } from '../cases/window.ts';
import { forgetExec, protectedDifferences, type Workspace } from '../harness/forget.ts';
import { identityDifferences, part, snapshot, type Tree } from '../harness/tree.ts';
import { idsOf } from '../harness/users.ts';
import type { RunResult } from '../harness/watchdog.ts';

/** A home beside the workspace, with what an agent keeps there. */
function makeHome(workspace: Workspace): string {
  const home = join(workspace.top, 'home');
  const { uid, gid } = idsOf(workspace.user);
  for (const path of ['', '.agent', '.agent/sessions', '.config', '.config/forget']) {
    mkdirSync(join(home, path));
    chownSync(join(home, path), uid, gid);
  }
  for (const [path, text] of [
    ['.agent/auth.json', '{"key":1}'],
    ['.agent/sessions/1.log', 'first\n'],
    ['.agent.json', '{"history":[]}'],
    ['.profile', 'x\n'],
  ]) {
    writeFileSync(join(home, path!), text!);
    chownSync(join(home, path!), uid, gid);
  }
  return home;
}

interface Ran extends RunResult {
  home: string;
  before: Tree;
}

async function run(workspace: Workspace, options: string[], script: string): Promise<Ran> {
  const home = join(workspace.top, 'home');
  if (!existsSync(home)) makeHome(workspace);
  const before = snapshot(home);
  const result = await forgetExec(workspace, ['sh', '-c', `exec 2>&1\n${script}`], {
    options,
    env: { HOME: home, XDG_CONFIG_HOME: join(home, '.config') },
  });
  assert.equal(result.code, 0, result.stdout + result.stderr);
  return { ...result, home, before };
}

const assertSame = (ran: Ran, wanted: (path: string) => boolean) =>
  assert.deepEqual(identityDifferences(part(ran.before, wanted), part(snapshot(ran.home), wanted)), []);

withWorkspace(
  'a directory that --root names is covered wholly, in one window with the workspace',
  async (ws) => {
    makeHome(ws);
    const report = join(ws.top, 'report.json');
    const ran = await run(
      ws,
      ['--root', join(ws.top, 'home/.agent'), '--report', report],
      `echo more >>"$HOME/.agent/sessions/1.log"; rm "$HOME/.agent/auth.json"; mv "$HOME/.agent/sessions" "$HOME/.agent/old"
cat "$HOME/.agent/old/1.log"; echo note >>memory/new.md; echo real >>"$HOME/.profile"; ls -A "$HOME/.agent"`,
    );
    assert.equal(ran.stdout, 'first\nmore\nold\n');
    assertSame(ran, (path) => path.startsWith('.agent'));
    assert.deepEqual(protectedDifferences(ws), []);
    assert.equal(readFileSync(join(ran.home, '.profile'), 'utf8'), 'x\nreal\n');
    const told = JSON.parse(readFileSync(report, 'utf8')) as WindowReport;
    const paths = told.protected.map(({ path }) => path);
    for (const path of ['~/.agent/auth.json', '~/.agent/old', 'memory/new.md'])
      assert.ok(paths.includes(path), path);
    assert.deepEqual(told.roots, [ws.path, join(ran.home, '.agent')]);
  },
);

withWorkspace(
  'a root that does not exist yet can be made inside, and none of it reaches the disk',
  async (ws) => {
    makeHome(ws);
    const ran = await run(
      ws,
      ['--quiet', '--root', join(ws.top, 'home/.none/deep')],
      `mkdir -p "$HOME/.none/deep/er"; echo secret >"$HOME/.none/deep/er/x"; mv "$HOME/.none/deep/er/x" "$HOME/.none/deep/y"
cat "$HOME/.none/deep/y"; echo real >"$HOME/real"`,
    );
    assert.equal(ran.stdout, 'secret\n');
    assertSame(ran, (path) => path !== 'real' && path !== '');
    assert.ok(!existsSync(join(ran.home, '.none')));
    assert.equal(readFileSync(join(ran.home, 'real'), 'utf8'), 'real\n');
  },
);

withWorkspace('a directory that was missing stays when something unprotected was put there', async (ws) => {
  const home = makeHome(ws);
  const config = { roots: [{ directory: '~/.new', protect: ['/sessions/'] }] };
  writeFileSync(join(home, '.config/forget/config.json'), JSON.stringify(config));
  const ran = await run(
    ws,
    ['--quiet'],
    'mkdir -p ~/.new/sessions; echo s >~/.new/sessions/1; echo key >~/.new/auth; cat ~/.new/sessions/1',
  );
  assert.equal(ran.stdout, 's\n');
  assert.equal(readFileSync(join(ran.home, '.new/auth'), 'utf8'), 'key\n');
  assert.ok(!existsSync(join(ran.home, '.new/sessions')));
});

withWorkspace('one file in the home is covered by the home, in which all else is real', async (ws) => {
  const home = makeHome(ws);
  const config = { roots: [{ directory: '~', protect: ['/.agent.json'] }] };
  writeFileSync(join(home, '.config/forget/config.json'), JSON.stringify(config));
  const ran = await run(
    ws,
    ['--quiet'],
    `echo '{"history":[1]}' >~/.agent.json.tmp.4711; mv ~/.agent.json.tmp.4711 ~/.agent.json; cat ~/.agent.json
echo real >>~/.agent/auth.json; (echo x >>~/.config/forget/config.json) 2>/dev/null || echo fixed`,
  );
  assert.equal(ran.stdout, '{"history":[1]}\nfixed\n');
  assertSame(ran, (path) => !path.startsWith('.agent/'));
  assert.equal(readFileSync(join(ran.home, '.agent/auth.json'), 'utf8'), '{"key":1}real\n');
});

withWorkspace('roots in one another, and the same one by a symlink, are one mount', async (ws) => {
  const home = makeHome(ws);
  symlinkSync('.agent', join(home, 'link'));
  const options = ['--quiet', '-w', home];
  for (const path of ['.agent/sessions', '.agent', 'link', 'link/sessions'])
    options.push('--root', join(home, path));
  const ran = await run(
    ws,
    options,
    `cd ~; grep -c ' fuse.forget ' /proc/self/mountinfo; echo a >link/sessions/2; cat .agent/sessions/2
mkdir memory; echo m >memory/m; echo r >real`,
  );
  assert.equal(ran.stdout, '1\na\n');
  assertSame(ran, (path) => path.startsWith('.agent'));
  assert.deepEqual([existsSync(join(home, 'memory')), existsSync(join(home, 'real'))], [false, true]);
});

withWorkspace(
  'a protected symlink that leads out of the workspace makes its target a root, and says so',
  async (ws) => {
    const home = makeHome(ws);
    symlinkSync('../home/.agent', join(ws.path, 'shared'));
    symlinkSync('../home/.agent.json', join(ws.path, 'state.json'));
    ws.before = snapshot(ws.path);
    const ran = await run(
      ws,
      ['-p', '/shared/', '-p', '/state.json'],
      'echo a >shared/new; echo b >>state.json; cat shared/new state.json; echo real >>~/.profile',
    );
    assert.equal(ran.stdout, 'a\n{"history":[]}b\n');
    assert.match(ran.stderr, /forget: also covering ~\/\.agent, where .*\/shared leads/);
    assertSame(ran, (path) => path.startsWith('.agent'));
    assert.deepEqual(
      protectedDifferences(ws, (path) => path === 'shared' || path === 'state.json'),
      [],
    );
    assert.equal(readFileSync(join(home, '.profile'), 'utf8'), 'x\nreal\n');
  },
);

withWorkspace('a dangling protected symlink makes its target covered before it is there', async (ws) => {
  makeHome(ws);
  symlinkSync('../home/.later/state', join(ws.path, 'shared'));
  const ran = await run(
    ws,
    ['--quiet', '-p', '/shared'],
    'mkdir -p ~/.later; echo a >shared; cat ~/.later/state; echo real >~/.later/other',
  );
  assert.equal(ran.stdout, 'a\n');
  assert.deepEqual(
    [existsSync(join(ran.home, '.later/state')), existsSync(join(ran.home, '.later/other'))],
    [false, true],
  );
});

withWorkspace(
  'what is renamed or linked from one root to another is copied, and judged there',
  async (ws) => {
    makeHome(ws);
    const ran = await run(
      ws,
      ['--quiet', '--root', join(ws.top, 'home/.agent')],
      `echo text >draft; mv draft ~/.agent/moved; cat ~/.agent/moved; ls draft 2>/dev/null
mv ~/.agent/auth.json real.json; cat real.json; ls ~/.agent; ln ~/.agent/moved hard 2>/dev/null || echo crosses`,
    );
    assert.equal(ran.stdout, 'text\n{"key":1}moved\nsessions\ncrosses\n');
    assertSame(ran, (path) => path.startsWith('.agent'));
    assert.equal(readFileSync(join(ws.path, 'real.json'), 'utf8'), '{"key":1}');
  },
);

withWorkspace(
  'files get their maker as owner in every root, whoever worked in the other before',
  async (ws) => {
    makeHome(ws);
    const ran = await run(
      ws,
      ['--quiet', '-p', '/caught/', '--root', join(ws.top, 'home/.agent/sessions')],
      `chmod 0777 . ~/.agent/sessions ~ ..; mkdir caught; chmod 0777 caught
for i in 1 2 3; do
  touch root-$i ~/.agent/sessions/root-$i
  setpriv --reuid 1002 --regid 1002 --clear-groups touch user-$i ~/.agent/sessions/user-$i caught/user-$i
done
stat -c %u root-* ~/.agent/sessions/root-* user-* ~/.agent/sessions/user-* caught/* | uniq -c | tr -s ' '`,
    );
    assert.equal(ran.stdout, ' 6 0\n 9 1002\n');
    assert.equal(lstatSync(join(ws.path, 'user-1')).uid, 1002);
  },
  { users: ['root'] },
);

withWorkspace('two roots are served at once: neither waits for the other to be quiet', async (ws) => {
  makeHome(ws);
  const ran = await run(
    ws,
    ['--quiet', '--root', join(ws.top, 'home/.agent')],
    `(while :; do stat ~/.agent/none$RANDOM 2>/dev/null; : >>~/.agent/busy; done) & busy=$!
python3 -c '
import os, time
took = []
for i in range(300):
    before = time.perf_counter()
    open(f"f{i}", "w").close()
    took.append(time.perf_counter() - before)
print("quick" if sorted(took)[150] < 0.02 else took)
'
kill $busy; wait $busy 2>/dev/null; true`,
  );
  assert.match(ran.stdout, /^quick\n/);
});
