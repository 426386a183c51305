/** Ways past the window that can be seen at its close: descriptors, symlinks, other mounts, and changes that came by one. */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { posix } from 'node:path';
import { isUnchanged } from '../../overlay/bases.ts';
import { type Change, upperTarget } from '../../overlay/changes.ts';
import type { Overlay } from '../../overlay/overlay.ts';
import { displayName } from '../../sys/bytes.ts';
import { S_IFLNK } from '../../sys/constants.ts';
import { isWithin, type Mount, mountAt, readMountinfo } from '../mountinfo.ts';
import { type Place, placeOf } from '../users.ts';
import type { Escape } from './escape.ts';
import { inheritedWriters, mayWrite, pathOfDescriptor } from './inherited.ts';
import type { Protected } from './protected-part.ts';

/**
 * `parts` are of the roots in which something protected was written; of the others only inherited descriptors count.
 * `barred` counts this user's processes that could not be looked into: those outside, from a user namespace.
 */
export function waysPast(
  roots: readonly Overlay[],
  parts: readonly Protected[],
  opened: number,
  inherited: readonly number[],
): { escapes: Escape[]; barred: number } {
  const mounts = parts.length > 0 ? readMountinfo() : [];
  const escapes: Escape[] = [];
  let barred = 0;
  for (const overlay of roots) {
    for (const path of inheritedWriters(overlay, inherited))
      escapes.push({ kind: 'descriptor', path: overlay.ledger.shown(path) });
  }
  for (const part of parts) {
    const mount = mountOf(part.overlay, mounts);
    const place = mount && placeOfLower(part.overlay, mount);
    if (place) {
      const foreign = foreignDescriptors(part, place);
      escapes.push(...foreign.escapes);
      barred = Math.max(barred, foreign.barred);
    }
    for (const found of changedMeanwhile(part, opened)) escapes.push(found);
    for (const found of leadingOut(part, roots)) escapes.push(found);
    if (mount && place) escapes.push(...otherMounts(mount, place, mounts));
  }
  return { escapes, barred };
}

/** The mount that the lower's root was opened through; a mount over it is another one. */
function mountOf({ lowerFd }: Overlay, mounts: readonly Mount[]): Mount | undefined {
  const id = /^mnt_id:\s+(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${lowerFd}`, 'latin1'))?.[1];
  return mounts.find((mount) => mount.id === Number(id));
}

function placeOfLower({ lowerFd }: Overlay, mount: Mount): Place {
  return placeOf(pathOfDescriptor(lowerFd), [{ ...mount, parent: mount.id }]);
}

/** Real files that the window has its own version of, open for writing in a process that does not see the window. */
function foreignDescriptors(
  { overlay, changes }: Protected,
  place: Place,
): { escapes: Escape[]; barred: number } {
  const paths = new Set(changes.filter(({ lower }) => lower).map(({ path }) => path));
  const names = new Set([...paths].map((path) => posix.basename(path)));
  if (names.size === 0) return { escapes: [], barred: 0 };
  const tables = new Map<string, Mount[]>();
  const escapes: Escape[] = [];
  let barred = 0;
  for (const pid of readdirSync('/proc').map(Number)) {
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      for (const fd of readdirSync(`/proc/${pid}/fd`)) {
        const path = linkAt(`/proc/${pid}/fd/${fd}`);
        if (!path.startsWith('/') || !names.has(posix.basename(path)) || !mayWrite(pid, fd)) continue;
        const at = placeOf(path, mountsOf(pid, tables));
        if (at.device !== place.device || !isWithin(at.path, place.path)) continue;
        const relative = at.path.slice(place.path === '/' ? 1 : place.path.length + 1);
        if (!paths.has(relative)) continue;
        const command = displayName(readFileSync(`/proc/${pid}/comm`, 'latin1').trimEnd());
        escapes.push({ kind: 'descriptor', path: overlay.ledger.shown(relative), program: { pid, command } });
      }
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EACCES' || code === 'EPERM') {
        if (isOwn(pid)) barred++;
      } else if (code !== 'ENOENT' && code !== 'ESRCH') throw error; // it ended meanwhile
    }
  }
  return { escapes, barred };
}

function isOwn(pid: number): boolean {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid === process.geteuid!();
}

function mountsOf(pid: number, tables: Map<string, Mount[]>): Mount[] {
  const namespace = linkAt(`/proc/${pid}/ns/mnt`);
  let mounts = tables.get(namespace);
  if (!mounts) {
    mounts = readMountinfo(pid);
    tables.set(namespace, mounts);
  }
  return mounts;
}

function linkAt(path: string): string {
  return readlinkSync(path, { encoding: 'buffer' }).toString('latin1');
}

/** What changed the real file was not this window, which has a version of its own; unless it was kept. */
function changedMeanwhile({ overlay, changes }: Protected, opened: number): Escape[] {
  const isChanged = ({ lower, node }: Change): boolean => {
    if (!lower) return false;
    const base = node?.link?.parent.bases?.get(node.link.name);
    return base ? !isUnchanged(lower, base) : lower.change / 1e6 > opened;
  };
  return changes
    .filter((change) => isChanged(change) && overlay.protects(change.path))
    .map(({ path }) => ({ kind: 'changed', path: overlay.ledger.shown(path) }));
}

/** What is there is not written through a link. */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/opt', '/nix', '/etc', '/proc', '/sys', '/dev'];

/** Protected symlinks of this window's making that lead out, judged by their text: where they lead is not touched. */
function leadingOut({ overlay, changes }: Protected, roots: readonly Overlay[]): Escape[] {
  const escapes: Escape[] = [];
  for (const { path, type, node, lower } of changes) {
    if (type !== S_IFLNK || !node || lower) continue;
    const target = upperTarget(overlay, node);
    if (typeof target === 'number') continue;
    const leads = posix.resolve(overlay.rootPath, posix.dirname(path), target);
    if (SYSTEM.some((directory) => isWithin(leads, directory))) continue;
    const home = roots.find(({ rootPath }) => isWithin(leads, rootPath));
    if (home && !isWrittenAt(home, leads.slice(home.rootPath.length + 1))) continue;
    escapes.push({ kind: 'symlink', path: overlay.ledger.shown(path), what: displayName(leads) });
  }
  return escapes;
}

/** Whether something unprotected was written there, which may have been by way of the link. */
function isWrittenAt(overlay: Overlay, path: string): boolean {
  if (path === '' || overlay.protects(path)) return false;
  return overlay.written.files().some((file) => isWithin(file.path, path));
}

/** Mounts that show the same files at another path, and let them be written. */
function otherMounts(own: Mount, place: Place, mounts: readonly Mount[]): Escape[] {
  return mounts
    .filter(({ id, device }) => device === place.device && id !== own.id)
    .filter(({ root }) => isWithin(place.path, root) || isWithin(root, place.path))
    .filter(({ options }) => !options.split(',').includes('ro'))
    .filter(({ id, mountpoint }) => mountAt(mountpoint, mounts)?.id === id)
    .map(({ mountpoint }) => ({ kind: 'mount', path: displayName(mountpoint) }));
}
