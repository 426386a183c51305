/** What becomes real while windows are open, and so must be for the states of the outer ones too. */
import type { Node } from './node.ts';
import type { Overlay } from './overlay.ts';
import { renameBelow } from './window-state.ts';

/** A name leads to a file of the lower from now on: whatever outer windows had there gives way. */
export function nameIsReal(o: Overlay, parent: Node, name: string): void {
  const path = o.nested ? o.path(parent, name) : undefined;
  if (path !== undefined) for (const state of o.frozen) state.entries.delete(path);
}

/** A directory of the lower has another path: what the windows have below it goes with it. */
export function directoryMoved(o: Overlay, from: string | undefined, to: string | undefined): void {
  if (o.window === 0 || from === undefined || to === undefined || from === to) return;
  for (const state of o.frozen) renameBelow(state, from, to);
  for (const { origin } of o.table.all()) {
    origin?.forEach((path, i) => {
      if (path.startsWith(`${from}/`)) origin[i] = to + path.slice(from.length);
    });
  }
}
