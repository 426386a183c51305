/** Serving a mount until it is unmounted: by `forget unmount`, a signal, or by hand. */
import { setTimeout as sleep } from 'node:timers/promises';
import { displayName } from '../sys/bytes.ts';
import { WNOHANG, waitpid } from '../sys/spawn.ts';
import { account, accountOf, writeReport } from './account.ts';
import { findLauncher } from './command.ts';
import { type CloseAnswer, serveControl, type WindowStatus } from './control.ts';
import { Failure } from './failure.ts';
import type { Outcome } from './gate.ts';
import { lookingAt } from './looking.ts';
import { type MountGuardian, startGuardian } from './mount-guardian.ts';
import { bySystemCall, type Mounter } from './mounter.ts';
import { forgetDeviceAt } from './mountinfo.ts';
import { namespaceKind } from './namespace.ts';
import { type Prefetch, prefetchLater } from './prefetch.ts';
import { readFurtherAhead } from './read-ahead.ts';
import { reportLines } from './report.ts';
import { say } from './say.ts';
import { testInChild } from './self-test-child.ts';
import type { WindowSettings } from './settings.ts';
import { Window } from './window.ts';
import { newId } from './window-id.ts';
import { statusOf } from './window-status.ts';
import { refuseOwnPrograms } from './workspace.ts';

const ANSWERS_WITHIN_MS = 5000;
export const CLOSING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The window that a mount begins with, if `open`. */
export interface FirstWindow {
  open: boolean;
  /** Default "1". */
  name: string | undefined;
}

/**
 * Mounts, calls `ready` with the window's id and lines for the person, and resolves with the exit code when the mount
 * is gone. Throws with nothing mounted. Either way nothing of it is left in this process.
 */
export async function serveMount(
  settings: WindowSettings,
  mountpoint: string,
  first: FirstWindow,
  ready: (id: string, notices: string[]) => void,
): Promise<number> {
  process.chdir('/');
  const id = newId();
  const mounter = await mounterHere();
  const launcher = findLauncher();
  const window = new Window(settings, mountpoint, mounter);
  let guardian: MountGuardian | undefined;
  let prefetch: Prefetch | undefined;
  const mounts: { mountpoint: string; device: string }[] = [];
  const close = async () => {
    // First: nobody who unmounts has to wait for an answer.
    window.end();
    for (const [i, place] of window.mountpoints.entries()) {
      // Where it was taken away by hand, what shows there now is not this window's to unmount.
      const shown = forgetDeviceAt(place);
      if (shown !== undefined && shown === (mounts[i]?.device ?? shown)) await mounter.detach(place);
    }
  };
  const onSignal = () => void close();
  try {
    for (const place of window.mountpoints) refuseOwnPrograms(place, Object.values(launcher));
    guardian = await startGuardian(launcher, window.mountpoints, mounter.detachCommand);
    await window.mount();
    for (const place of window.mountpoints) {
      const device = forgetDeviceAt(place);
      if (device === undefined) throw new Failure(`the mount at ${displayName(place)} is gone already`);
      mounts.push({ mountpoint: place, device });
    }
    guardian.guard(mounts);
    const outcomes: (Outcome | undefined)[] = [];
    for (const path of window.canaryPaths) outcomes.push(await testInChild(path, window.canary.token));
    window.tested(outcomes);
    for (const { device } of mounts) readFurtherAhead(device);
    prefetch = prefetchLater({ window, launcher, workspace: mountpoint, adopt });
    const windows = await windowsOf(window, settings, first);
    const started = Date.now();
    let settle: (lines: string[]) => void = () => {};
    const closed = new Promise<string[]>((resolve) => {
      settle = resolve;
    });
    const asked = new Set<Promise<unknown>>();
    const unmount = async (force: boolean): Promise<{ lines: string[] }> => {
      if (force) await close();
      else {
        await prefetch?.dismiss();
        await window.quiet();
        const standing = window.mountpoints.filter((place) => forgetDeviceAt(place) !== undefined);
        // All or none: one root alone would be half a window.
        for (const place of standing.length > 1 ? standing : []) {
          if (await mounter.isBusy(place)) throw inUse(place);
        }
        for (const [i, place] of standing.entries()) {
          if (await mounter.unmount(place)) continue;
          if (i === 0) throw inUse(place);
          // Somebody came in since, or nobody can say beforehand (fusermount3).
          await close();
        }
      }
      // Another mount namespace may have a copy of the mount (unshare, a container), which keeps the connection up.
      window.end();
      return { lines: await closed };
    };
    const control = await serveControl({
      id,
      // Everybody sees the mount: there is no inside.
      peerIsInside: () => false,
      handlers: {
        looking: lookingAt(window.looked),
        status: async () => {
          const about = {
            id,
            kind: 'mount',
            namespace: 'shared',
            mountpoint: displayName(mountpoint),
            windows: windows.list(),
          } as const;
          return { ...statusOf(window, displayName(settings.workspace)), ...about };
        },
        unmount: ({ force }) => {
          const answer = unmount(force);
          asked.add(answer);
          return answer;
        },
        open: (name) => windows.open(name),
        close: (name) => windows.close(name),
      },
    });
    for (const signal of CLOSING) process.on(signal, onSignal);
    const notices = [...mounter.notices(), ...window.notices()];
    ready(id, settings.quiet ? [] : notices);
    await window.ended;
    await window.quiet();
    const report = await account(window, settings, started, [], { kind: 'mount' });
    const lines = settings.quiet ? report.defects : reportLines(report, settings.verbose);
    const unwritten = settings.report !== undefined ? writeReport(settings.report, report) : undefined;
    // Whoever unmounted may mount again at once, and nobody is to have the workspace open then.
    await window.leaveLower();
    settle(unwritten ? [...lines, unwritten] : lines);
    say(lines);
    // Whoever asked for the end gets its answer first, which may have to wait for the kernel's umount.
    await Promise.race([Promise.allSettled(asked), sleep(ANSWERS_WITHIN_MS, undefined, { ref: false })]);
    await sleep(50);
    control.close();
    return 0;
  } finally {
    await close();
    for (const signal of CLOSING) process.off(signal, onSignal);
    void prefetch?.dismiss();
    guardian?.dismiss();
    window.end();
    await window.release();
  }
}

/** A child that Node knows nothing of. */
function adopt(pid: number): () => boolean {
  const status = Buffer.alloc(4);
  let running = true;
  return () => {
    running &&= waitpid(pid, status, WNOHANG) === 0;
    return running;
  };
}

interface Windows {
  list(): WindowStatus['windows'];
  open(name: string | undefined): Promise<{ name: string }>;
  close(name: string | undefined): Promise<CloseAnswer>;
}

/** The windows of the mount, which was tested with one open. */
async function windowsOf(window: Window, settings: WindowSettings, first: FirstWindow): Promise<Windows> {
  const name = first.name ?? (first.open ? '1' : 'test');
  if (settings.driver === 'fuse-native') return fixedWindow({ name, opened: window.opened.toISOString() });
  const { LiveWindows } = await import('./live-windows.ts');
  const live = new LiveWindows(window.servers, { name, opened: window.opened });
  if (!first.open) await live.close(undefined);
  return {
    list: () => live.list().map((one) => ({ name: one.name, opened: one.opened.toISOString() })),
    open: async (wanted) => ({ name: (await live.open(wanted)).name }),
    close: async (wanted) => {
      const report = accountOf(window, settings, await live.close(wanted));
      return { lines: settings.quiet ? report.defects : reportLines(report, settings.verbose), report };
    },
  };
}

/** libfuse keeps pages and names that it cannot be told to drop. */
function fixedWindow(one: WindowStatus['windows'][number]): Windows {
  const refuse = async () => {
    throw new Failure(
      'with --driver fuse-native a mount has one window from its beginning to its end: "forget unmount" closes it',
    );
  };
  return { list: () => [one], open: refuse, close: refuse };
}
const inUse = (place: string) =>
  new Failure(`${displayName(place)} is in use: end the programs that work in it, or say --force`);

/** An ordinary user mounts through fusermount3; root, and whoever has CAP_SYS_ADMIN, by system call. */
async function mounterHere(): Promise<Mounter> {
  if (namespaceKind().mayMount) return bySystemCall;
  const { byFusermount } = await import('./fusermount.ts');
  return byFusermount;
}
