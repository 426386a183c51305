/** From a window that has closed to its report. */
import { writeFileSync } from 'node:fs';
import { displayName } from '../sys/bytes.ts';
import type { WindowReport } from './report.ts';
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
  const { defects } = window;
  const state = window.finish();
  const closed = new Date();
  return {
    version: 1,
    workspace: displayName(settings.workspace),
    roots: window.mountpoints.map(displayName),
    opened: window.opened.toISOString(),
    closed: closed.toISOString(),
    times: { start: started - window.opened.getTime(), open: closed.getTime() - started },
    upper: state.upper,
    protected: state.paths,
    totals: state.caught,
    moved: state.moved,
    errors: state.errors,
    leftovers: [],
    tracked: window.tracked.paths.map(displayName),
    requests: state.requests,
    notifications: state.notifications,
    defects,
    ...own,
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
