/** From a window that has closed to its report. */
import { writeFileSync } from 'node:fs';
import { displayName } from '../sys/bytes.ts';
import type { ClosedWindow } from './live-windows.ts';
import type { WindowReport } from './report.ts';
import type { WindowState } from './server.ts';
import type { WindowSettings } from './settings.ts';
import type { Window } from './window.ts';

/**
 * Ends the window's filesystem, if its mount is not gone yet, and makes the report of it. `started` is when it became
 * usable, in ms since the epoch. What is `own` to `exec` or `mount` comes on top.
 */
export function account(
  window: Window,
  settings: WindowSettings,
  started: number,
  own: Pick<WindowReport, 'kind'> & Partial<WindowReport>,
): WindowReport {
  const state = window.finish();
  const closed = new Date();
  const times = { start: started - window.opened.getTime(), open: closed.getTime() - started };
  return { ...reportOf(window, settings, state, { opened: window.opened, closed, times }), ...own };
}

/** The report of one window of a mount, which goes on without it. */
export function accountOf(window: Window, settings: WindowSettings, one: ClosedWindow): WindowReport {
  const { name, opened, closed } = one;
  const times = { start: 0, open: closed.getTime() - opened.getTime() };
  return { ...reportOf(window, settings, one.state, { opened, closed, times }), kind: 'window', name };
}

function reportOf(
  window: Window,
  settings: WindowSettings,
  state: WindowState,
  when: { opened: Date; closed: Date; times: WindowReport['times'] },
): Omit<WindowReport, 'kind'> {
  return {
    version: 1,
    workspace: displayName(settings.workspace),
    roots: window.mountpoints.map(displayName),
    opened: when.opened.toISOString(),
    closed: when.closed.toISOString(),
    times: when.times,
    upper: state.upper,
    protected: state.paths,
    totals: state.caught,
    moved: state.moved,
    errors: state.errors,
    leftovers: [],
    tracked: window.tracked.paths.map(displayName),
    requests: state.requests,
    notifications: state.notifications,
    defects: window.defects,
  };
}

/** Returns a line for the person when it could not be written. After the window: it may stand in the workspace. */
export function writeReport(path: string, report: WindowReport): string | undefined {
  try {
    writeFileSync(Buffer.from(path, 'latin1'), `${JSON.stringify(report, null, 2)}\n`);
    return undefined;
  } catch (error) {
    return `forget: the report could not be written to ${displayName(path)}: ${(error as Error).message}`;
  }
}
