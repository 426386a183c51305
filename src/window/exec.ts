/**
 * `forget exec`: one window for one command, in a mount namespace of its own, at the workspace's own path. The main
 * thread makes the namespace and the mount and spawns the command; after the mount it touches no path inside the
 * workspace but for the self-test.
 */
import { writeFileSync } from 'node:fs';
import { unmountForced } from '../fuse/mount.ts';
import { displayName } from '../sys/bytes.ts';
import { type CommandEnd, findCommand, findLauncher, type RunningCommand, startCommand } from './command.ts';
import { serveControl } from './control.ts';
import { endLeftovers, type Leftover, mountNamespace } from './leftovers.ts';
import { namespaceKind, privateMountNamespace } from './namespace.ts';
import { newId, openRegistry } from './registry.ts';
import { reportLines, type WindowReport } from './report.ts';
import { selfTest } from './self-test.ts';
import type { WindowSettings } from './settings.ts';
import { Window } from './window.ts';

export interface Command {
  /** Byte strings. */
  argv: string[];
  cwd: string;
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
  const kind = namespaceKind();
  privateMountNamespace();
  const window = new Window(settings);
  const id = newId();
  const notice = window.trackedNotice();
  if (notice && !settings.quiet) say([notice]);
  let running: RunningCommand | undefined;
  try {
    await window.mount(settings.workspace);
    selfTest(window.canary, settings.workspace, window.lower, settings.readonly);
    running = startCommand(
      {
        argv: command.argv,
        cwd: command.cwd,
        env: { FORGET_WINDOW: id },
        drop: settings.keepCaps ? 'nothing' : kind.drop,
      },
      launcher,
    );
    const started = Date.now();
    const control = await listen(id, settings, command, window, kind.uid === 0);
    const end = await running.done;
    const leftovers = await endLeftovers(running, { mountNamespace: mountNamespace() });
    control?.close();
    const report = await close(window, settings, command, end, leftovers, started);
    if (settings.report !== undefined) writeReport(settings.report, report);
    if (!settings.quiet) say(reportLines(report, settings.verbose));
    else if (report.defects.length > 0) say(report.defects);
    running.release();
    return running.exitAs(end);
  } finally {
    // Whatever went wrong: nobody may be left waiting for an answer, and the command not run on bare.
    unmountForced(settings.workspace);
    await window.end();
  }
}

function say(lines: string[]): void {
  if (lines.length > 0) process.stderr.write(`${lines.join('\n')}\n`);
}

/** The socket that `forget status` asks. A window does without it where there is no place for one. */
async function listen(
  id: string,
  settings: WindowSettings,
  command: Command,
  window: Window,
  root: boolean,
): Promise<{ close(): void } | undefined> {
  const workspace = displayName(settings.workspace);
  try {
    return await serveControl({
      id,
      // In this namespace the registry's path may lead into the view, but no process inside can weaken this window.
      registry: openRegistry(),
      peerIsInside: () => true,
      handlers: {
        status: async () => {
          const state = await window.server.ask('status');
          return {
            id,
            kind: 'exec',
            pid: process.pid,
            workspace,
            mountpoint: workspace,
            since: window.opened.toISOString(),
            command: command.argv.map(displayName),
            caught: state.caught,
            upper: state.upper,
            requests: state.requests,
            memory: { rss: process.memoryUsage.rss(), nodes: state.nodes, descriptors: state.descriptors },
            user: root ? 'root' : 'user',
            namespace: 'own',
          };
        },
        unmount: async () => {
          throw new Error('a window of forget exec closes when its command ends');
        },
      },
    });
  } catch (error) {
    if (settings.verbose) say([`forget: no control socket: ${(error as Error).message}`]);
    return undefined;
  }
}

async function close(
  window: Window,
  settings: WindowSettings,
  command: Command,
  end: CommandEnd,
  leftovers: Leftover[],
  started: number,
): Promise<WindowReport> {
  const defects = window.server.defects;
  const state = await window.server.ask('close').catch((error: Error) => {
    defects.push(error.message);
    return undefined;
  });
  const closed = new Date();
  return {
    version: 1,
    kind: 'exec',
    workspace: displayName(settings.workspace),
    command: command.argv.map(displayName),
    exit: end,
    opened: window.opened.toISOString(),
    closed: closed.toISOString(),
    times: { start: started - window.opened.getTime(), open: closed.getTime() - started },
    upper: state?.upper ?? { used: 0, limit: settings.upperSize, noswap: false },
    protected: state?.paths ?? [],
    totals: state?.caught ?? { written: 0, created: 0, deleted: 0, renamed: 0, bytes: 0 },
    moved: state?.moved ?? [],
    errors: state?.errors ?? [],
    leftovers: leftovers.map(({ pid, command: line, how }) => ({ pid, command: displayName(line), how })),
    tracked: window.tracked.paths.map(displayName),
    requests: state?.requests ?? {},
    defects,
  };
}

/** After the window: the file is the person's, and may stand in the workspace. */
function writeReport(path: string, report: WindowReport): void {
  try {
    writeFileSync(Buffer.from(path, 'latin1'), `${JSON.stringify(report, null, 2)}\n`);
  } catch (error) {
    say([`forget: the report could not be written to ${displayName(path)}: ${(error as Error).message}`]);
  }
}
