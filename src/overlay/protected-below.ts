/** Does a lower directory hold protected files? Asked before the lower moves it as a whole. */
import { EXDEV, SysError } from '../sys/errno.ts';
import { eachLowerEntry } from './listing.ts';
import { findChild } from './lookup.ts';
import { Node } from './node.ts';
import type { Overlay } from './overlay.ts';

const DT_DIR = 4;
/** A larger tree is not looked through while everybody waits (about 0.3 s): `mv` copies it then. */
const MOST_ENTRIES = 200_000;

/** `path` is the directory's. Throws SysError(EXDEV) for a tree that is too large to look through. */
export function protectedInLowerBelow(o: Overlay, dir: Node, path: string): boolean {
  let seen = 0;
  const look = (node: Node, at: string): boolean => {
    const directories: string[] = [];
    let found = false;
    const error = eachLowerEntry(o, node, (name, _ino, type) => {
      if (++seen > MOST_ENTRIES) throw new SysError(EXDEV, 'renaming a large directory');
      if (found) return;
      if (o.protects(`${at}/${name}`)) found = true;
      else if (type === DT_DIR) directories.push(name);
    });
    if (error) throw new SysError(error, `reading ${at}`);
    if (found) return true;
    for (const name of directories) {
      const child = findChild(o, node, name, o.stat);
      if (child instanceof Node && look(child, `${at}/${name}`)) return true;
      if (child instanceof Node) o.dropIdle(child);
    }
    return false;
  };
  return look(dir, path);
}
