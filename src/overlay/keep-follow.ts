/** The window's own state after a keep: what was kept covers what is in the lower now. */
import { scratchCstring } from '../sys/bytes.ts';
import { Stat } from '../sys/stat.ts';
import { noteBase } from './bases.ts';
import { type Change, inView } from './changes.ts';
import { keptPath, typeName } from './keep-outcome.ts';
import type { PlannedStep } from './keep-plan.ts';
import { splitPath, withLowerDirectory } from './lower-path.ts';
import { Node, Whiteout } from './node.ts';
import type { Overlay } from './overlay.ts';

/** `copied` is each node's ctime in the upper when it was copied. */
export function follow(
  o: Overlay,
  steps: readonly PlannedStep[],
  chosen: readonly Change[],
  copied: ReadonlyMap<Node, number>,
): void {
  for (const step of steps) {
    for (const { path, node } of step.makings) followMade(o, path, node, copied);
  }
  for (const change of chosen) {
    const { path, kind, lower } = change;
    o.ledger.noteKept(path, kind, typeName(change.type), keptPath(o, change).size);
    const [directory, name] = splitPath(path);
    const parent = directory === '' ? o.root : inView(o, directory);
    if (parent instanceof Node && lower) o.table.noteReplaced(lower.ino, parent, name);
    if (kind === 'deleted' && parent instanceof Node && parent.kid(name) instanceof Whiteout) {
      parent.kids!.delete(name);
      parent.bases?.delete(name);
      parent.hiddenSubdirectories?.delete(name);
      o.dropIdle(parent);
    }
  }
}

function followMade(o: Overlay, path: string, node: Node, copied: ReadonlyMap<Node, number>): void {
  const [directory, name] = splitPath(path);
  const parent = directory === '' ? o.root : inView(o, directory);
  // It was renamed or replaced in the last milliseconds: what stands there now covers the lower as anything does.
  if (!(parent instanceof Node) || parent.kid(name) !== node) return;
  const st = new Stat();
  const error = withLowerDirectory(o.lowerFd, directory, (dir) =>
    dir < 0 ? -dir : st.at(dir, scratchCstring(name)),
  );
  if (error) return;
  noteBase(parent, name, st);
  parent.hiddenSubdirectories?.delete(name);
  if (node.isDirectory) {
    if (!node.hasLower) {
      o.table.identify(node, st);
      node.gainLower();
    }
    return;
  }
  node.kept = copied.get(node) ?? 0;
  if (!node.isRegular) node.kept = changeOf(o, node);
  // Its other names, if it has any, lead to the file that it was copied from.
  const whole = node.unseenNames === 0 && st.nlink === node.linkCount;
  if (whole) {
    o.table.noteGone(node);
    o.table.identify(node, st);
  }
}

function changeOf(o: Overlay, node: Node): number {
  const st = new Stat();
  return st.at(o.upper.fd, o.upper.name(node.upper)) === 0 ? st.change : 0;
}
