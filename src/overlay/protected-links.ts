/**
 * A symlink of the lower whose own name is protected: what is written through it lands where it leads, and must be
 * protected there too. Inside the root the target becomes protected; a target outside is not this window's to
 * protect, so following the link is refused.
 */
import { posix } from 'node:path';
import { displayName } from '../sys/bytes.ts';
import { S_IFLNK } from '../sys/constants.ts';
import { EACCES } from '../sys/errno.ts';
import { Stat } from '../sys/stat.ts';
import { readTarget } from './attributes.ts';
import { findChild } from './lookup.ts';
import { Node, Whiteout } from './node.ts';
import type { Overlay } from './overlay.ts';

/** The kernel's own limit on links in one path (MAXSYMLINKS). */
const MOST_LINKS = 40;

/** Called before the kernel is told the target of a protected lower symlink. Returns 0 or an errno. */
export function guardLink(o: Overlay, node: Node, target: string): number {
  const link = node.link;
  if (!link) return 0;
  const from = o.path(link.parent, link.name);
  const directory = from === undefined ? undefined : from.split('/').slice(0, -1);
  const path = directory && resolve(o, directory, target);
  if (path === undefined) {
    if (directory && o.reached.has(posix.resolve(o.rootPath, ...directory, target))) return 0;
    const shown = displayName(target);
    o.ledger.error(
      o.pathOf(node),
      `leads out of the workspace, to ${shown}: not followed, a write there would be real`,
    );
    return EACCES;
  }
  if (path !== '' && !o.protects(path)) {
    o.protectBelow(path);
    markKnown(o, path);
  }
  return 0;
}

/** Where a target leads, as a path relative to the root, with every symlink on the way resolved; undefined: outside. */
function resolve(o: Overlay, directory: string[], target: string): string | undefined {
  const at = [...directory];
  let rest = splitTarget(o, at, target);
  const st = new Stat();
  for (let links = 0; rest && rest.length > 0; ) {
    const name = rest.shift()!;
    if (name === '' || name === '.') continue;
    if (name === '..') {
      if (at.pop() === undefined) return undefined;
      continue;
    }
    const child = childAt(o, at, name, st);
    if (child?.type !== S_IFLNK) {
      at.push(name);
      continue;
    }
    if (++links > MOST_LINKS) return undefined;
    const next = readTarget(o, child);
    if (typeof next === 'number') return undefined;
    const more: string[] | undefined = splitTarget(o, at, next.latin1Slice(0, next.length));
    rest = more && [...more, ...rest];
  }
  return rest && at.join('/');
}

/** The components of a target; an absolute one starts at the root of the view, or is outside of it. */
function splitTarget(o: Overlay, at: string[], target: string): string[] | undefined {
  if (!target.startsWith('/')) return target.split('/');
  if (target !== o.rootPath && !target.startsWith(`${o.rootPath}/`)) return undefined;
  at.length = 0;
  return target.slice(o.rootPath.length).split('/');
}

function childAt(o: Overlay, directory: string[], name: string, st: Stat): Node | undefined {
  let node: Node | number = o.root;
  for (const component of [...directory, name]) {
    if (!(node instanceof Node)) return undefined;
    node = findChild(o, node, component, st);
  }
  return node instanceof Node ? node : undefined;
}

/** What the kernel knows already was judged before. */
function markKnown(o: Overlay, path: string): void {
  let node: Node = o.root;
  for (const component of path.split('/')) {
    const kid = node.kid(component);
    if (!(kid instanceof Node)) return;
    node = kid;
  }
  const queue = [node];
  for (let next = queue.pop(); next; next = queue.pop()) {
    next.protected = true;
    for (const kid of next.kids?.values() ?? []) if (!(kid instanceof Whiteout)) queue.push(kid);
  }
}
