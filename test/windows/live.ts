/** A mount without a window, and its windows by the control socket: the form of most tests here. */
import assert from 'node:assert/strict';
import { request, type WindowStatus } from '../../src/window/control.ts';
import type { WindowReport } from '../../src/window/report.ts';
import { withMounts } from '../cases/mounts.ts';
import type { Workspace, WorkspaceShape } from '../harness/forget.ts';

export interface Live {
  workspace: Workspace;
  open(name?: string): Promise<string>;
  close(name?: string): Promise<WindowReport>;
  status(): Promise<WindowStatus>;
  forget(...argv: string[]): ReturnType<Parameters<Parameters<typeof withMounts>[1]>[1]['run']>;
}

/** The workspace is mounted in place, with options of `forget mount`, and no window is open. */
export function onMount(
  title: string,
  body: (live: Live) => Promise<void>,
  { options = [], shape = {} }: { options?: readonly string[]; shape?: WorkspaceShape } = {},
): void {
  withMounts(
    title,
    async (workspace, forget) => {
      const mounted = await forget.run('mount', '--json', '--no-window', ...options, workspace.path);
      assert.equal(mounted.code, 0, mounted.stderr);
      const { id } = JSON.parse(mounted.stdout) as { id: string };
      await body({
        workspace,
        open: async (name) => (await request(id, 'open', name === undefined ? {} : { name })).name,
        close: async (name) => (await request(id, 'close', name === undefined ? {} : { name })).report,
        status: () => request(id, 'status', {}),
        forget: forget.run,
      });
      const unmounted = await forget.run('unmount', workspace.path);
      assert.equal(unmounted.code, 0, unmounted.stderr);
    },
    shape,
  );
}
