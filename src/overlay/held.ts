/**
 * Held files (DESIGN 3): a temporary name that tells nothing of its target is born in the upper, in the
 * directory of an anchored file rule, until it is known where it goes. Renamed onto a protected name it stays;
 * renamed elsewhere, grown past `HELD_BYTES` or still there at close, it moves to the lower.
 */
import { errnoName } from '../sys/errno.ts';
import { moveToLower } from './copy-up.ts';
import type { Node } from './node.ts';
import type { Overlay } from './overlay.ts';

const HELD_BYTES = 4 << 20;

export function isTooBigToHold(o: Overlay, fd: number): boolean {
  return o.otherStat.of(fd) === 0 && o.otherStat.size > HELD_BYTES;
}

/** Moves a held file to the lower under the name it has. Returns 0 or an errno; it stays held then. */
export function releaseHeld(o: Overlay, node: Node, why: string): number {
  if (!node.link) return 0;
  const error = moveToLower(o, node);
  const path = o.pathOf(node);
  if (error) o.ledger.error(path, `a held file could not be moved to the workspace: ${errnoName(error)}`);
  else o.ledger.noteMoved(path, why);
  return error;
}

/** At close: what is still held was an ordinary file after all. */
export function releaseAllHeld(o: Overlay): void {
  for (const node of [...o.table.all()])
    if (node.held && node.link) releaseHeld(o, node, 'the window closed');
}
