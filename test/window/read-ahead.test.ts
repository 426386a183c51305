// A large file is read in requests as large as the machine lets this user have.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { withMounts } from '../cases/mounts.ts';
import { withWorkspace } from '../cases/window.ts';
import { withViews } from '../freshness/views.ts';

const SIZE = 16 << 20;
/** With 512 KiB at once 32, and a few while the kernel finds out that the file is read from end to end; with its own 128 KiB, 128. */
const MOST = 60;
const shape = {
  empty: true,
  prepare: (path: string) => writeFileSync(join(path, 'large'), Buffer.alloc(SIZE, 'x')),
};
/** The read-ahead is set 40 ms after the start. */
const STARTED_MS = 300;

withWorkspace(
  'root reads a large file in few requests, an ordinary user in more',
  async (workspace) => {
    await withViews(workspace, async ({ inside, status }) => {
      await delay(STARTED_MS);
      const before = status().requests.READ ?? 0;
      await inside.run('cat', 'large');
      const asked = status().requests.READ! - before;
      const most = workspace.user === 'root' ? MOST : 150;
      assert.ok(asked >= 16 && asked <= most, `${asked} READ for 16 MiB`);
    });
  },
  { shape },
);

withMounts(
  'so it does in a mount',
  async (workspace, forget) => {
    const mounted = await forget.run('mount', workspace.path);
    assert.equal(mounted.code, 0, mounted.stderr);
    const reads = async () => {
      const { stdout } = await forget.run('status', '--json');
      const windows = JSON.parse(stdout) as { workspace: string; requests: Record<string, number> }[];
      return windows.find((one) => one.workspace === workspace.path)!.requests.READ ?? 0;
    };
    const before = await reads();
    execFileSync('cat', [join(workspace.path, 'large')], { stdio: 'ignore' });
    const asked = (await reads()) - before;
    assert.ok(asked >= 16 && asked <= MOST, `${asked} READ for 16 MiB`);
    assert.equal((await forget.run('unmount', workspace.path)).code, 0);
  },
  shape,
);
