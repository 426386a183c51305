/**
 * `forget exec`: one window for one command, in a mount namespace of its own, at the workspace's own path. The main
 * thread makes the namespace and the mount, serves it, and spawns the command. From the mount on it touches no path
 * inside the workspace, nor waits for anybody who does: it would wait for its own answer.
 */
import { constants } from 'node:os';
import { displayName } from '../sys/bytes.ts';
import { kill } from '../sys/spawn.ts';
import { account, writeReport } from './account.ts';
import {
  type CommandEnd,
  findCommand,
  findLauncher,
  type Launcher,
  type StartedCommand,
  startCommand,
} from './command.ts';
import { serveControl } from './control.ts';
import { ENTRY_VARIABLE, entryOf } from './entry.ts';
import { isLeak } from './escapes/escape.ts';
import { startWindowGuardian } from './guardian.ts';
import { isInside } from './inside.ts';
import { endLeftovers, mountNamespace } from './leftovers.ts';
import { lookingAt } from './looking.ts';
import { bySystemCall } from './mounter.ts';
import { forgetDeviceAt } from './mountinfo.ts';
import { namespaceKind, privateMountNamespace } from './namespace.ts';
import type { OnClose } from './on-close.ts';
import { type Prefetch, prefetchLater } from './prefetch.ts';
import { readFurtherAhead } from './read-ahead.ts';
import { reportLines, type WindowReport } from './report.ts';
import { say } from './say.ts';
import type { WindowSettings } from './settings.ts';
import { Window } from './window.ts';
import { newId } from './window-id.ts';
import { statusOf } from './window-status.ts';
import { refuseOwnPrograms } from './workspace.ts';

export interface Command {
  /** Byte strings. */
  argv: string[];
  cwd: string;
  /** Variables on top of the environment that forget was started with. */
  env?: Record<string, string>;
  /** What is inside may keep and close as well as look. */
  allowControl: boolean;
  onClose: OnClose;
}

/**
 * Returns the exit code where the command could not be found, and does not return otherwise: forget ends as the
 * command did (supervision.ts).
 */
export async function execWindow(settings: WindowSettings, command: Command): Promise<number> {
  const found = findCommand(command.argv[0]!, process.env.PATH, command.cwd);
  if ('code' in found) {
    say([found.message]);
    return found.code;
  }
  const launcher = findLauncher();
  const inherited = [0, 1, 2, ...entryOf(process.env[ENTRY_VARIABLE]).descriptors];
  const kind = namespaceKind();
  privateMountNamespace();
  const window = new Window(settings, settings.workspace);
  const id = newId();
  if (!settings.quiet) say(window.notices());
  let running: StartedCommand | undefined;
  try {
    for (const mountpoint of window.mountpoints) refuseOwnPrograms(mountpoint, Object.values(launcher));
    await window.mount();
    running = startCommand(
      {
        argv: command.argv,
        cwd: command.cwd,
        canaries: { paths: window.canaryPaths, token: window.canary.token },
        env: { ...command.env, FORGET_WINDOW: id },
        drop: settings.keepCaps ? 'nothing' : kind.drop,
      },
      launcher,
    );
    const failure = endWithServer(running, window);
    const outcomes = await running.tested;
    if (outcomes) {
      window.tested(outcomes);
      running.go();
    }
    const guard = guardLater(running, launcher, window.mountpoints);
    const prefetch = prefetchFor(running, launcher, window, settings);
    const started = Date.now();
    const control = await listen(id, settings, command, window);
    const end = await running.done;
    guard.dismiss();
    void prefetch.dismiss();
    const leftovers = await endLeftovers(running, { mountNamespace: mountNamespace() });
    const unkept = outcomes && (await keepAtClose(window, running, command.onClose));
    // Somebody outside may be keeping at this moment.
    await window.quiet();
    control?.close();
    // Before the test is through it is not the command's own end, unless a signal ended it, such as Ctrl-C.
    const failed = failure.happened() || (!outcomes && end.signal === null);
    // The mount needs no unmounting (5 ms): it goes with the namespace, and the namespace with this process.
    const report = await account(window, settings, started, inherited, {
      kind: 'exec',
      command: command.argv.map(displayName),
      exit: end,
      leftovers: leftovers.map((left) => ({ ...left, command: displayName(left.command) })),
    });
    // From here on a signal ends forget as it would any program that waits for a pipe or a fifo to be read.
    running.release();
    say(settings.quiet ? report.defects : reportLines(report, settings.verbose));
    // It may be a file of the workspace: the real one shows there when the mount is gone.
    if (settings.report !== undefined) await window.detach();
    const unwritten = settings.report !== undefined ? writeReport(settings.report, report) : undefined;
    if (unwritten) say([unwritten]);
    const failedToKeep = unkept && end.code === 0;
    const own = failed || failedToKeep ? { code: 125, signal: null } : (verdict(report, settings) ?? end);
    return running.exitAs(own);
  } finally {
    // Whatever went wrong: nobody may be left waiting for an answer, and the command not run on bare.
    await window.detach();
    running?.cancel();
    window.end();
  }
}

/** Whether something was to be kept and could not be. */
async function keepAtClose(window: Window, running: StartedCommand, onClose: OnClose): Promise<boolean> {
  if (onClose === 'discard') return false;
  running.takeTerminalBack();
  const { atClose } = await import('./on-close.ts');
  return atClose(window.looked, onClose, running.hurry.signal);
}

const FAILED_ON = 3;

/** What `--fail-on` makes of the end, in place of the command's own. */
function verdict(report: WindowReport, { failOn }: WindowSettings): CommandEnd | undefined {
  const { written, created, deleted, renamed } = report.totals;
  const caught = written + created + deleted + renamed > 0;
  const fails =
    (failOn.has('leak') && report.escapes.some(isLeak)) || (failOn.has('protected-write') && caught);
  return fails ? { code: FAILED_ON, signal: null } : undefined;
}

/** Before the first notification, which is what makes a guardian needed (watch.ts); short commands do without. */
const GUARD_AFTER_MS = 40;

function guardLater(
  running: StartedCommand,
  launcher: Launcher,
  mountpoints: readonly string[],
): { dismiss(): void } {
  let guardian: { pid: number; dismiss(): void } | undefined;
  const timer = setTimeout(() => {
    const mounts = mountpoints.flatMap((mountpoint) => {
      const device = forgetDeviceAt(mountpoint);
      return device === undefined ? [] : { mountpoint, device };
    });
    if (mounts.length === 0) return;
    for (const { device } of mounts) readFurtherAhead(device);
    guardian = startWindowGuardian(launcher, mounts, bySystemCall.detachCommand);
    running.addBystander(guardian.pid);
  }, GUARD_AFTER_MS);
  return {
    dismiss: () => {
      clearTimeout(timer);
      guardian?.dismiss();
    },
  };
}

function prefetchFor(
  running: StartedCommand,
  launcher: Launcher,
  window: Window,
  { workspace }: WindowSettings,
): Prefetch {
  return prefetchLater({
    window,
    launcher,
    workspace,
    adopt: (pid) => {
      running.addBystander(pid);
      return () => running.bystanders().includes(pid);
    },
  });
}

const KILL_AFTER_MS = 2000;
const LAST_USER_MS = 100;

/** Without its filesystem the command has lost its workspace: it is told, and ended. */
function endWithServer(running: StartedCommand, window: Window): { happened(): boolean } {
  let over = false;
  let failed = false;
  void running.done.then(() => {
    over = true;
  });
  void window.ended.then(async () => {
    // A mount that was taken away goes with the last who is in it, perhaps the command on its way out.
    await Promise.race([running.done, new Promise((resolve) => setTimeout(resolve, LAST_USER_MS).unref())]);
    if (over) return;
    failed = true;
    say(['forget: the filesystem ended while the command ran; the command is ended', ...window.defects]);
    kill(running.pid, constants.signals.SIGTERM);
    setTimeout(() => {
      if (!over) kill(running.pid, constants.signals.SIGKILL);
    }, KILL_AFTER_MS);
  });
  return { happened: () => failed };
}

async function endsWithCommand(): Promise<never> {
  throw new Error('a window of forget exec closes when its command ends');
}

/** The socket that `forget status` asks. A window does without it where its name is taken. */
async function listen(
  id: string,
  settings: WindowSettings,
  command: Command,
  window: Window,
): Promise<{ close(): void } | undefined> {
  const workspace = displayName(settings.workspace);
  try {
    return await serveControl({
      id,
      peerIsInside: command.allowControl ? () => false : isInside,
      handlers: {
        looking: lookingAt(window.looked),
        status: async () => {
          const about = { id, kind: 'exec', mountpoint: workspace, namespace: 'own' } as const;
          return {
            ...statusOf(window, workspace),
            ...about,
            windows: [],
            command: command.argv.map(displayName),
          };
        },
        unmount: endsWithCommand,
        open: endsWithCommand,
        close: endsWithCommand,
      },
    });
  } catch (error) {
    if (settings.verbose) say([`forget: no control socket: ${(error as Error).message}`]);
    return undefined;
  }
}
