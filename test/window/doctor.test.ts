import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Check, Examination } from '../../src/window/doctor.ts';
import { asUser, checkout, environmentOf, temporaryDirectory, type User, users } from '../harness/users.ts';

const limit = { timeout: 40_000 };
const main = join(checkout, 'src/cli/main.ts');
const doctor = [process.execPath, '--import', import.meta.resolve('tsx'), main, 'doctor'];

interface Run {
  code: number | null;
  checks: Map<string, Check>;
}

interface Surroundings {
  /** Goes before the command line. */
  within?: readonly string[];
  args?: readonly string[];
}

/** `forget doctor --json` by `user`. */
function examineAs(user: User, { within = [], args = [] }: Surroundings = {}): Run {
  const argv = [...within, ...asUser(user, [...doctor, '--json', ...args])];
  const { status, stdout, stderr } = spawnSync(argv[0]!, argv.slice(1), {
    cwd: '/',
    env: environmentOf(user),
    encoding: 'utf8',
    timeout: 30_000,
  });
  assert.ok(stdout.startsWith('{'), stderr);
  const { ok, checks } = JSON.parse(stdout) as Examination;
  assert.equal(ok, !checks.some((check) => check.status === 'fail'));
  assert.equal(status, ok ? 0 : 125);
  return { code: status, checks: new Map(checks.map((check) => [check.name, check])) };
}

/** A mount namespace of its own, prepared and afterwards tidied by a shell as root. */
function inNamespace(prepare: string, tidy = ''): string[] {
  const script = `${prepare}\n"$@"; code=$?; ${tidy}\nexit $code`;
  return ['unshare', '--mount', 'sh', '-c', script, 'sh'];
}

for (const user of users) {
  test(
    `as ${user}, each check says what it found, and what to do where something is to be done`,
    limit,
    () => {
      const { checks } = examineAs(user);
      for (const name of ['node', 'kernel', '/dev/fuse', 'setpriv', 'koffi', 'upper', 'inotify', 'mounts']) {
        assert.ok(checks.has(name), `${name} is not checked`);
      }
      assert.ok(checks.has(user === 'root' ? 'mount namespace' : 'user namespace'));
      for (const { name, status, found, advice } of checks.values()) {
        assert.ok(found.length > 0, name);
        assert.equal(advice !== undefined, status !== 'ok', name);
      }
      assert.equal(checks.get('node')!.status, 'ok');
      assert.equal(checks.get('koffi')!.status, 'ok');
    },
  );
}

if (process.getuid!() === 0) {
  test(
    'without /dev/fuse, and with one that the user may not open, the check fails and says what to do',
    limit,
    () => {
      const missing = examineAs('root', {
        within: inNamespace('mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3'),
      });
      assert.equal(missing.code, 125);
      assert.equal(missing.checks.get('/dev/fuse')!.status, 'fail');
      assert.match(missing.checks.get('/dev/fuse')!.advice!, /modprobe fuse/);

      const barred = examineAs('ordinary', {
        within: inNamespace(
          'mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3; mknod -m 600 /dev/fuse c 10 229',
        ),
      });
      assert.equal(barred.checks.get('/dev/fuse')!.status, 'fail');
      assert.match(barred.checks.get('/dev/fuse')!.found, /mode 0600/);
      assert.match(barred.checks.get('/dev/fuse')!.advice!, /chmod 0666 \/dev\/fuse/);
    },
  );

  test('where user namespaces are barred, the check names the setting and how to change it', limit, () => {
    // The setting is counted per user namespace, so it can be changed in one of the test's own.
    const bar = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"';
    const within = asUser('ordinary', ['unshare', '--user', '--map-current-user', '--keep-caps']);
    const line = [...within, 'sh', '-c', bar, 'sh', ...doctor, '--json'];
    const { stdout, status } = spawnSync(line[0]!, line.slice(1), {
      cwd: '/',
      env: environmentOf('ordinary'),
      encoding: 'utf8',
      timeout: 30_000,
    });
    const { checks } = JSON.parse(stdout) as Examination;
    const check = checks.find(({ name }) => name === 'user namespace')!;
    assert.equal(status, 125);
    assert.equal(check.status, 'fail');
    assert.match(check.found, /max_user_namespaces is 0/);
    assert.match(check.advice!, /sysctl -w user\.max_user_namespaces=/);
  });

  /** Mounts as forget does, and ends (the mount is dead) or stays without serving (it hangs). */
  const mounter = (mountpoint: string, then: string) => `
    const { open, mount } = await import(${JSON.stringify(join(checkout, 'src/sys/libc.ts'))});
    const { cstring } = await import(${JSON.stringify(join(checkout, 'src/sys/bytes.ts'))});
    const fd = open(cstring('/dev/fuse'), 2, 0);
    const data = 'fd=' + fd + ',rootmode=40000,user_id=0,group_id=0';
    const result = mount(cstring('forget'), cstring(${JSON.stringify(mountpoint)}), cstring('fuse.forget'), 6, cstring(data));
    console.log(result);
    ${then}
  `;
  const runMounter = `"${process.execPath}" --import "${import.meta.resolve('tsx')}" --input-type=module -e`;
  const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

  test(
    'a mount whose server is gone is named, and cleared with --fix, whatever bytes its name has',
    limit,
    () => {
      const top = temporaryDirectory('doctor', 'root');
      const place = join(top, "it's a\nplace");
      mkdirSync(place);
      try {
        const within = inNamespace(`${runMounter} ${quote(mounter(place, ''))} >&2`);
        const seen = examineAs('root', { within });
        assert.equal(seen.code, 0);
        assert.equal(seen.checks.get('mounts')!.status, 'warn');
        assert.match(seen.checks.get('mounts')!.found, /dead: .*it's a\\nplace/);
        assert.equal(seen.checks.get('mounts')!.advice, 'forget doctor --fix');

        const fixed = examineAs('root', { within, args: ['--fix'] });
        assert.equal(fixed.checks.get('mounts')!.status, 'ok');
        assert.match(fixed.checks.get('mounts')!.found, /cleared .*it's a\\nplace/);
      } finally {
        rmSync(top, { recursive: true });
      }
    },
  );

  test(
    'a mount whose server does not answer is named, left alone, and does not make doctor wait',
    limit,
    () => {
      const top = temporaryDirectory('doctor', 'root');
      try {
        const stay = 'setTimeout(() => process.exit(0), 20_000);';
        const within = inNamespace(
          `${runMounter} ${quote(mounter(top, stay))} >&2 & until grep -q '${top}' /proc/self/mountinfo; do sleep 0.1; done`,
          'kill -9 $!',
        );
        const start = performance.now();
        const { checks } = examineAs('root', { within, args: ['--fix'] });
        assert.ok(checks.get('mounts')!.found.includes(`no answer from ${top}`), checks.get('mounts')!.found);
        assert.equal(checks.get('mounts')!.status, 'warn');
        assert.ok(performance.now() - start < 15_000);
      } finally {
        rmSync(top, { recursive: true });
      }
    },
  );
}
