/**
 * The mount table of a process, from /proc/PID/mountinfo (Documentation/filesystems/proc.rst, 3.5). Reading it
 * touches no mounted filesystem, so it is safe where a mount may hang. All strings are byte strings.
 */
import { readFileSync } from 'node:fs';

export interface Mount {
  id: number;
  /** The mount that this one stands on; not in the table when it lies outside the process's root. */
  parent: number;
  /** `major:minor` of the filesystem. */
  device: string;
  /** The directory of the filesystem that is shown here. */
  root: string;
  mountpoint: string;
  options: string;
  /** `ext4`, `fuse.forget`, ... */
  fstype: string;
  source: string;
}

const forgetType = 'fuse.forget';

export function parseMountinfo(text: string): Mount[] {
  const mounts: Mount[] = [];
  for (const line of text.split('\n')) {
    const fields = line.split(' ');
    // Between the mount's options and the dash stand any number of optional fields.
    const dash = fields.indexOf('-', 6);
    if (dash < 0) continue;
    mounts.push({
      id: Number(fields[0]),
      parent: Number(fields[1]),
      device: fields[2]!,
      root: unescapeOctal(fields[3]!),
      mountpoint: unescapeOctal(fields[4]!),
      options: fields[5]!,
      fstype: unescapeOctal(fields[dash + 1] ?? ''),
      source: unescapeOctal(fields[dash + 2] ?? ''),
    });
  }
  return mounts;
}

/** The kernel writes space, tab, newline, backslash and `#` as three octal digits. */
function unescapeOctal(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}

/** The mounts of a process; of this one by default. Throws what `fs` throws when the process is gone or another user's. */
export function readMountinfo(pid: number | 'self' = 'self'): Mount[] {
  return parseMountinfo(readFileSync(`/proc/${pid}/mountinfo`, 'latin1'));
}

/** Is `path` the directory `dir` or below it? Both absolute, without `.`, `..` and a trailing slash. */
export function isWithin(path: string, dir: string): boolean {
  return path === dir || dir === '/' || (path.startsWith(dir) && path[dir.length] === '/');
}

/**
 * The mount that an absolute, real path lies on. Goes from mount to mount as a path walk does: the longest mount
 * point alone would find mounts that a later one above them hides.
 */
export function mountAt(path: string, mounts: readonly Mount[] = readMountinfo()): Mount | undefined {
  const known = new Set(mounts.map((mount) => mount.id));
  const nearest = (candidates: Mount[]) =>
    candidates
      .filter((mount) => isWithin(path, mount.mountpoint))
      .reduce<Mount | undefined>(
        (best, mount) => (best && best.mountpoint.length <= mount.mountpoint.length ? best : mount),
        undefined,
      );
  let at = nearest(mounts.filter((mount) => !known.has(mount.parent) || mount.parent === mount.id));
  for (let steps = 0; at && steps < mounts.length; steps++) {
    const here = at.id;
    const next = nearest(mounts.filter((mount) => mount.parent === here && mount.id !== here));
    if (!next) return at;
    at = next;
  }
  return at;
}

export function isForgetMount(mount: Mount): boolean {
  return mount.fstype === forgetType;
}

export function isFuseMount(mount: Mount): boolean {
  return mount.fstype === 'fuse' || mount.fstype === 'fuseblk' || mount.fstype.startsWith('fuse.');
}

/** The `major:minor` of the forget mount that shows at this place. */
export function forgetDeviceAt(mountpoint: string): string | undefined {
  const mount = mountAt(mountpoint);
  return mount?.mountpoint === mountpoint && isForgetMount(mount) ? mount.device : undefined;
}
