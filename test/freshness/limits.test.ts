// What happens when the kernel's event queue overflows, and when it has no watch to give.
import assert from 'node:assert/strict';
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { withWorkspace } from '../cases/window.ts';
import { forgetFor } from '../harness/users.ts';
import { runWatched } from '../harness/watchdog.ts';
import { programFor, withViews } from './views.ts';

/** Nobody reads them meanwhile: the queue is full, whatever else happens. */
function overflow(directory: string): void {
  const most = Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'latin1'));
  const [a, b] = [join(directory, 'noise-a'), join(directory, 'noise-b')];
  writeFileSync(a, '');
  writeFileSync(b, '');
  // Two files in turn: the kernel folds equal events that follow one another.
  for (let i = 0; i <= most; i++) utimesSync(i % 2 ? a : b, i, i);
}

withWorkspace(
  'an overflow of the event queue is noticed, and all that it lost is seen inside',
  async (workspace) => {
    const at = (path: string) => join(workspace.path, path);
    for (let i = 0; i < 40; i++) {
      mkdirSync(at(`d${i}`));
      for (const name of ['written', 'replaced', 'deleted', 'renamed', 'chmod', 'same']) {
        writeFileSync(at(`d${i}/${name}`), `${name} ${i}`);
      }
      mkdirSync(at(`d${i}/moved`));
      writeFileSync(at(`d${i}/moved/in`), 'in');
    }
    await withViews(workspace, async ({ inside, outside, server, shown, status }) => {
      const names = ['written', 'replaced', 'deleted', 'renamed', 'renamed-to', 'chmod', 'same'];
      const more = ['absent', 'moved', 'moved/in', 'moved-to', 'moved-to/in', '.'];
      const paths = Array.from({ length: 40 }, (_, i) =>
        [...names, ...more].map((name) => `d${i}/${name}`),
      ).flat();
      await inside.hold('@written', 'd7/written', 'fd');
      await outside.hold('@written', 'd7/written', 'fd');
      await inside.hold('@map', 'd8/written', 'map');
      await outside.hold('@map', 'd8/written', 'map');
      const took = await shown([...paths, '@written', '@map', '.'], () => {
        process.kill(server, 'SIGSTOP');
        try {
          overflow(at('d0'));
          for (let i = 0; i < 40; i++) {
            writeFileSync(at(`d${i}/written`), `WRITTEN ${i}`);
            writeFileSync(at(`d${i}/tmp`), 'replacement');
            renameSync(at(`d${i}/tmp`), at(`d${i}/replaced`));
            unlinkSync(at(`d${i}/deleted`));
            renameSync(at(`d${i}/renamed`), at(`d${i}/renamed-to`));
            chmodSync(at(`d${i}/chmod`), 0o751);
            writeFileSync(at(`d${i}/absent`), 'no longer');
            renameSync(at(`d${i}/moved`), at(`d${i}/moved-to`));
          }
        } finally {
          process.kill(server, 'SIGCONT');
        }
      });
      console.log(`${took.toFixed(1)} ms after the overflow`);

      // What did not change is still in the page cache after one.
      const unchanged = paths.filter((path) => /^d\d+\/(same|written|moved-to\/in)$/.test(path));
      await shown(['d0/marker'], () => {
        process.kill(server, 'SIGSTOP');
        try {
          overflow(at('d0'));
          writeFileSync(at('d0/marker'), 'x');
        } finally {
          process.kill(server, 'SIGCONT');
        }
      });
      await delay(500);
      const read = status().requests.READ!;
      await shown(unchanged, () => {});
      const readAgain = status().requests.READ! - read;
      assert.ok(readAgain <= unchanged.length / 10, `${readAgain} of ${unchanged.length} were read again`);
    });
  },
  { users: ['root'], shape: { empty: true } },
);

withWorkspace(
  'where the kernel has no watch left, a change outside is seen after a second, and one in a watched directory at once',
  async (workspace) => {
    const at = (path: string) => join(workspace.path, path);
    for (let i = 0; i < 60; i++) {
      mkdirSync(at(`d${i}`));
      writeFileSync(at(`d${i}/a`), 'old');
    }
    const program = programFor(workspace, 'unwatched.py');
    const changed = join(workspace.top, 'changed');
    // A user namespace has limits of its own, and root's are those of the machine.
    const script = `echo 20 > /proc/sys/user/max_inotify_watches && exec "$0" exec --quiet -- python3 "$1" "$2"`;
    const argv = [
      'unshare',
      '--user',
      '--map-root-user',
      'sh',
      '-c',
      script,
      forgetFor(workspace.user),
      program,
      changed,
    ];
    const running = runWatched(argv, {
      user: workspace.user,
      cwd: workspace.path,
      started: (_pid, mark) => workspace.marks.push(mark),
    });
    const ready = `${changed}.ready`;
    for (;;) {
      const over = await Promise.race([running, new Promise((resolve) => setTimeout(resolve, 10))]);
      if (over) assert.fail(JSON.stringify(over));
      try {
        readFileSync(ready);
        break;
      } catch {
        // not yet
      }
    }
    for (let i = 0; i < 60; i++) {
      appendFileSync(at(`d${i}/a`), ' and new');
      writeFileSync(at(`d${i}/absent`), '');
    }
    writeFileSync(changed, '');
    const result = await running;
    assert.equal(result.code, 0, result.stderr);
    const { soon, late } = JSON.parse(result.stdout) as { soon: number; late: number };
    assert.ok(soon >= 10 && soon < 30, `${soon} of 60 directories were watched`);
    assert.equal(late, 60 - soon, 'the others were seen within a second and a half');
    rmSync(changed);
  },
  { users: ['ordinary'], shape: { empty: true } },
);
