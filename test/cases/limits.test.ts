// E10, E35, 29: the upper is bounded, says so, and is gone with its window.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { forgetExec, protectedDifferences } from '../harness/forget.ts';
import { asUser, environmentOf, forgetFor } from '../harness/users.ts';
import { inWindow, python, withWorkspace } from './window.ts';

const full = `
import errno
def attempt(path, mode, size):
    try:
        with open(path, mode, buffering=0) as f:
            for _ in range(size // 4096):
                f.write(b"x" * 4096)
        print(path, "written")
    except OSError as e:
        print(path, errno.errorcode[e.errno])
`;

inWindow('a full upper answers ENOSPC to the writer, and the window goes on', {
  script: python(`${full}
attempt("memory/big", "wb", 2 << 20)
import os
os.unlink("memory/big")
attempt("memory/small", "wb", 128 << 10)
attempt("src/big", "wb", 2 << 20)
print(open("memory/old.md").read(), end="")
`),
  prints: 'memory/big ENOSPC\nmemory/small written\nsrc/big written\n# What I know\n\nAda prefers tabs.\n',
  exec: { options: ['--quiet', '--upper-size', '1M'] },
  lower: { 'memory/big': null, 'memory/small': null },
});

inWindow('an append that does not fit leaves the memory readable as it was', {
  script: python(`${full}
before = open("memory/old.md").read()
attempt("memory/old.md", "ab", 1 << 20)
print(open("memory/old.md").read().startswith(before))
`),
  prints: 'memory/old.md ENOSPC\nTrue\n',
  exec: { options: ['--quiet', '--upper-size', '256K'] },
});

withWorkspace('the report of a full upper names the limit', async (workspace) => {
  const result = await forgetExec(workspace, ['sh', '-c', 'head -c 2000000 /dev/zero > memory/big || true'], {
    options: ['--upper-size', '1M'],
  });
  assert.equal(result.code, 0);
  assert.match(result.stderr, /full|ENOSPC|no space/i);
  assert.match(result.stderr, /full at 1(\.0)? ?Mi?B?\b/);
  assert.deepEqual(protectedDifferences(workspace), []);
});

function sharedMemory(): number {
  return Number(/^Shmem:\s+(\d+) kB/m.exec(readFileSync('/proc/meminfo', 'utf8'))![1]) * 1024;
}

withWorkspace('the RAM of a window is given back when forget is killed', async (workspace) => {
  const before = sharedMemory();
  const argv = asUser(workspace.user, [
    forgetFor(workspace.user),
    'exec',
    '--quiet',
    '--',
    'sh',
    '-c',
    'head -c 300000000 /dev/zero > memory/big; echo full; sleep 60',
  ]);
  const child = spawn(argv[0]!, argv.slice(1), {
    cwd: workspace.path,
    env: environmentOf(workspace.user),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  await Promise.race([new Promise((resolve) => child.stdout.once('data', resolve)), ended]);
  const filled = sharedMemory() - before;
  child.kill('SIGKILL');
  await ended;
  let left = filled;
  for (let i = 0; i < 50 && left > 100e6; i++) {
    await delay(100);
    left = sharedMemory() - before;
  }
  assert.ok(filled > 200e6, `the upper is in RAM: ${filled} bytes more shared memory`);
  assert.ok(left < 100e6, `${left} bytes of shared memory more than before`);
  assert.deepEqual(protectedDifferences(workspace), []);
});
