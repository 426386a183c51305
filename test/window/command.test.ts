import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { displayName } from '../../src/sys/bytes.ts';
import { findCommand } from '../../src/window/command.ts';
import { installDriver } from './install-driver.ts';

const python = '/usr/bin/python3';
const isRoot = process.geteuid!() === 0;
const ordinary = ['setpriv', '--reuid', '1001', '--regid', '1001', '--clear-groups'];

describe('starting a command', () => {
  let driver: Awaited<ReturnType<typeof installDriver>>;
  let directory: string;
  before(async () => {
    driver = await installDriver();
    directory = mkdtempSync(`${tmpdir()}/forget-command-`);
    for (const path of [directory, driver.directory]) chmodSync(path, 0o755);
  });
  after(() => {
    driver.remove();
    rmSync(directory, { recursive: true });
  });

  const run = (
    command: string[],
    options: { input?: string; cwd?: string; before?: string[]; options?: string[] } = {},
  ) => {
    const argv = [
      ...(options.before ?? []),
      driver.forget,
      'exec',
      ...(options.options ?? []),
      '--',
      ...command,
    ];
    return spawnSync(argv[0]!, argv.slice(1), {
      encoding: 'utf8',
      timeout: 30_000,
      input: options.input,
      cwd: options.cwd ?? directory,
    });
  };
  /** A program in Python, for what JavaScript cannot say: arguments and names that are not UTF-8. `F` is forget. */
  const pythonSays = (program: string): string => {
    const { stdout, stderr, status } = spawnSync(
      python,
      ['-c', `F=${JSON.stringify(driver.forget)}\n${program}`],
      {
        encoding: 'latin1',
        timeout: 30_000,
        cwd: directory,
      },
    );
    assert.equal(status, 0, stderr);
    return stdout;
  };

  test('the exit code is the command’s own, and 128+n after signal n', { timeout: 60_000 }, () => {
    assert.equal(run(['true']).status, 0);
    assert.equal(run(['sh', '-c', 'exit 3']).status, 3);
    for (const [name, code] of [
      ['KILL', 137],
      ['SEGV', 139],
      ['TERM', 143],
      ['INT', 130],
    ] as const) {
      assert.equal(run(['sh', '-c', `kill -${name} $$`]).status, code, name);
    }
  });

  test('a command that is not there is 127, one that may not run is 126, each in one line', {
    timeout: 60_000,
  }, () => {
    const missing = run(['no-such-command']);
    assert.deepEqual([missing.status, missing.stderr], [127, 'forget: no-such-command: command not found\n']);
    const unfound = run(['./no-such-file']);
    assert.deepEqual(
      [unfound.status, unfound.stderr],
      [127, 'forget: ./no-such-file: no such file or directory\n'],
    );
    writeFileSync(`${directory}/plain`, 'text');
    const plain = run(['./plain']);
    assert.deepEqual([plain.status, plain.stderr], [126, 'forget: ./plain: permission denied\n']);
    const folder = run([directory]);
    assert.deepEqual([folder.status, folder.stderr], [126, `forget: ${directory}: is a directory\n`]);
    assert.equal(run(['']).status, 127);
  });

  test('a name is looked up in PATH as execvp does', () => {
    mkdirSync(`${directory}/a/tool`, { recursive: true });
    mkdirSync(`${directory}/b`);
    writeFileSync(`${directory}/b/tool`, '#!/bin/sh\n', { mode: 0o755 });
    const found = { path: `${directory}/b/tool` };
    assert.deepEqual(findCommand('tool', `${directory}/a:/nowhere:${directory}/b`, '/'), found);
    assert.deepEqual(findCommand('tool', 'b', directory), found);
    assert.deepEqual(findCommand('tool', ':/usr/bin', `${directory}/b`), { path: `${directory}/b/./tool` });
    assert.ok('path' in findCommand('sh', undefined, '/'));
  });

  test('a script without a first line is run by the shell', { timeout: 30_000 }, () => {
    writeFileSync(`${directory}/script`, 'echo ran "$1"\n', { mode: 0o755 });
    assert.equal(run(['./script', 'here']).stdout, 'ran here\n');
  });

  test('arguments pass byte for byte: all 255 bytes, empty ones, patterns', { timeout: 30_000 }, () => {
    const echo = 'import sys,os;sys.stdout.buffer.write(b"|".join(map(os.fsencode,sys.argv[1:])))';
    const said = pythonSays(`
import subprocess
args=[bytes(range(1,256)), b"", b"*\\xff\\n", b"$(id)"]
out=subprocess.run([F,"exec","--","${python}","-c",'${echo}']+args,stdout=subprocess.PIPE).stdout
print(out==b"|".join(args))`);
    assert.equal(said, 'True\n');
  });

  test('a directory and a command named in bytes that are not UTF-8 work', { timeout: 30_000 }, () => {
    const said = pythonSays(`
import subprocess,os
os.mkdir(b"d\\xff x"); os.symlink("/bin/pwd", b"d\\xff x/c\\xfe")
p=subprocess.run([F,"exec","--",b"./c\\xfe"],cwd=b"d\\xff x",stdout=subprocess.PIPE)
print(p.returncode, p.stdout.endswith(b"/d\\xff x\\n"))
p=subprocess.run([F,"exec","--",b"c\\xfd"],stderr=subprocess.PIPE)
print(p.returncode, p.stderr)`);
    assert.equal(said, "0 True\n127 b'forget: c\\\\xfd: command not found\\n'\n");
  });

  test('a hundred commands one after another leak no descriptor, listener or zombie', {
    timeout: 30_000,
  }, () => {
    const { stdout, stderr } = run(['true'], { options: ['--repeat=100'] });
    const [first, last] = JSON.parse(stdout || stderr) as { children: string }[];
    assert.equal(first!.children, '');
    assert.deepEqual(last, first);
  });

  test('stdin is the caller’s pipe, to the last byte', { timeout: 30_000 }, () => {
    const input = 'line\n'.repeat(50_000);
    assert.equal(run(['wc', '-c'], { input }).stdout.trim(), `${input.length}`);
    assert.equal(run(['head', '-c', '3'], { input }).stdout, 'lin');
  });

  test('a slow pipe on stdin, stdout or stderr makes the command wait, and never fail', {
    timeout: 30_000,
  }, () => {
    const { stdout, stderr } = spawnSync(
      'bash',
      [
        '-c',
        `(sleep 0.6; echo late) | "$0" exec -- sh -c 'cat; head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2' \
          2> >(sleep 0.8; wc -c >&2) | (sleep 0.7; wc -c)`,
        driver.forget,
      ],
      { encoding: 'utf8', timeout: 20_000 },
    );
    assert.deepEqual([stdout.trim(), stderr.trim()], ['300005', '300000']);
  });

  test('the command gets the caller’s descriptors and none of forget’s', { timeout: 30_000 }, () => {
    const list = 'ls -l /proc/self/fd | sed -n "s/.* \\([0-9]* -> .*\\)/\\1/p" | grep -v "/proc/"';
    const bare = spawnSync('bash', ['-c', `exec 7</etc/hostname; sh -c '${list}' </dev/null 2>&0 | cat`], {
      encoding: 'utf8',
    });
    const inside = spawnSync(
      'bash',
      ['-c', `exec 7</etc/hostname; "$0" exec -- sh -c '${list}' </dev/null 2>&0 | cat`, driver.forget],
      { encoding: 'utf8', timeout: 20_000 },
    );
    const unnumbered = (text: string): string => text.replace(/pipe:\[\d+\]/g, 'pipe');
    assert.ok(bare.stdout.includes('7 -> /etc/hostname'));
    assert.equal(unnumbered(inside.stdout), unnumbered(bare.stdout));
    const differ = spawnSync('bash', ['-c', '"$0" exec -- diff <(echo a) <(echo b)', driver.forget], {
      timeout: 20_000,
    });
    assert.equal(`${differ.stdout}`, '1c1\n< a\n---\n> b\n');
  });

  test('the command gets the caller’s descriptors whichever digits they use', { timeout: 60_000 }, () => {
    const list =
      'import os; print([f for f in range(3, 20) if os.path.exists(f"/dev/fd/{f}") and os.readlink(f"/proc/self/fd/{f}") == "/etc/hostname"], os.path.exists("/dev/fd/10") and os.fstat(10).st_rdev)';
    for (const [first, last] of [
      [3, 3],
      [4, 9],
      [3, 8],
      [3, 9],
      [3, 12],
    ] as const) {
      const opened = Array.from({ length: last - first + 1 }, (_, i) => `${first + i}</etc/hostname`).join(
        ' ',
      );
      const shell = (forget: string) =>
        spawnSync(
          'bash',
          ['-c', `exec ${opened}; exec ${forget} "$1" -c "$2"`, driver.forget, python, list],
          {
            encoding: 'utf8',
            timeout: 20_000,
          },
        );
      const inside = shell('"$0" exec --');
      assert.equal(inside.stdout, shell('').stdout, `${first} to ${last}: ${inside.stderr}`);
      assert.equal(inside.stderr, '');
    }
  });

  test('the command has the caller’s limits of open files, soft and hard', { timeout: 30_000 }, () => {
    const { stdout, stderr } = spawnSync(
      'bash',
      [
        '-c',
        'ulimit -Sn 234; ulimit -Hn 4321; exec "$0" exec -- sh -c "ulimit -S -n; ulimit -H -n"',
        driver.forget,
      ],
      { encoding: 'utf8', timeout: 20_000 },
    );
    assert.deepEqual([stdout, stderr], ['234\n4321\n', '']);
  });

  test('PWD and OLDPWD are as forget got them, and absent where it got none', { timeout: 60_000 }, () => {
    const main = `${driver.directory}/dist/forget.cjs`;
    for (const given of [{}, { PWD: '/no/where $x\n' }, { OLDPWD: '' }, { PWD: '', OLDPWD: 'a"\\n' }]) {
      const out = spawnSync(process.execPath, [main, 'exec', '--', 'env', '-0'], {
        encoding: 'utf8',
        timeout: 20_000,
        cwd: directory,
        env: { PATH: process.env.PATH, ...given },
      });
      const seen = out.stdout.split('\0').filter((line) => /^(OLD)?PWD=/.test(line));
      assert.deepEqual(
        seen.sort(),
        Object.entries(given)
          .map(([k, v]) => `${k}=${v}`)
          .sort(),
        out.stderr,
      );
    }
    symlinkSync(directory, `${directory}/link`);
    const logical = spawnSync(driver.forget, ['exec', '--', 'sh', '-c', 'echo "$PWD"; pwd -P'], {
      encoding: 'utf8',
      timeout: 20_000,
      cwd: `${directory}/link`,
      env: { ...process.env, PWD: `${directory}/link` },
    });
    assert.equal(logical.stdout, `${directory}/link\n${directory}\n`, logical.stderr);
  });

  test('the command stands in the caller’s directory, whatever its name is', { timeout: 60_000 }, () => {
    const said = pythonSays(`
import subprocess,os
top=os.getcwdb()
os.environb[b"CDPATH"]=b"/:/usr:."
for name in [b"-", b"-P", b"--", b"~", b" ", b"usr", b"a\\n\\n", b"\\\\n\\\\c%s", b"$(id)\`id\`*?'" + b'"', bytes(range(0x80,0x100))]:
    os.mkdir(b"odd"+name) if os.path.exists(name) else os.mkdir(name)
    where=top+b"/"+name
    p=subprocess.run([F,"exec","--","${python}","-c","import os;os.write(1,os.getcwdb())"],cwd=where,stdout=subprocess.PIPE,stderr=subprocess.PIPE)
    if (p.returncode,p.stdout,p.stderr)!=(0,where,b""): print(name,p)
print("done")`);
    assert.equal(said, 'done\n');
  });

  test('a directory that cannot be entered is 125, and the command does not run', { timeout: 30_000 }, () => {
    const { status, stdout, stderr } = run(['echo', 'ran'], { options: [`--cwd=${directory}/gone\\n`] });
    assert.deepEqual(
      [status, stdout, stderr],
      [
        125,
        '',
        `forget: ${displayName(`${directory}/gone\\n`)}: this directory cannot be entered; the command was not started\n`,
      ],
    );
  });

  test('without a canary that holds the command does not run', { timeout: 30_000 }, () => {
    for (const [canary, outcome] of [
      ['/no/where', 'refused'],
      ['/dev/full', 'refused'],
      ['/dev/null', 'lost'],
    ]) {
      const { status, stdout, stderr } = run(['echo', 'ran'], { options: [`--canary=${canary}`] });
      assert.deepEqual([status, stdout, stderr], [1, '', `${outcome}\n`]);
    }
  });

  test('a signal before the command is let go ends all', { timeout: 60_000 }, async () => {
    for (const [signal, whom, end] of [
      ['SIGINT', 'group', 130],
      ['SIGTERM', 'forget', 143],
      ['SIGKILL', 'forget', 'SIGKILL'],
    ] as const) {
      const mark = `${directory}/held-${signal}`;
      const child = spawn(driver.forget, ['exec', '--hold', '--', 'echo', 'ran'], {
        detached: true,
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, FORGET_MARK: mark },
        timeout: 20_000,
      });
      let said = '';
      child.stdout.on('data', (chunk) => {
        said += chunk;
        if (said === 'held\n') process.kill(whom === 'group' ? -child.pid! : child.pid!, signal);
      });
      const [code, by] = await once(child, 'close');
      assert.deepEqual([said, code ?? by], ['held\n', end]);
      await noneMarked(mark, signal);
    }
  });

  test('a mount that nobody serves holds up neither the start nor the end by kill -9', {
    timeout: 30_000,
  }, async (t) => {
    if (!isRoot || !existsSync('/dev/fuse')) return t.skip('needs root and FUSE');
    mkdirSync(`${directory}/unserved`);
    const mark = `${directory}/mark-unserved`;
    const child = spawn(driver.forget, ['exec', `--unserved=${directory}/unserved`, '--', 'true'], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, FORGET_MARK: mark, PWD: `${directory}/unserved` },
    });
    const [said] = await once(child.stdout, 'data');
    assert.equal(`${said}`, 'spawned\n');
    await sleep(300);
    child.kill('SIGKILL');
    await once(child, 'close');
    await noneMarked(mark, 'unserved');
  });

  test('the environment is the caller’s plus what forget adds', { timeout: 30_000 }, () => {
    const said = pythonSays(`
import subprocess,os
env={b"PATH":b"/usr/bin:/bin:"+os.path.dirname(b"${process.execPath}"),b"A":b"\\xff\\n=x",b"PWD":os.getcwdb(),b"FORGET_ENTRY":b"f:9"}
out=subprocess.run([F,"exec","--","env","-0"],env=env,stdout=subprocess.PIPE).stdout
env.pop(b"FORGET_ENTRY"); env[b"FORGET_TEST"]=b"yes"
print(sorted(out.rstrip(b"\\0").split(b"\\0"))==sorted(k+b"="+v for k,v in env.items()))`);
    assert.equal(said, 'True\n');
  });

  test('signals that the caller ignores stay ignored, all others are at their default', {
    timeout: 30_000,
  }, () => {
    const state = ['-E', '^Sig(Ign|Blk)', '/proc/self/status'];
    const asTold = (before: string[]) => ({
      inside: run(['grep', ...state], { before }).stdout,
      bare: spawnSync([...before, 'grep'][0]!, [...before, 'grep', ...state].slice(1), { encoding: 'utf8' })
        .stdout,
    });
    const plain = asTold(['env']);
    assert.equal(plain.inside, plain.bare);
    const nohup = asTold(['nohup']);
    assert.match(nohup.inside, /SigIgn:\s*0000000000000001/);
    assert.equal(nohup.inside, nohup.bare);
  });

  test('under nohup the command survives the hang-up of forget’s group', { timeout: 30_000 }, async () => {
    const child = spawn(
      'nohup',
      [driver.forget, 'exec', '--', 'sh', '-c', 'echo up; sleep 1; echo through'],
      {
        detached: true,
        stdio: ['ignore', 'pipe', 'ignore'],
        timeout: 20_000,
      },
    );
    let said = '';
    child.stdout.on('data', (chunk) => {
      said += chunk;
      if (said === 'up\n') process.kill(-child.pid!, 'SIGHUP');
    });
    const code = await new Promise((resolve) => child.once('close', resolve));
    assert.deepEqual([said, code], ['up\nthrough\n', 0]);
  });

  test('a signal to forget alone is the command’s to handle', { timeout: 30_000 }, async () => {
    const script = 'trap "echo got; exit 9" TERM; echo up; while :; do sleep 0.05; done';
    const child = spawn(driver.forget, ['exec', '--', 'sh', '-c', script], { timeout: 20_000 });
    let said = '';
    child.stdout.on('data', (chunk) => {
      said += chunk;
      if (said === 'up\n') child.kill('SIGTERM');
    });
    const code = await new Promise((resolve) => child.once('close', resolve));
    assert.deepEqual([said, code], ['up\ngot\n', 9]);
  });

  test('kill -9 of forget at any moment leaves no command running', { timeout: 90_000 }, async () => {
    for (let round = 0; round < 40; round++) {
      const mark = `${directory}/mark-${round}`;
      const child = spawn(driver.forget, ['exec', '--', 'sleep', '1234'], {
        stdio: 'ignore',
        env: { ...process.env, FORGET_MARK: mark },
      });
      // From before Node has started to well after the command has.
      await sleep(round * 5);
      child.kill('SIGKILL');
      await new Promise((resolve) => child.once('exit', resolve));
      await noneMarked(mark, `after ${round * 5} ms`);
    }
  });

  test('the command of root lacks what could unmount the view, and nothing else', {
    timeout: 30_000,
  }, (t) => {
    if (!isRoot) return t.skip('needs root');
    const caps = (text: string) => BigInt(`0x${/CapEff:\s*([0-9a-f]+)/.exec(text)![1]}`);
    const inside = caps(run(['cat', '/proc/self/status'], { options: ['--drop=mount-capabilities'] }).stdout);
    const lost = (1n << 21n) | (1n << 19n);
    assert.equal(inside, caps(readFileSync('/proc/self/status', 'utf8')) & ~lost);
    const unmount = run(['umount', '/proc'], { options: ['--drop=mount-capabilities', '--private'] });
    assert.notEqual(unmount.status, 0);
  });

  test('an ordinary user keeps the own uid, has no capability and cannot unmount', {
    timeout: 30_000,
  }, (t) => {
    if (!isRoot) return t.skip('needs root to become another user');
    const options = ['--drop=all-capabilities', '--private'];
    const inside = run(['sh', '-c', 'id -u; id -g; grep -E "Cap(Inh|Prm|Eff|Amb)" /proc/self/status'], {
      before: ordinary,
      options,
    });
    assert.equal(
      inside.stdout.replace(/\s+/g, ' '),
      `1001 1001 ${['Inh', 'Prm', 'Eff', 'Amb'].map((c) => `Cap${c}: 0000000000000000 `).join('')}`,
      inside.stderr,
    );
    assert.notEqual(run(['umount', '/proc'], { before: ordinary, options }).status, 0);
  });

  test('bubblewrap runs inside, as root and as an ordinary user', { timeout: 30_000 }, (t) => {
    if (!existsSync('/usr/bin/bwrap')) return t.skip('needs bubblewrap');
    const sandbox = [
      'bwrap',
      '--ro-bind',
      '/',
      '/',
      '--dev',
      '/dev',
      '--unshare-all',
      '--proc',
      '/proc',
      'echo',
      'in',
    ];
    const cases = [{ before: [] as string[], drop: isRoot ? 'mount-capabilities' : 'all-capabilities' }];
    if (isRoot) cases.push({ before: ordinary, drop: 'all-capabilities' });
    for (const { before, drop } of cases) {
      const { stdout, stderr } = run(sandbox, { before, options: [`--drop=${drop}`, '--private'] });
      assert.equal(stdout, 'in\n', stderr);
    }
  });

  test('bin/forget finds itself through links, also from PATH and below an odd directory', {
    timeout: 30_000,
  }, () => {
    const odd = `${directory}/odd $(x) 'q"\n`;
    mkdirSync(`${odd}/bin`, { recursive: true });
    symlinkSync(driver.forget, `${odd}/bin/one`);
    symlinkSync('one', `${odd}/bin/forget`);
    for (const forget of [`${odd}/bin/forget`, './forget']) {
      const { stdout, stderr } = spawnSync(forget, ['exec', '--', 'echo', 'found'], {
        cwd: `${odd}/bin`,
        encoding: 'utf8',
        timeout: 20_000,
      });
      assert.equal(stdout, 'found\n', stderr);
    }
    const env = { ...process.env, PATH: `${odd}/bin:${process.env.PATH}` };
    assert.equal(
      spawnSync('forget', ['exec', '--', 'echo', 'found'], { env, encoding: 'utf8', timeout: 20_000 }).stdout,
      'found\n',
    );
  });

  test('without node bin/forget says so, with 125', () => {
    const { status, stderr } = spawnSync('/bin/sh', [driver.forget, 'exec', '--', 'true'], {
      env: { PATH: '/nowhere' },
      encoding: 'utf8',
    });
    assert.deepEqual(
      [status, stderr],
      [125, 'forget: node is not in PATH: install Node.js 20.19 or later\n'],
    );
  });
});

async function noneMarked(mark: string, when: string): Promise<void> {
  const deadline = performance.now() + 5000;
  while (marked(mark).length > 0 && performance.now() < deadline) await sleep(5);
  assert.deepEqual(marked(mark), [], when);
}

/** Processes other than zombies that were started with this mark in their environment. */
function marked(mark: string): string[] {
  const lookAt = (pid: string): string | undefined => {
    try {
      if (/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))) return undefined;
      if (!readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`FORGET_MARK=${mark}`))
        return undefined;
      return `${pid} ${readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ')}`;
    } catch {
      return undefined; // ended, or another user's
    }
  };
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(lookAt)
    .filter((line) => line !== undefined);
}
