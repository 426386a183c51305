/**
 * Which processes already hold a way into a workspace that a mount over it does not cover: a working directory, a
 * root, a descriptor or a shared mapping, opened before the mount, goes on to the lower (DESIGN 8).
 *
 * Read from /proc only; no path inside the workspace is touched. An ordinary user sees its own processes and no
 * others, which `unseen` counts. A process that ends meanwhile is no user.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { displayName } from '../sys/bytes.ts';
import { O_ACCMODE, O_DIRECTORY, O_PATH, O_RDONLY } from '../sys/constants.ts';
import { ancestorsOf } from './ancestry.ts';
import { Failure } from './failure.ts';
import { isWithin, type Mount, mountAt, readMountinfo } from './mountinfo.ts';

export interface WorkspaceUser {
  pid: number;
  /** The command's short name, for display. */
  command: string;
  what: 'working directory' | 'root directory' | 'writable file' | 'open directory' | 'writable mapping';
  /** Byte string, as that process's own namespace names it. */
  path: string;
}

export interface WorkspaceUsers {
  users: WorkspaceUser[];
  /** Those who started this process and merely stand in the workspace: the shell in which `forget mount .` was typed. */
  bystanders: WorkspaceUser[];
  /** Processes that this user may not look into. */
  unseen: number;
}

/**
 * Refuses a workspace in use, naming the users, unless `force`. Returns lines to show the person: who must `cd`
 * again, who was overridden, and what could not be looked into. `workspace` is a real path.
 */
export function refuseUsed(workspace: string, options: { force: boolean }): string[] {
  const { users, bystanders, unseen } = findUsers(workspace);
  const described = users.map(describe);
  if (users.length > 0 && !options.force) {
    const shown = described.slice(0, 8).join('; ');
    const more = users.length > 8 ? `; and ${users.length - 8} more` : '';
    throw new Failure(
      `workspace ${displayName(workspace)} is in use, and what is already open there would write past the mount: ${shown}${more}. End them, or mount anyway with --force`,
    );
  }
  const lines = described.map((line) => `not covered by this mount: ${line}`);
  for (const { pid, command } of bystanders) {
    lines.push(
      `${command} (pid ${pid}) stands in the workspace from before the mount: "cd ." there to enter it`,
    );
  }
  if (unseen > 0 && process.getuid?.() !== 0) {
    lines.push(`${unseen} processes of other users could not be looked into; root can`);
  }
  return lines;
}

function describe(user: WorkspaceUser): string {
  return `${user.command} (pid ${user.pid}) has ${displayName(user.path)} as ${user.what}`;
}

export function findUsers(workspace: string): WorkspaceUsers {
  const found: WorkspaceUsers = { users: [], bystanders: [], unseen: 0 };
  const ancestors = new Set(ancestorsOf(process.pid));
  const inside = placeTest(workspace);
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      for (const [what, path] of openPaths(pid, inside(pid))) {
        const user = { pid, command: commandOf(pid), what, path };
        if (what === 'working directory' && ancestors.has(pid)) found.bystanders.push(user);
        else found.users.push(user);
      }
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === 'EACCES' || code === 'EPERM') found.unseen++;
      else if (code !== 'ENOENT' && code !== 'ESRCH') throw error;
    }
  }
  return found;
}

/**
 * Compares places, not names: the filesystem and the path within it. The same directory has other names in a
 * container or behind a bind mount, and another directory may have the same name there.
 */
function placeTest(workspace: string): (pid: number) => (path: string) => boolean {
  const own = readlinkSync('/proc/self/ns/mnt');
  const ownMounts = readMountinfo();
  const tables = new Map([[own, ownMounts]]);
  const home = placeOf(workspace, ownMounts);
  return (pid) => {
    const namespace = readlinkSync(`/proc/${pid}/ns/mnt`);
    let mounts = tables.get(namespace);
    if (!mounts) {
      mounts = readMountinfo(pid);
      tables.set(namespace, mounts);
    }
    return (path) => {
      if (!path.startsWith('/')) return false;
      if (namespace === own && isWithin(path, workspace)) return true;
      const place = placeOf(path, mounts);
      return place.device === home.device && isWithin(place.path, home.path);
    };
  };
}

/** A directory or file by its filesystem, and where it is in that. */
export interface Place {
  /** `major:minor`; empty where no mount of the table has it. */
  device: string;
  path: string;
}

export function placeOf(path: string, mounts: readonly Mount[]): Place {
  const mount = mountAt(path, mounts);
  if (!mount) return { device: '', path };
  const below = mount.mountpoint === '/' ? path : path.slice(mount.mountpoint.length);
  const within = mount.root === '/' ? below : `${mount.root}${below === '/' ? '' : below}`;
  return { device: mount.device, path: within || '/' };
}

function* openPaths(
  pid: number,
  inside: (path: string) => boolean,
): Generator<[what: WorkspaceUser['what'], path: string]> {
  const links = [
    ['cwd', 'working directory'],
    ['root', 'root directory'],
  ] as const;
  for (const [link, what] of links) {
    const path = readLink(`/proc/${pid}/${link}`);
    if (inside(path)) yield [what, path];
  }
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const opened = openedAs(pid, fd, inside);
    if (opened) yield opened;
  }
  // address permissions offset device inode path; a writable shared mapping shows as "rw-s".
  for (const [, path] of readFileSync(`/proc/${pid}/maps`, 'latin1').matchAll(
    /^\S+ .w.s \S+ \S+ [1-9]\d* +(\/.*)$/gm,
  )) {
    const name = path!.replaceAll('\\012', '\n');
    if (inside(name)) yield ['writable mapping', name];
  }
}

function openedAs(
  pid: number,
  fd: string,
  inside: (path: string) => boolean,
): [WorkspaceUser['what'], string] | undefined {
  try {
    const path = readLink(`/proc/${pid}/fd/${fd}`);
    if (!inside(path)) return undefined;
    const flags = Number.parseInt(
      /^flags:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'latin1'))![1]!,
      8,
    );
    if (flags & (O_DIRECTORY | O_PATH)) return ['open directory', path];
    return (flags & O_ACCMODE) === O_RDONLY ? undefined : ['writable file', path];
  } catch (error) {
    // Closed since the directory was listed.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function readLink(path: string): string {
  return readlinkSync(path, { encoding: 'buffer' }).toString('latin1');
}

function commandOf(pid: number): string {
  return displayName(readFileSync(`/proc/${pid}/comm`, 'latin1').replace(/\n$/, ''));
}
