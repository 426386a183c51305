// 4 and three windows at once; 10 and 43: what outlives its command; E19, E20, 19, 20: changes from outside.
import assert from 'node:assert/strict';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { forgetExec, protectedDifferences, type Workspace } from '../harness/forget.ts';
import { markedProcesses } from '../harness/watchdog.ts';
import { inWindow, python, withWorkspace } from './window.ts';

withWorkspace(
  "three windows at once do not see each other's memory, and see each other's code",
  async (workspace) => {
    const script = (name: string) => `
echo ${name} > memory/shared.md; echo ${name} >> memory/old.md; echo ${name} > memory/${name}.md; echo ${name} > src/${name}.txt
for i in $(seq 200); do [ -e src/a.txt ] && [ -e src/b.txt ] && [ -e src/c.txt ] && break; sleep 0.05; done
sleep 0.3 # an outside change shows within a tenth of a second: these may have been empty when they were first seen
cat src/a.txt src/b.txt src/c.txt memory/shared.md; tail -n 1 memory/old.md; find memory -maxdepth 1 -name '[abc].md' -printf '%f\\n'
touch src/${name}.seen; for i in $(seq 200); do [ -e src/a.seen ] && [ -e src/b.seen ] && [ -e src/c.seen ] && break; sleep 0.05; done`;
    const results = await Promise.all(
      ['a', 'b', 'c'].map((name) => forgetExec(workspace, ['sh', '-c', script(name)])),
    );
    for (const [at, name] of ['a', 'b', 'c'].entries()) {
      assert.equal(results[at]!.stdout, `a\nb\nc\n${name}\n${name}\n${name}.md\n`, results[at]!.stderr);
    }
    assert.deepEqual(protectedDifferences(workspace), []);
    assert.ok(existsSync(join(workspace.path, 'src/c.seen')));
  },
);

// E3
withWorkspace(
  'windows that close out of order lose nothing, and writes after them are real',
  async (workspace) => {
    const wait = (file: string) => `for i in $(seq 400); do [ -e ../${file} ] && break; sleep 0.02; done`;
    const first = forgetExec(workspace, [
      'sh',
      '-c',
      `echo a >> memory/old.md; touch ../a; ${wait('b')}; tail -n 1 memory/old.md`,
    ]);
    const second = forgetExec(workspace, [
      'sh',
      '-c',
      `${wait('a')}; echo b >> memory/old.md; touch ../b; ${wait('closed')}; tail -n 1 memory/old.md; echo real > src/after.txt`,
    ]);
    assert.equal((await first).stdout, 'a\n');
    writeFileSync(join(workspace.top, 'closed'), '');
    assert.equal((await second).stdout, 'b\n');
    assert.deepEqual(protectedDifferences(workspace), []);
    assert.equal(readFileSync(join(workspace.path, 'src/after.txt'), 'utf8'), 'real\n');
    appendFileSync(join(workspace.path, 'memory/old.md'), 'real\n');
    assert.equal(
      readFileSync(join(workspace.path, 'memory/old.md'), 'utf8'),
      '# What I know\n\nAda prefers tabs.\nreal\n',
    );
  },
);

withWorkspace(
  'a window inside a window is refused in one line, or nests without a leak',
  async (workspace) => {
    const script =
      'echo outer >> memory/old.md; "$0" exec --quiet -- sh -c "echo inner >> memory/old.md; tail -n 2 memory/old.md"; echo "code $?"; tail -n 1 memory/old.md';
    const { forgetFor } = await import('../harness/users.ts');
    const result = await forgetExec(workspace, ['sh', '-c', script, forgetFor(workspace.user)], {
      timeout: 30_000,
    });
    assert.match(result.stdout, /^(outer\ninner\ncode 0\nouter\n|code 125\nouter\n)$/, result.stderr);
    assert.deepEqual(protectedDifferences(workspace), []);
  },
);

withWorkspace(
  'what a command leaves in the background is ended, and its writes reach nothing',
  async (workspace) => {
    const script = `(trap '' TERM HUP; exec 3>>memory/old.md; while :; do echo leak >&3; echo leak >> logs/a.jsonl; sleep 0.02; done) >/dev/null 2>&1 &
python3 -c '
import mmap, os, time
if os.fork() == 0:
    os.setsid()
    os.dup2(os.open("/dev/null", os.O_RDWR), 1); os.dup2(1, 2)
    with open("memory/big.bin", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
        while True:
            m[0:4] = b"leak"; time.sleep(0.01)'
sleep 0.3; echo done`;
    const result = await forgetExec(workspace, ['sh', '-c', script], { options: [], timeout: 30_000 });
    assert.equal(result.stdout, 'done\n');
    assert.equal(result.code, 0);
    assert.ok(result.milliseconds < 15_000, `closed within bounds: ${result.milliseconds} ms`);
    assert.match(result.stderr, /sh|python/, 'the leftovers are named');
    await delay(200);
    assert.deepEqual(markedProcesses(result.mark), []);
    assert.deepEqual(protectedDifferences(workspace), []);
  },
);

/** Starts a script in a window, lets it say when it is ready, changes the lower from outside, and lets it go on. */
async function changedOutside(
  workspace: Workspace,
  script: string,
  change: (path: string) => void,
  prints: string,
) {
  const running = forgetExec(
    workspace,
    ['sh', '-c', `ready() { touch ../ready; while [ ! -e ../go ]; do sleep 0.01; done; }\n${script}`],
    { timeout: 30_000 },
  );
  const done = running.then(() => true);
  while (!existsSync(join(workspace.top, 'ready')) && !(await Promise.race([done, delay(10)]))) {}
  change(workspace.path);
  writeFileSync(join(workspace.top, 'go'), '');
  await delay(0);
  const result = await running;
  assert.equal(result.stdout, prints, result.stderr);
}

withWorkspace('a change outside shows inside within a tenth of a second or so', async (workspace) => {
  const script = `cat src/main.py README.md; ls docs src/none memory/people 2>/dev/null
ready; sleep 0.3
cat src/main.py README.md; stat -c %s src/big.txt; ls docs src/none memory/people 2>/dev/null; cat memory/people/ada.md; ls src/tool.sh`;
  await changedOutside(
    workspace,
    `exec 2>/dev/null\nstat -c %s src/big.txt; cat src/none\n${script}; true`,
    (path) => {
      writeFileSync(join(path, 'src/main.py'), 'changed outside\n');
      writeFileSync(join(path, 'README.tmp'), 'replaced outside\n');
      renameSync(join(path, 'README.tmp'), join(path, 'README.md'));
      appendFileSync(join(path, 'src/big.txt'), 'x'.repeat(1 << 20));
      writeFileSync(join(path, 'docs/new.md'), 'new outside\n');
      mkdirSync(join(path, 'src/none'));
      writeFileSync(join(path, 'src/none/x'), '');
      appendFileSync(join(path, 'memory/people/ada.md'), 'changed outside\n');
      rmSync(join(path, 'src/tool.sh'));
    },
    `260000
print('hello, world')
# A workspace
docs:
DELIVERABLES.md

memory/people:
ada-again.md
ada.md
charles.md
changed outside
replaced outside
1308576
docs:
DELIVERABLES.md
new.md

memory/people:
ada-again.md
ada.md
charles.md

src/none:
x
Ada: born 1815.
changed outside
`,
  );
  writeFileSync(join(workspace.path, 'src/tool.sh'), '');
});

withWorkspace('a file open inside shows what is written to it outside', async (workspace) => {
  await changedOutside(
    workspace,
    `exec 3<src/main.py; read -r line <&3; echo "$line"; ready; sleep 0.3; stat -L -c %s /proc/self/fd/3; wc -c < src/main.py; tail -c 3 src/main.py; echo`,
    (path) => appendFileSync(join(path, 'src/main.py'), 'y'.repeat(1 << 20)),
    "print('hello, world')\n1048598\n1048598\nyyy\n",
  );
});

withWorkspace(
  'what the window wrote stays what it shows, whatever happens to the lower',
  async (workspace) => {
    await changedOutside(
      workspace,
      `echo inside > memory/old.md; rm memory/empty.md; ready; sleep 0.3; cat memory/old.md; ls memory/empty.md 2>/dev/null || echo absent`,
      (path) => {
        writeFileSync(join(path, 'memory/old.md'), 'outside\n');
        writeFileSync(join(path, 'memory/empty.md'), 'outside\n');
      },
      'inside\nabsent\n',
    );
    assert.equal(readFileSync(join(workspace.path, 'memory/old.md'), 'utf8'), 'outside\n');
  },
);

inWindow('a watcher inside is told of changes made inside', {
  script: python(`
import os, subprocess, time
w = subprocess.Popen(["inotifywait", "-m", "-q", "-r", "--format", "%w%f %e", "memory", "src"], stdout=subprocess.PIPE, text=True)
time.sleep(0.5)
for top in ("memory", "src"):
    with open(top + "/watched", "w") as f: f.write("x")
    os.rename(top + "/watched", top + "/renamed")
    os.unlink(top + "/renamed")
time.sleep(0.3)
w.terminate()
lines = w.stdout.read().split("\\n")
for top in ("memory", "src"):
    for event in ("watched CREATE", "watched MODIFY", "watched MOVED_FROM", "renamed MOVED_TO", "renamed DELETE"):
        print(top, event, f"{top}/{event}" in lines)
`),
  prints: ['memory', 'src']
    .flatMap((top) =>
      ['watched CREATE', 'watched MODIFY', 'watched MOVED_FROM', 'renamed MOVED_TO', 'renamed DELETE'].map(
        (event) => `${top} ${event} True\n`,
      ),
    )
    .join(''),
});

inWindow('twenty windows one after the other leave nothing', {
  script: 'true',
  prints: '',
  afterwards: async (workspace) => {
    for (let i = 0; i < 20; i++) {
      const result = await forgetExec(workspace, [
        'sh',
        '-c',
        'echo x >> memory/old.md; exec 3<src/main.py; cd src; cat main.py',
      ]);
      assert.equal(result.stdout, "print('hello, world')\n", result.stderr);
    }
    assert.deepEqual(protectedDifferences(workspace), []);
  },
});
