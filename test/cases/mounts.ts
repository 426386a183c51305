/** The form of a test of `forget mount`: a workspace, `forget` outside it, and all that is mounted ended afterwards. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Workspace, WorkspaceShape } from '../harness/forget.ts';
import { forgetFor } from '../harness/users.ts';
import {
  forgetMounts,
  newMark,
  processesWith,
  programOf,
  runWatched,
  signalAll,
} from '../harness/watchdog.ts';
import { withWorkspace } from './window.ts';

export interface Forget {
  run(...argv: string[]): ReturnType<typeof runWatched>;
  mounted(): string[];
  processes(): number[];
}

/** `forget` outside the workspace, with one mark for the daemons it leaves behind; all ended afterwards. */
export function withMounts(
  title: string,
  body: (workspace: Workspace, forget: Forget) => Promise<void>,
  shape: WorkspaceShape = {},
): void {
  withWorkspace(
    title,
    async (workspace) => {
      const mark = newMark();
      const forget: Forget = {
        run: (...argv) =>
          runWatched([forgetFor('root'), ...argv], {
            user: 'root',
            cwd: '/',
            timeout: 20_000,
            env: { FORGET_TEST_MOUNT: mark },
          }),
        // In this namespace: one that another window has made in the meantime keeps a copy until that ends.
        mounted: () =>
          forgetMounts([process.pid])
            .map((mount) => mount.mountpoint)
            .filter((path) => path.startsWith(workspace.top)),
        processes: () => processesWith('FORGET_TEST_MOUNT', mark),
      };
      try {
        await body(workspace, forget);
      } finally {
        for (const path of forget.mounted()) execFileSync('umount', ['-l', path]);
        signalAll(forget.processes(), 'SIGKILL');
      }
    },
    { users: ['root'], shape },
  );
}

/** The processes that serve a mount, without those that watch over them. */
export const servers = (forget: Forget) => forget.processes().filter((pid) => programOf(pid) === 'node');

export async function gone(forget: Forget): Promise<void> {
  for (let i = 0; i < 60 && (forget.mounted().length > 0 || forget.processes().length > 0); i++)
    await delay(50);
  assert.deepEqual([forget.mounted(), forget.processes()], [[], []], 'a mount or process is left');
}

export const read = (workspace: Workspace, path: string) =>
  execFileSync('cat', [join(workspace.path, path)], { encoding: 'utf8', timeout: 10_000 });
export const sh = (script: string, cwd: string) =>
  execFileSync('sh', ['-c', script], { encoding: 'utf8', cwd, timeout: 20_000 });
