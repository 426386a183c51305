// A change is seen as a whole: never old size and new bytes, never half of a file that was replaced at once.
import assert from 'node:assert/strict';
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  renameSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { withWorkspace } from '../cases/window.ts';
import { programFor, withViews } from './views.ts';

/** As whole.py checks it: its number in each line, as many lines as the number says. */
const contentOf = (version: number) => `${version}\n`.repeat((version % 5000) + 1);

withWorkspace(
  'of a file that is replaced by renames all the time, each reading gets one version as a whole',
  async (workspace) => {
    const at = (path: string) => join(workspace.path, path);
    const put = (version: number) => {
      writeFileSync(at('replaced.tmp'), contentOf(version));
      renameSync(at('replaced.tmp'), at('replaced'));
      mkdirSync(at(`v${version % 3}`), { recursive: true });
      writeFileSync(at(`v${version % 3}/a.tmp`), contentOf(version));
      renameSync(at(`v${version % 3}/a.tmp`), at(`v${version % 3}/a`));
      symlinkSync(`v${version % 3}`, at('pair.tmp'));
      renameSync(at('pair.tmp'), at('pair'));
    };
    put(0);
    await withViews(workspace, async ({ inside }) => {
      const stop = join(workspace.top, 'stop');
      await inside.start('python3', programFor(workspace, 'whole.py'), stop);
      await inside.start('python3', programFor(workspace, 'whole.py'), stop);
      const until = performance.now() + 4000;
      let version = 1;
      for (; performance.now() < until; version++) {
        put((version * 7919) % 20_000);
        if (version % 5 === 0) await delay(1);
      }
      writeFileSync(stop, '');
      for (let i = 0; i < 2; i++) {
        const { wrong, versions } = JSON.parse(await inside.finish()) as {
          wrong: string[];
          versions: number;
        };
        assert.deepEqual(wrong, []);
        console.log(`${versions} of ${version} versions were seen`);
        assert.ok(versions > 20, `${versions} versions were seen`);
      }
    });
  },
  { shape: { empty: true } },
);

withWorkspace(
  'a file rewritten in place, longer, shorter or of the same length, is the new one as a whole when 100 ms have passed',
  async (workspace) => {
    const path = join(workspace.path, 'a');
    writeFileSync(path, contentOf(1));
    await withViews(workspace, async ({ inside, outside }) => {
      await inside.start(
        'sh',
        '-c',
        `while [ ! -e "$0" ]; do cat a > /dev/null; stat a > /dev/null; done`,
        join(workspace.top, 'stop'),
      );
      await inside.hold('@fd', 'a', 'fd');
      for (let version = 1; version <= 25; version++) {
        // In pieces, as an editor without atomic saves does, and with the reader in between.
        const content = Buffer.from(contentOf(version % 5 === 0 ? version + 4095 : version * 97));
        const fd = openSync(path, 'r+');
        if (version % 3 === 0) ftruncateSync(fd, 0);
        for (let from = 0; from < content.length; from += 4096) {
          writeSync(fd, content, from, Math.min(4096, content.length - from), from);
          if (from % 3 === 0) await delay(1);
        }
        ftruncateSync(fd, content.length);
        closeSync(fd);
        await delay(100);
        const { a } = await outside.states(['a']);
        assert.deepEqual(await inside.states(['a', '@fd']), { a, '@fd': a }, `version ${version}`);
      }
      writeFileSync(join(workspace.top, 'stop'), '');
      await inside.finish();
    });
  },
  { shape: { empty: true } },
);

withWorkspace(
  'a writer through a shared mapping outside is seen when it closes the file, however long ago its first write was',
  async (workspace) => {
    const at = (path: string) => join(workspace.path, path);
    writeFileSync(at('a'), 'x'.repeat(8192));
    const program = `
import mmap, sys
f = open("a", "r+b"); m = mmap.mmap(f.fileno(), 0); f.close()
for line in sys.stdin:
    if line == "end\\n": break
    m[0:4] = line[:4].encode(); print("ok", flush=True)
m.close(); print("closed", flush=True); sys.stdin.readline()`;
    const { spawn } = await import('node:child_process');
    const { createInterface } = await import('node:readline');
    const writer = spawn('python3', ['-c', program], {
      cwd: workspace.path,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: writer.stdout })[Symbol.asyncIterator]();
    const say = async (text: string) => {
      writer.stdin.write(`${text}\n`);
      await lines.next();
    };
    await say('one!');
    try {
      await withViews(workspace, async ({ inside, outside }) => {
        assert.deepEqual(await inside.states(['a']), await outside.states(['a']));
        await say('two!');
        await say('end');
        await delay(100);
        assert.deepEqual(await inside.states(['a']), await outside.states(['a']));
      });
    } finally {
      writer.stdin.end();
    }
  },
  { users: ['root'], shape: { empty: true } },
);
