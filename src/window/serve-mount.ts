/** Serving a mount until it is unmounted: by `forget unmount`, a signal, or by hand. */
import { unmountForced } from '../fuse/mount.ts';
import { cstring, displayName } from '../sys/bytes.ts';
import { UMOUNT_NOFOLLOW } from '../sys/constants.ts';
import { EBUSY, errnoName } from '../sys/errno.ts';
import { errno, umount2 } from '../sys/libc.ts';
import { account, writeReport } from './account.ts';
import { serveControl } from './control.ts';
import { Failure } from './failure.ts';
import { startGuardian } from './guardian.ts';
import { reportLines } from './report.ts';
import { say } from './say.ts';
import { selfTest } from './self-test.ts';
import type { WindowSettings } from './settings.ts';
import { Window } from './window.ts';
import { newId } from './window-id.ts';
import { statusOf } from './window-status.ts';

/**
 * Mounts, calls `ready` with the window's id and lines for the person, and resolves with the exit code when the mount
 * is gone. Throws with nothing mounted.
 */
export async function serveMount(
  settings: WindowSettings,
  mountpoint: string,
  ready: (id: string, notices: string[]) => void,
): Promise<number> {
  process.chdir('/');
  const id = newId();
  const window = new Window(settings, mountpoint);
  let guardian: { dismiss(): void } | undefined;
  try {
    await window.mount();
    guardian = startGuardian(mountpoint);
    selfTest(window.canary, mountpoint, window.lower, settings.readonly);
    const started = Date.now();
    let settle: (lines: string[]) => void = () => {};
    const closed = new Promise<string[]>((resolve) => {
      settle = resolve;
    });
    const unmount = async (force: boolean): Promise<{ lines: string[] }> => {
      takeAway(mountpoint, force);
      return { lines: await closed };
    };
    const control = await serveControl({
      id,
      peerIsInside: () => false,
      handlers: {
        status: async () => {
          const about = {
            id,
            kind: 'mount',
            namespace: 'shared',
            mountpoint: displayName(mountpoint),
          } as const;
          return { ...(await statusOf(window, displayName(settings.workspace))), ...about };
        },
        unmount: ({ force }) => unmount(force),
      },
    });
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => unmountForced(mountpoint));
    }
    const notice = window.trackedNotice();
    ready(id, notice && !settings.quiet ? [notice] : []);
    await window.server.ended;
    const report = await account(window, settings, started, { kind: 'mount' });
    const lines = settings.quiet ? report.defects : reportLines(report, settings.verbose);
    const unwritten = settings.report !== undefined ? writeReport(settings.report, report) : undefined;
    settle(unwritten ? [...lines, unwritten] : lines);
    say(lines);
    // Whoever asked for the end gets its answer first.
    await new Promise((resolve) => setTimeout(resolve, 50));
    control.close();
    return 0;
  } finally {
    unmountForced(mountpoint);
    guardian?.dismiss();
    await window.end();
  }
}

function takeAway(mountpoint: string, force: boolean): void {
  if (force) {
    unmountForced(mountpoint);
    return;
  }
  if (umount2(cstring(mountpoint), UMOUNT_NOFOLLOW) === 0) return;
  if (errno() !== EBUSY) throw new Failure(`unmounting gave ${errnoName(errno())}`);
  throw new Failure(`${displayName(mountpoint)} is in use: end the programs that work in it, or say --force`);
}
