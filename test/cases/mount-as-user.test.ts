// `forget mount` by an ordinary user, through the setuid fusermount3.
import assert from 'node:assert/strict';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { protectedDifferences, type Workspace } from '../harness/forget.ts';
import { Machine } from '../harness/machine.ts';
import { environmentOf, forgetFor, idsOf, ORDINARY_ID } from '../harness/users.ts';
import {
  allPids,
  forgetMounts,
  newMark,
  processesWith,
  type RunResult,
  runWatched,
  signalAll,
} from '../harness/watchdog.ts';
import { assertLower, python, withWorkspace } from './window.ts';

const isRoot = process.getuid?.() === 0;

interface Person {
  /** A script with `$FORGET` and `$WS`, in `/`. It must succeed; returns what it printed. */
  sh(script: string): Promise<string>;
  /** The same, whatever comes of it. */
  tries(script: string): Promise<RunResult>;
}

interface Scene {
  workspace: Workspace;
  user: Person;
  other: Person;
  root: Person;
  mounted(): string[];
  /** Those of forget, with the guardian. */
  processes(): number[];
  gone(): Promise<void>;
}

function withMachine(
  title: string,
  body: (scene: Scene) => Promise<void>,
  { fuseConf = '' }: { fuseConf?: string } = {},
): void {
  withWorkspace(
    title,
    async (workspace) => {
      const machine = new Machine(fuseConf);
      const mark = newMark();
      const env = { FORGET: forgetFor('ordinary'), WS: workspace.path, FORGET_TEST_MOUNT: mark };
      const person = (uid: number): Person => {
        const tries = async (script: string) =>
          runWatched(await machine.line(uid, ['sh', '-c', script]), {
            user: isRoot ? 'root' : 'ordinary',
            cwd: '/',
            timeout: 30_000,
            env: environmentOf('ordinary', env),
          });
        return {
          tries,
          sh: async (script) => {
            const result = await tries(script);
            assert.equal(result.code, 0, `${script}\n${result.stdout}${result.stderr}`);
            return result.stdout;
          },
        };
      };
      const scene: Scene = {
        workspace,
        user: person(idsOf('ordinary').uid),
        other: person(ORDINARY_ID + 1),
        root: person(0),
        mounted: () =>
          forgetMounts(allPids())
            .map((mount) => mount.mountpoint)
            .filter((path) => path.startsWith(workspace.top)),
        processes: () => processesWith('FORGET_TEST_MOUNT', mark),
        gone: async () => {
          const left = () => scene.mounted().length + scene.processes().length;
          for (let i = 0; i < 60 && left() > 0; i++) await delay(50);
          assert.deepEqual([scene.mounted(), scene.processes()], [[], []], 'a mount or process is left');
        },
      };
      try {
        await body(scene);
      } finally {
        signalAll(scene.processes(), 'SIGKILL');
        machine.end();
      }
    },
    { users: ['ordinary'] },
  );
}

withMachine(
  'a mount through fusermount3 catches what is protected and passes the rest, git commits included',
  async ({ workspace, user, mounted, gone }) => {
    const open = await user.tries('"$FORGET" mount "$WS"');
    assert.equal(open.code, 0, open.stderr);
    assert.match(open.stderr, /only your own processes/);
    assert.deepEqual(mounted(), [workspace.path]);
    const printed = await user.sh(`cd "$WS"
      echo leak >> memory/old.md; echo leak > DELIVERABLES.md; rm MEMORY.md
      echo real > src/real.txt; git init -q "$WS/repo"; cd repo; echo one > a; git add a; git commit -qm one
      git fsck --strict; cat ../DELIVERABLES.md; tail -n 1 ../memory/old.md; ls ../MEMORY.md || echo none`);
    assert.equal(printed, 'leak\nleak\nnone\n');
    assert.match(await user.sh('"$FORGET" status'), new RegExp(workspace.path));
    const closed = await user.tries('"$FORGET" unmount "$WS"');
    assert.equal(closed.code, 0, closed.stderr);
    assert.match(closed.stderr, /memory\/old\.md/);
    await gone();
    assert.deepEqual(protectedDifferences(workspace), []);
    assertLower(workspace, { 'src/real.txt': 'real\n', 'repo/a': 'one\n' });
    assert.equal(await user.sh('cd "$WS/repo" && git log --format=%s && git status --short'), 'one\n');
  },
);

if (isRoot) {
  withMachine(
    'others get EACCES in a mount of an ordinary user, and other processes of the user not at its descriptors',
    async ({ user, other, root, gone }) => {
      await user.sh('chmod 755 "$(dirname "$WS")" "$WS" "$WS/memory"');
      const { pid } = JSON.parse(await user.sh('"$FORGET" mount --json "$WS"')) as { pid: number };
      for (const person of [other, root]) {
        const refused = await person.tries('cat "$WS/memory/old.md"');
        assert.match(refused.stderr, /Permission denied/);
      }
      assert.match((await user.tries(`ls /proc/${pid}/fd`)).stderr, /Permission denied/);
      await user.sh('"$FORGET" unmount "$WS"');
      await gone();
    },
  );

  withMachine(
    'with user_allow_other all others see the view',
    async ({ workspace, user, other, root, gone }) => {
      const open = await user.tries('"$FORGET" mount "$WS"');
      assert.doesNotMatch(open.stderr, /only your own processes/);
      await user.sh('chmod 755 "$(dirname "$WS")" "$WS" "$WS/memory"; echo view > "$WS/memory/new.md"');
      for (const person of [other, root]) assert.equal(await person.sh('cat "$WS/memory/new.md"'), 'view\n');
      assert.match((await other.tries('echo leak > "$WS/memory/new.md"')).stderr, /Permission denied/);
      await root.sh('echo leak >> "$WS/memory/old.md"');
      await user.sh('"$FORGET" unmount "$WS"');
      await gone();
      assertLower(workspace, { 'memory/new.md': null });
      assert.doesNotMatch(readFileSync(join(workspace.path, 'memory/old.md'), 'utf8'), /leak/);
    },
    { fuseConf: '# one line\nuser_allow_other # for tests\n' },
  );

  withMachine('where user namespaces are barred the refusal says what to change', async ({ user, gone }) => {
    const barred = await user.tries(
      `unshare --user --map-current-user --keep-caps -- sh -c '
         echo 0 > /proc/sys/user/max_user_namespaces
         exec setpriv --bounding-set -all --inh-caps -all --ambient-caps -all -- "$FORGET" mount --quiet "$WS"'`,
    );
    assert.equal(barred.code, 125);
    assert.match(barred.stderr, /sysctl user\.max_user_namespaces=\d+/);
    await gone();
  });
}

withMachine(
  'a file made without write permission takes the writes of whoever has it open, however late',
  async ({ user, gone }) => {
    await user.sh('"$FORGET" mount --quiet "$WS"');
    const printed = await user.sh(
      `cd "$WS"\n${python(`
import os, time
for path in ['src/ro', 'memory/ro']:
    for mode in [0o444, 0]:
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
        os.write(fd, b'one ')
        time.sleep(0.3)
        os.write(fd, b'two')
        time.sleep(0.3)
        print(path, oct(mode), os.pread(fd, 10, 0).decode(), oct(os.fstat(fd).st_mode))
        os.close(fd)
        os.unlink(path)
`)}`,
    );
    assert.equal(
      printed,
      ['src/ro', 'memory/ro']
        .flatMap((path) => [`${path} 0o444 one two 0o100444\n`, `${path} 0o0 one two 0o100000\n`])
        .join(''),
    );
    await user.sh('"$FORGET" unmount "$WS"');
    await gone();
  },
);

withMachine(
  'a file that loses its write permission while it is open, and protected ones with attributes or of another owner',
  async ({ workspace, user, gone }) => {
    const other = join(workspace.path, 'memory/other.md');
    writeFileSync(other, 'other\n');
    chmodSync(other, 0o666);
    await user.sh('"$FORGET" mount --quiet "$WS"');
    const printed = await user.sh(
      `cd "$WS"\n${python(`
import os, time
for path in ['src/late', 'memory/late']:
    open(path, 'w').close()
    time.sleep(0.3)
    fd = os.open(path, os.O_RDWR)
    os.fchmod(fd, 0o444)
    time.sleep(0.3)
    os.write(fd, b'late')
    print(path, open(path).read())
with open('memory/other.md', 'a') as file: file.write('more')
print(open('memory/other.md').read())
`)}`,
    );
    assert.equal(printed, 'src/late late\nmemory/late late\nother\nmore\n');
    await user.sh('"$FORGET" unmount "$WS"');
    await gone();
    assertLower(workspace, { 'src/late': 'late', 'memory/late': null, 'memory/other.md': 'other\n' });
  },
);

withMachine('a kill -9 of the server leaves neither mount nor process', async (scene) => {
  const { workspace, user } = scene;
  const { pid } = JSON.parse(await user.sh('"$FORGET" mount --json --quiet "$WS"')) as { pid: number };
  await user.sh('echo leak >> "$WS/memory/old.md"; echo real > "$WS/src/real.txt"');
  process.kill(pid, 'SIGKILL');
  await scene.gone();
  assert.deepEqual(protectedDifferences(workspace), []);
  assertLower(workspace, { 'src/real.txt': 'real\n' });
  await user.sh('"$FORGET" mount --quiet "$WS" && "$FORGET" unmount "$WS"');
  await scene.gone();
});

withMachine('a mount in use is kept, and goes by --force or a signal', async ({ user, mounted, gone }) => {
  const holding = async (close: string) => {
    const { pid } = JSON.parse(await user.sh('"$FORGET" mount --json --quiet "$WS"')) as { pid: number };
    const holder = user.tries('cd "$WS/src" && echo in > ../entered && sleep 2; echo ended');
    await user.sh('until [ -e "$WS/entered" ]; do sleep 0.05; done');
    const refused = await user.tries('"$FORGET" unmount "$WS"');
    assert.equal(refused.code, 125);
    assert.match(refused.stderr, /in use/);
    assert.equal(mounted().length, 1);
    await user.sh(close.replace('PID', `${pid}`));
    for (let i = 0; i < 30 && mounted().length > 0; i++) await delay(50);
    assert.deepEqual(mounted(), []);
    assert.equal((await holder).stdout, 'ended\n');
    await gone();
    await user.sh('rm "$WS/entered"');
  };
  await holding('"$FORGET" unmount --force "$WS"');
  await holding('kill PID');
});

withMachine('mount points with odd bytes in their names', async ({ workspace, user, mounted, gone }) => {
  for (const name of [
    'with space',
    'comma,allow_other',
    'back\\\\slash',
    'new\\nline',
    'caf\\351 \\377',
    '#\\t"',
  ]) {
    await user.sh(`at=$(printf '%s/%b' "$(dirname "$WS")" '${name}')
      mkdir "$at" && "$FORGET" mount --quiet "$WS" "$at" && echo leak > "$at/memory/leak.md"
      mountpoint -q "$at" && "$FORGET" unmount "$at" && ! mountpoint -q "$at" && rmdir "$at"`);
    assert.deepEqual(mounted(), [], name);
    await gone();
  }
  assert.deepEqual(protectedDifferences(workspace), []);
});
