import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { withWorkspace } from '../cases/window.ts';
import { protectedDifferences } from '../harness/forget.ts';
import { Machine } from '../harness/machine.ts';
import { npmEnvironment } from '../harness/npm.ts';
import { checkout, temporaryDirectory, type User, users } from '../harness/users.ts';
import { markedProcesses } from '../harness/watchdog.ts';
import { installedAction, readAction, runAction } from './runner.ts';

const require = createRequire(import.meta.url);
const actions = new Map<User, string>();
function actionFor(user: User): string {
  const known = actions.get(user);
  if (known !== undefined && existsSync(known)) return known;
  const made = installedAction(user);
  actions.set(user, made);
  return made;
}

test('action.yml is an action by GitHub’s schema, and docs/ci.md names each input and output', () => {
  const { validateAction } = require('@action-validator/core') as {
    validateAction(text: string): { errors: unknown[] };
  };
  assert.deepEqual(validateAction(readFileSync(join(checkout, 'action.yml'), 'utf8')).errors, []);
  assert.notDeepEqual(validateAction('name: x\nruns:\n  using: composite\n').errors, []);
  const page = readFileSync(join(checkout, 'docs/ci.md'), 'utf8');
  const { inputs, outputs } = readAction(checkout);
  for (const name of [...Object.keys(inputs), ...Object.keys(outputs)]) {
    assert.ok(page.includes(`\`${name}\``), `docs/ci.md does not have ${name}`);
  }
});

withWorkspace(
  'the action runs the commands in a window, and gives outputs and a summary',
  async (workspace) => {
    const run = [
      'wc -c <memory/empty.md',
      'echo private >>memory/old.md',
      'echo private >memory/"a|b"',
      'echo public >public.txt',
      'env | grep FORGET_ || true',
    ].join('\n');
    const result = await runAction(workspace, { run }, { action: actionFor(workspace.user) });
    assert.equal(result.code, 0, result.log);
    assert.deepEqual(protectedDifferences(workspace), []);
    assert.equal(readFileSync(join(workspace.path, 'public.txt'), 'utf8'), 'public\n');
    const { report, ...counts } = result.outputs;
    assert.deepEqual(counts, {
      'exit-code': '0',
      'protected-paths': '2',
      written: '2',
      created: '1',
      deleted: '0',
      renamed: '0',
      bytes: '16',
    });
    assert.equal((JSON.parse(readFileSync(report!, 'utf8')) as { kind: string }).kind, 'exec');
    assert.match(result.summary, /^### forget: caught 2 protected paths$/m);
    assert.match(
      result.summary,
      /^\| <code>memory\/old\.md<\/code> \| 8 written \| <code>bash<\/code> \d+ \|$/m,
    );
    assert.match(result.summary, /^\| <code>memory\/a&#124;b<\/code> \| created, 8 written \|/m);
    assert.deepEqual(result.log.match(/^FORGET_(?!TEST_)\w+/gm), ['FORGET_WINDOW']);
    // What an earlier step has installed is there to be used.
    assert.match(result.log, /^::group::Install forget\n::endgroup::$/m);
    assert.equal(/runs as root/.test(result.log), workspace.user === 'root');
    for (const mark of result.marks) assert.deepEqual(markedProcesses(mark), []);
  },
);

withWorkspace(
  'the step ends as the commands do, at the first that fails, and has its report all the same',
  async (workspace) => {
    const given = {
      run: 'mkdir kept; echo x >kept/a; echo x >new.txt; echo x >new.md\n(exit 4) | true\ntouch never',
      workspace: 'docs',
      protect: 'kept/\n  \nnew*\n',
      exempt: '/new.txt',
      report: 'out.json',
      summary: 'false',
    };
    const result = await runAction(workspace, given, { action: actionFor(workspace.user) });
    assert.equal(result.code, 4, result.log);
    assert.equal(result.outputs['exit-code'], '4');
    assert.equal(result.outputs.report, join(workspace.path, 'out.json'));
    assert.equal(result.summary, '');
    const report = JSON.parse(readFileSync(result.outputs.report!, 'utf8')) as {
      workspace: string;
      protected: { path: string }[];
    };
    assert.equal(report.workspace, join(workspace.path, 'docs'));
    assert.deepEqual(report.protected.map(({ path }) => path).sort(), ['kept', 'kept/a', 'new.md']);
    const left = ['kept', 'new.md', 'never', 'new.txt'].filter((name) =>
      existsSync(join(workspace.path, 'docs', name)),
    );
    assert.deepEqual(left, ['new.txt']);
  },
);

withWorkspace('a job that is cancelled ends the commands, and leaves nothing', async (workspace) => {
  const sign = join(workspace.path, 'sign');
  const result = await runAction(
    workspace,
    { run: 'echo x >memory/new\ntouch sign\nsleep 60\necho never >never' },
    {
      action: actionFor(workspace.user),
      // The runner interrupts the step's process, and no other.
      started: (step, pid) => {
        if (step !== 'run') return;
        const look = setInterval(() => {
          if (!existsSync(sign)) return;
          clearInterval(look);
          process.kill(pid, 'SIGINT');
        }, 50);
      },
    },
  );
  assert.equal(result.code, 143, result.log);
  assert.equal(result.outputs['exit-code'], '143');
  assert.equal(result.outputs.created, '1');
  assert.ok(!existsSync(join(workspace.path, 'never')));
  assert.deepEqual(protectedDifferences(workspace), []);
  for (const mark of result.marks) assert.deepEqual(markedProcesses(mark), []);
});

withWorkspace('where forget itself fails, the log and the summary say so', async (workspace) => {
  const given = { run: 'true', workspace: 'absent' };
  const result = await runAction(workspace, given, { action: actionFor(workspace.user) });
  assert.equal(result.code, 125, result.log);
  assert.match(result.log, /^::error title=forget::forget itself failed/m);
  assert.match(result.log, /absent: does not exist/);
  assert.match(result.summary, /^### forget: no report\n\nexit code 125/);
  assert.equal(result.outputs['exit-code'], '125');
  assert.equal(result.outputs.report, '');
});

withWorkspace(
  'an agent that wrote to its memory fails the step with exit code 3 where fail-on says so, and its agents are covered',
  async (workspace) => {
    const given = { run: 'echo x >memory/new', agent: 'codex mem0', 'fail-on': 'leak protected-write' };
    const result = await runAction(workspace, given, { action: actionFor(workspace.user) });
    assert.equal(result.code, 3, result.log);
    assert.match(result.log, /covering Codex: .*\n.*covering mem0: /);
    assert.match(result.log, /^::error title=forget::fail-on leak, protected-write: the summary/m);
    assert.match(result.summary, /memory\/new/);
    assert.equal(result.outputs['exit-code'], '3');
    assert.deepEqual(protectedDifferences(workspace), []);
  },
);

/** What sudo would do, the step's own user may do on these machines. */
const SUDO = '[ "$1" = -n ] && shift; exec "$@"';
const NO_SUDO = 'echo "sudo: a password is required" >&2; exit 1';
const SETTING = '/proc/sys/kernel/apparmor_restrict_unprivileged_userns';
/** Ubuntu's bar as a program sees it: the setting, and unshare(1) that fails while it is 1. */
const BAR = `mount -t tmpfs none /proc/sys/kernel; echo 1 >${SETTING}; chmod 666 ${SETTING}`;
const UNSHARE = `[ "$(cat ${SETTING})" = 0 ] && exec /usr/bin/unshare "$@"
echo 'unshare: write failed /proc/self/uid_map: Operation not permitted' >&2; exit 1`;
const BARE_DEV = 'mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3; mknod -m 666 /dev/urandom c 1 9';

interface Runner {
  title: string;
  prepare: string;
  programs: Record<string, string>;
  environment?: string;
  works: boolean;
  says: RegExp;
}

const runners: Runner[] = [
  {
    title: 'on a runner of GitHub’s own the action lifts AppArmor’s bar, and says so',
    prepare: BAR,
    programs: { sudo: SUDO, unshare: UNSHARE },
    works: true,
    says: /^::notice title=forget::AppArmor bars user namespaces here: setting kernel\.apparmor\S+=0/m,
  },
  {
    title: 'on a runner of one’s own the action leaves AppArmor’s bar, and says what to do',
    prepare: BAR,
    programs: { sudo: SUDO, unshare: UNSHARE },
    environment: 'self-hosted',
    works: false,
    says: /it was not asked to lift that[\s\S]*^::error title=forget::user namespace .*sysctl -w kernel\.apparmor/m,
  },
  {
    title: 'without sudo AppArmor’s bar stays, and the action says what to do',
    prepare: BAR,
    programs: { sudo: NO_SUDO, unshare: UNSHARE },
    works: false,
    says: /sudo is not to be had[\s\S]*^::error title=forget::user namespace .*sysctl -w kernel\.apparmor/m,
  },
  {
    title: 'in a container without /dev/fuse the action fails, and says how to start it',
    prepare: BARE_DEV,
    programs: { sudo: NO_SUDO },
    works: false,
    says: /^::error title=forget::\/dev\/fuse .*--device \/dev\/fuse/m,
  },
  {
    title: 'a /dev/fuse that the user may not open is opened to it, and the action says so',
    prepare: `${BARE_DEV}; mknod -m 0 /dev/fuse c 10 229; chown 1001 /dev/fuse`,
    programs: { sudo: SUDO },
    works: true,
    says: /^::notice title=forget::this user may not open \/dev\/fuse: giving it mode 0666/m,
  },
  {
    title: 'with a Node that is too old the action fails, and says what to add',
    prepare: '',
    programs: { node: '[ "$1" = --version ] && echo v18.20.8 || exit 1' },
    works: false,
    says: /^::error title=forget::Node\.js v18\.20\.8 is too old: use actions\/setup-node/m,
  },
];

if (users.includes('root')) {
  // Root alone, which has npm's cache.
  withWorkspace(
    'the action builds its own checkout, and installs a package where a version is asked for',
    async (workspace) => {
      const env = npmEnvironment();
      const action = temporaryDirectory('action', 'root');
      const files = execFileSync('git', ['ls-files', '-z'], { cwd: checkout, encoding: 'utf8' });
      for (const path of files
        .split('\0')
        .filter((file) => /^[^/]+$|^(bin|scripts|share|src)\//.test(file))) {
        cpSync(join(checkout, path), join(action, path));
      }
      const options = { action, env: { ...env, NODE_ENV: 'production' }, timeout: 180_000 };
      const built = await runAction(workspace, { run: 'echo x >memory/new' }, options);
      assert.equal(built.code, 0, built.log);
      assert.equal(built.outputs.created, '1');
      assert.match(built.log, /added \d+ packages/);

      const packed = temporaryDirectory('packed', 'root');
      const pack = ['pack', '--ignore-scripts', '--silent', '--pack-destination', packed];
      const [file] = execFileSync('npm', pack, { cwd: action, encoding: 'utf8' }).trim().split('\n');
      const installed = await runAction(
        workspace,
        { run: 'echo x >memory/new', version: `file:${join(packed, file!)}` },
        { action: installedAction('root'), env, timeout: 180_000 },
      );
      assert.equal(installed.code, 0, installed.log);
      assert.match(installed.log, /added \d+ packages/);
      assert.match(installed.summary, /^### forget: caught 1 protected path$/m);
      assert.deepEqual(protectedDifferences(workspace), []);
    },
    { users: ['root'], timeout: 400_000 },
  );

  for (const { title, prepare, programs, environment, works, says } of runners) {
    withWorkspace(
      title,
      async (workspace) => {
        const machine = new Machine('', prepare);
        try {
          const options = {
            action: actionFor('ordinary'),
            programs,
            machine,
            ...(environment && { env: { RUNNER_ENVIRONMENT: environment } }),
          };
          const result = await runAction(workspace, { run: 'echo x >memory/new; id -u' }, options);
          assert.match(result.log, says);
          assert.equal(result.code, works ? 0 : 125, result.log);
          if (works) assert.match(result.log, /^1001$/m);
          assert.deepEqual(protectedDifferences(workspace), []);
        } finally {
          machine.end();
        }
      },
      { users: ['ordinary'] },
    );
  }
}
