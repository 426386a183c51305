/**
 * Which directories a window may cover, and where it may be mounted. Every path is a byte string. Nothing here
 * walks into a FUSE mount before the mount table has been asked, because a mount whose server hangs would hang
 * the question too.
 */
import { accessSync, constants, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { posix } from 'node:path';
import { displayName } from '../sys/bytes.ts';
import { Failure } from './failure.ts';
import { isForgetMount, isFuseMount, isWithin, type Mount, mountAt, readMountinfo } from './mountinfo.ts';

/** What the kernel shows rather than stores: an overlay of it would cut processes off from the system. */
const kernelTypes = new Set([
  'proc',
  'sysfs',
  'devtmpfs',
  'devpts',
  'cgroup',
  'cgroup2',
  'securityfs',
  'fusectl',
]);

/** SYMLOOP_MAX of Linux. */
const mostLinks = 40;

/** The workspace's real path. Throws a Failure, one line, for a path that cannot be a workspace. */
export function resolveWorkspace(path: string, cwd: string): string {
  const workspace = realDirectory(path, cwd, 'workspace');
  const refusal = refuseWorkspace(workspace);
  if (refusal) throw new Failure(refusal);
  return workspace;
}

/** Why this directory (a real path) cannot be a workspace, or undefined when it can. */
export function refuseWorkspace(
  path: string,
  mounts: readonly Mount[] = readMountinfo(),
): string | undefined {
  const name = displayName(path);
  if (path === '/') return 'workspace /: the whole system cannot be a workspace; name a directory with -w';
  const mount = mountAt(path, mounts);
  if (!mount) return undefined;
  if (isForgetMount(mount)) return inForgetMount('workspace', path, mount);
  if (isFuseMount(mount) && mount.mountpoint === path) {
    return `workspace ${name}: is itself a FUSE mount (${displayName(mount.fstype)}); name a directory below it, or unmount it first`;
  }
  if (kernelTypes.has(mount.fstype)) {
    return `workspace ${name}: lies on ${mount.fstype}, which the kernel makes up; name an ordinary directory`;
  }
  return undefined;
}

/**
 * The real path of a mount point for `workspace`. Throws a Failure for one inside the workspace, which would show
 * itself to its own server, and for one above it, which would hide it. The workspace itself is "in place".
 */
export function resolveMountpoint(path: string, cwd: string, workspace: string): string {
  const mountpoint = realDirectory(path, cwd, 'mount point');
  if (mountpoint === workspace) return mountpoint;
  const name = displayName(mountpoint);
  if (isWithin(mountpoint, workspace)) {
    throw new Failure(
      `mount point ${name}: lies inside the workspace; leave it out to mount in place, or name one outside`,
    );
  }
  if (isWithin(workspace, mountpoint)) {
    throw new Failure(
      `mount point ${name}: holds the workspace and would hide it; name an empty directory elsewhere`,
    );
  }
  return mountpoint;
}

/**
 * Throws a Failure for a place that holds what forget itself starts while it serves it, such as /usr: whoever starts a
 * program waits until the kernel has read it, and forget would have to give the answer. `programs` are absolute.
 */
export function refuseOwnPrograms(mountpoint: string, programs: readonly string[]): void {
  const covered = [...programs, ...loaders()].find((program) => isWithin(realBytes(program), mountpoint));
  if (covered === undefined) return;
  throw new Failure(
    `workspace ${displayName(mountpoint)}: holds ${covered}, which forget itself needs while it serves it; name a directory below it that does not`,
  );
}

/** The dynamic loader, which the kernel reads along with each program: this process has it mapped. */
function loaders(): string[] {
  const maps = readFileSync('/proc/self/maps', 'latin1');
  return [...new Set([...maps.matchAll(/ (\/.*\/ld-[^/\n]+)$/gm)].map(([, path]) => path!))];
}

/** `path` as seen from `cwd`. Nothing is tidied away: after a symbolic link `..` is the link's target's parent. */
export function absolutePath(path: string, cwd: string): string {
  return path.startsWith('/') ? path : `${cwd}/${path}`;
}

/**
 * The real path of something that may be a hung or dead mount: resolves all links but never enters the last
 * component. (readlink of a mount point answers EINVAL by itself: a directory has no link to read.)
 */
export function resolveMountedPath(path: string, cwd: string): string {
  let at = posix.resolve(cwd, path);
  // As most are named: then the directories above, which may hang as well, are not asked either.
  if (readMountinfo().some((mount) => isForgetMount(mount) && mount.mountpoint === at)) return at;
  for (let links = 0; links < mostLinks && at !== '/'; links++) {
    const parent = realBytes(posix.dirname(at));
    at = posix.join(parent, posix.basename(at));
    try {
      at = posix.resolve(
        parent,
        readlinkSync(Buffer.from(at, 'latin1'), { encoding: 'buffer' }).toString('latin1'),
      );
    } catch {
      return at;
    }
  }
  return at;
}

function realDirectory(path: string, cwd: string, role: string): string {
  if (path === '') throw new Failure(`${role}: the path is empty; name a directory`);
  const absolute = absolutePath(path, cwd);
  const mounts = readMountinfo();
  // Once before the path walk, which could wait for a hung server for ever, and once for where links led.
  refuseForgetMount(role, posix.resolve(absolute), mounts);
  try {
    const real = realBytes(absolute);
    refuseForgetMount(role, real, mounts);
    const bytes = Buffer.from(real, 'latin1');
    if (!statSync(bytes).isDirectory()) throw new Failure(`${role} ${displayName(path)}: is not a directory`);
    accessSync(bytes, constants.R_OK | constants.X_OK);
    return real;
  } catch (error) {
    if (error instanceof Failure) throw error;
    const code = (error as NodeJS.ErrnoException).code ?? '';
    throw new Failure(`${role} ${displayName(path)}: ${reasons[code] ?? `cannot be opened (${code})`}`);
  }
}

function refuseForgetMount(role: string, path: string, mounts: readonly Mount[]): void {
  const mount = mountAt(path, mounts);
  if (mount && isForgetMount(mount)) throw new Failure(inForgetMount(role, path, mount));
}

function inForgetMount(role: string, path: string, mount: Mount): string {
  const place = displayName(mount.mountpoint);
  return `${role} ${displayName(path)}: lies in a forget window already (mounted at ${place}); close that one first, or work in it as it is`;
}

const reasons: Record<string, string> = {
  ENOENT: 'does not exist',
  ENOTDIR: 'a part of the path is not a directory',
  EACCES: 'may not be read; this user needs read and search permission on it and on each directory above',
  ELOOP: 'its symbolic links go round in a circle',
  ENAMETOOLONG: 'the name is too long',
  ENOTCONN: 'a FUSE filesystem is mounted there whose server is gone; forget doctor says how to clear it',
  EIO: 'reading it fails with an I/O error',
  ESTALE: 'its network filesystem no longer knows it (ESTALE); mount that again',
};

function realBytes(path: string): string {
  return realpathSync.native(Buffer.from(path, 'latin1'), { encoding: 'buffer' }).toString('latin1');
}
