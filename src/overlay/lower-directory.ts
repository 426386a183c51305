/**
 * A directory of the upper is made real, for an unprotected file in it: an exemption below a protected directory.
 */
import { cstring } from '../sys/bytes.ts';
import { AT_SYMLINK_NOFOLLOW, S_IFDIR, S_IFMT } from '../sys/constants.ts';
import { EEXIST, ENOENT, SysError } from '../sys/errno.ts';
import { errno, fchownat, mkdirat } from '../sys/libc.ts';
import { Stat } from '../sys/stat.ts';
import { pathsOf } from './copy-up.ts';
import { eachLowerEntry } from './listing.ts';
import { type Node, Whiteout } from './node.ts';
import type { Overlay } from './overlay.ts';
import { hidesLower } from './remove.ts';

/** Throws SysError. */
export function ensureLowerDirectory(o: Overlay, node: Node): void {
  if (node.hasLower) return;
  const link = node.link;
  if (!link) throw new SysError(ENOENT, 'creating in a removed directory');
  ensureLowerDirectory(o, link.parent);
  const st = new Stat();
  const failed = o.statNode(node, st);
  if (failed) throw new SysError(failed, o.pathOf(node));
  const parent = o.dirFd(link.parent);
  if (parent < 0) throw new SysError(-parent, o.pathOf(node));
  o.identity.actAsServer();
  const name = cstring(link.name);
  const made = mkdirat(parent, name, st.mode & 0o7777) === 0;
  if (!made && errno() !== EEXIST) throw new SysError(errno(), o.pathOf(node));
  if (made) fchownat(parent, name, st.uid, st.gid, AT_SYMLINK_NOFOLLOW);
  const error = st.at(parent, name);
  if (error) throw new SysError(error, o.pathOf(node));
  if ((st.mode & S_IFMT) !== S_IFDIR) throw new SysError(EEXIST, o.pathOf(node));
  o.table.identify(node, st);
  node.gainLower();
  node.origin = pathsOf(o, node);
  if (!made) coverAll(o, node);
  o.settle(link.parent);
}

/** The lower's own directory, which was removed in the view: what is in it stays hidden. */
function coverAll(o: Overlay, node: Node): void {
  const names: string[] = [];
  const error = eachLowerEntry(o, node, (name) => names.push(name));
  if (error) throw new SysError(error, o.pathOf(node));
  node.kids ??= new Map();
  for (const name of names) {
    if (!node.kids.has(name)) node.kids.set(name, new Whiteout());
    hidesLower(o, node, name);
  }
}
