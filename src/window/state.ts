/** The state of a window from that of its roots. */
import { addCounts } from './counts.ts';
import type { WindowState } from './server.ts';

/** They share one upper. */
export function joinStates(states: readonly WindowState[]): WindowState {
  const [first, ...others] = states;
  return others.reduce(joinTwo, first!);
}

function joinTwo(a: WindowState, b: WindowState): WindowState {
  return {
    caught: addCounts(a.caught, b.caught),
    paths: [...a.paths, ...b.paths],
    moved: [...a.moved, ...b.moved],
    kept: [...a.kept, ...b.kept],
    errors: [...a.errors, ...b.errors],
    upper: a.upper,
    requests: addCounts(a.requests, b.requests),
    notifications: a.notifications + b.notifications,
    nodes: a.nodes + b.nodes,
    descriptors: a.descriptors + b.descriptors,
  };
}
