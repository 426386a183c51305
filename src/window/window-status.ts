/** What a window says of itself while it is open. */
import { displayName } from '../sys/bytes.ts';
import type { WindowStatus } from './control.ts';
import type { Window } from './window.ts';

/** All but what `exec` and `mount` know: the id, the kind, the place. */
export function statusOf(
  window: Window,
  workspace: string,
): Omit<WindowStatus, 'id' | 'kind' | 'mountpoint' | 'namespace' | 'windows'> {
  const state = window.state();
  return {
    pid: process.pid,
    workspace,
    roots: window.mountpoints.map(displayName),
    since: window.opened.toISOString(),
    caught: state.caught,
    upper: state.upper,
    requests: state.requests,
    notifications: state.notifications,
    memory: { rss: process.memoryUsage.rss(), nodes: state.nodes, descriptors: state.descriptors },
    user: process.getuid!() === 0 ? 'root' : 'user',
  };
}
