/** LINK: a file has all its names in one layer. If either name is protected, that is the upper. */
import type { Caller } from '../fuse/handler.ts';
import type { Reply } from '../fuse/reply.ts';
import { cstring, scratchCstring } from '../sys/bytes.ts';
import { AT_FDCWD, AT_SYMLINK_FOLLOW } from '../sys/constants.ts';
import { EEXIST, ENAMETOOLONG, ENOENT, ENOTDIR, EPERM, ESTALE } from '../sys/errno.ts';
import { errno, linkat } from '../sys/libc.ts';
import { touchChangeTime, touchDirectory } from './attributes.ts';
import { copyUp } from './copy-up.ts';
import { coversProtected, lowerShows, setOriginalAside } from './create.ts';
import { releaseHeld } from './held.ts';
import { NAME_MAX, replyEntry } from './lookup.ts';
import { ensureLowerDirectory } from './lower-directory.ts';
import { type Node, Whiteout } from './node.ts';
import type { Overlay } from './overlay.ts';
import { nameIsReal } from './window-real.ts';

export function link(
  o: Overlay,
  id: number,
  parentId: number,
  name: string,
  caller: Caller,
  reply: Reply,
): number {
  const node = o.node(id);
  const parent = o.node(parentId);
  if (!node || !parent) return ESTALE;
  if (node.isDirectory) return EPERM;
  if (!parent.isDirectory) return ENOTDIR;
  if (name.length > NAME_MAX) return ENAMETOOLONG;
  const refused = o.refuseChange(node);
  if (refused) return refused;
  const place = o.placeFor(parent, name);
  const kid = parent.kid(name);
  if (kid && !(kid instanceof Whiteout)) return ESTALE;
  if (node.held && place === 'lower') {
    const error = releaseHeld(o, node, 'it was linked to an unprotected name');
    if (error) return error;
  }
  const sticks =
    node.inUpper ||
    o.isProtected(node) ||
    place === 'upper' ||
    (kid !== undefined && coversProtected(o, parent, name, kid));
  const error = sticks
    ? linkInUpper(o, node, parent, name, kid, caller)
    : linkInLower(o, node, parent, name, kid);
  if (error) return error;
  return o.statNode(node, o.stat) || replyEntry(o, parent, node, o.stat, reply);
}

function linkInUpper(
  o: Overlay,
  node: Node,
  parent: Node,
  name: string,
  whiteout: Whiteout | undefined,
  caller: Caller,
): number {
  if (!whiteout && lowerShows(o, parent, name)) return ESTALE;
  // One that an outer window has, too: its link count and ctime change.
  const outcome = copyUp(o, node);
  if (outcome) return outcome;
  if (!node.held || o.isProtectedName(parent, name)) {
    node.protected = true;
    node.held = false;
    o.ledger.note(o.path(parent, name) ?? name, caller.pid, 'create');
  }
  node.addLink(parent, name);
  touchChangeTime(o, node);
  touchDirectory(o, parent);
  return 0;
}

function linkInLower(
  o: Overlay,
  node: Node,
  parent: Node,
  name: string,
  whiteout: Whiteout | undefined,
): number {
  ensureLowerDirectory(o, parent);
  if (whiteout) setOriginalAside(o, parent, name);
  const dir = o.dirFd(parent);
  if (dir < 0) return -dir;
  const from = node.link;
  let result: number;
  if (from) {
    const fromDir = o.dirFd(from.parent);
    if (fromDir < 0) return -fromDir;
    result = linkat(fromDir, scratchCstring(from.name, 0), dir, scratchCstring(name, 1), 0);
  } else {
    // An O_TMPFILE: it has no name yet, and only its descriptor leads to it.
    if (node.fd < 0) return ENOENT;
    result = linkat(
      AT_FDCWD,
      cstring(`/proc/self/fd/${node.fd}`),
      dir,
      scratchCstring(name, 1),
      AT_SYMLINK_FOLLOW,
    );
  }
  if (result < 0) return errno() === EEXIST ? ESTALE : errno();
  o.settle(parent);
  o.settle(node);
  o.written.moved(node, from ? o.path(from.parent, from.name) : undefined, o.path(parent, name));
  node.addLink(parent, name);
  nameIsReal(o, parent, name);
  if (o.window === 0) o.judge(node);
  return 0;
}
