/** A protected directory with lower content is renamed: its whole tree goes to the upper first. */
import { EXDEV } from '../sys/errno.ts';
import { Stat } from '../sys/stat.ts';
import { copyUp } from './copy-up.ts';
import { eachLowerEntry } from './listing.ts';
import { findChild } from './lookup.ts';
import { Node, Whiteout } from './node.ts';
import type { Overlay } from './overlay.ts';

/** Past these a rename is EXDEV, and `mv` copies: the copy-up of a tree is one request, and others wait. */
export const TREE_MAX_FILES = 5000;
export const TREE_MAX_BYTES = 64 << 20;

/**
 * Copies the directory and everything below it up, and makes them opaque: nothing of the lower shows through
 * any more. Returns 0 or an errno; EXDEV, with nothing changed in the view, for a tree past the limits.
 */
export function copyUpTree(o: Overlay, dir: Node): number {
  const found: Node[] = [];
  const total = { files: 0, bytes: 0 };
  const error = collect(o, dir, found, total);
  if (error) return error;
  for (const node of found) {
    const outcome = copyUp(o, node);
    if (outcome) return outcome;
  }
  for (const node of found) {
    if (!node.isDirectory) continue;
    node.hasLower = false;
    node.bases = null;
    o.descriptors.release(node);
    for (const [name, kid] of [...(node.kids ?? [])]) if (kid instanceof Whiteout) node.kids!.delete(name);
  }
  return 0;
}

/** Everything of the view at and below a directory, parents before children. */
function collect(o: Overlay, dir: Node, found: Node[], total: { files: number; bytes: number }): number {
  found.push(dir);
  const names = new Set<string>();
  const error = dir.hasLower ? eachLowerEntry(o, dir, (name) => names.add(name)) : 0;
  if (error) return error;
  for (const [name, kid] of dir.kids ?? []) if (kid instanceof Node && kid.inUpper) names.add(name);
  const st = new Stat();
  for (const name of names) {
    const node = findChild(o, dir, name, st);
    if (!(node instanceof Node)) continue;
    total.files++;
    if (node.isRegular) total.bytes += st.size;
    if (total.files > TREE_MAX_FILES || total.bytes > TREE_MAX_BYTES) return EXDEV;
    if (node.isDirectory) {
      const below = collect(o, node, found, total);
      if (below) return below;
    } else found.push(node);
  }
  return 0;
}
