// The window's own writes come back as events: they are recognised, and cost no cache.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { withWorkspace } from '../cases/window.ts';
import { withBusyProcessors } from '../harness/busy.ts';
import type { Workspace } from '../harness/forget.ts';
import { onTmpfs } from '../harness/tmpfs.ts';
import { withViews } from './views.ts';

const work = `
cp -r src copy; cp -r copy again; mv again moved; rm -rf copy
mkdir repo && cd repo && git init -q -b one .
i=0; while [ $i -lt 100 ]; do echo one $i > f$i; i=$((i+1)); done
git add -A && git commit -qm one && git checkout -qb two
i=0; while [ $i -lt 100 ]; do echo two $i > f$i; i=$((i+1)); done
git commit -qam two && git checkout -q one && git checkout -q two
chmod 640 f1; touch f2; truncate -s 3 f3; ln f4 link4; ln -s f5 link5; mkdir d; rmdir d; setfattr -n user.x -v y f6; echo more >> f7
`;

/**
 * After a wait for a disk, writes are done by pool threads for a while, and an event may be read before the write that it
 * tells of is known to be forget's own: that costs a notification. Memory makes nobody wait.
 */
async function inMemory({ top, path }: Workspace, body: () => Promise<void>): Promise<void> {
  const aside = join(top, 'aside');
  execFileSync('cp', ['-a', path, aside]);
  await onTmpfs(path, 'size=64M', async () => {
    execFileSync('cp', ['-a', `${aside}/.`, path]);
    await body();
  });
}

for (const { machine, during } of [
  { machine: 'a quiet machine', during: (body: () => Promise<void>) => body() },
  { machine: 'a busy machine', during: withBusyProcessors },
])
  withWorkspace(
    `copying, renaming, deleting and git checkouts inside tell the kernel nothing, and leave its page cache alone, on ${machine}`,
    async (workspace) => {
      const inWindow = () =>
        withViews(workspace, async ({ inside, status }) => {
          // Watches have begun, and what was known before was compared.
          await inside.run('sh', '-c', 'ls -lR . > /dev/null');
          await delay(300);
          const before = status();
          await inside.run('sh', '-ec', work);
          await delay(300);
          const after = status();
          const said = after.notifications - before.notifications;
          assert.ok(said <= 5, `${said} notifications`);
          // The first reading gets what the writing left (AUTO_INVAL_DATA drops it once), the second the access times that
          // the first one changed; from then on all is cached.
          const readAll = ['sh', '-c', 'cat repo/f* moved/*.* > /dev/null; ls -lR repo moved > /dev/null'];
          await inside.run(...readAll);
          await inside.run(...readAll);
          await delay(200);
          const warm = status();
          await inside.run(...readAll);
          const again = status();
          const { READ = 0, LOOKUP = 0, GETATTR = 0 } = warm.requests;
          assert.equal((again.requests.READ ?? 0) - READ, 0, 'READ of what was read before');
          assert.ok((again.requests.LOOKUP ?? 0) - LOOKUP < 10, 'LOOKUP of what is known');
          assert.ok(
            (again.requests.GETATTR ?? 0) - GETATTR < 20,
            `${(again.requests.GETATTR ?? 0) - GETATTR} GETATTR of what is known`,
          );
          assert.equal(again.notifications - after.notifications, 0);
        });
      await inMemory(workspace, () => during(inWindow));
    },
    { users: ['root'] },
  );

withWorkspace(
  "two windows on one workspace see one another's unprotected writes within 100 ms, and not the protected ones",
  async (workspace) => {
    writeFileSync(join(workspace.path, 'src/shared'), 'old');
    await withViews(workspace, async ({ inside: one }) => {
      await withViews(
        workspace,
        async ({ inside: other, outside }) => {
          const paths = ['src', 'src/shared', 'src/new', 'src/tool.sh', 'memory/old.md', 'memory'];
          const script = `echo ONE > src/new; echo longer than it was > src/shared; rm src/tool.sh; echo secret > memory/old.md; echo secret > memory/x`;
          for (const [writer, reader] of [
            [one, other],
            [other, one],
          ] as const) {
            const before = await outside.states(paths);
            const { 'memory/old.md': secret, memory: _, ...shared } = before;
            assert.deepEqual((await reader.until(shared, 3)).left, {});
            await writer.run('sh', '-c', script);
            const written = Number(process.hrtime.bigint()) / 1e6;
            const wanted = await outside.states(paths.slice(0, 4));
            const seen = await reader.until(wanted, 3);
            assert.deepEqual(seen.left, {});
            assert.ok(seen.at - written < 100, `${seen.at - written} ms`);
            if (writer === one)
              assert.deepEqual((await reader.states(['memory/old.md']))['memory/old.md'], secret);
            await writer.run('sh', '-c', 'rm src/new; echo old > src/shared; cp src/main.py src/tool.sh');
          }
        },
        { name: 'second' },
      );
    });
  },
);
