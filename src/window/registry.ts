/**
 * The directory in which each running window has its control socket, `ID.sock`. Root's is /run/forget, a user's
 * `$XDG_RUNTIME_DIR/forget`, else /tmp/forget-UID. It is used through its descriptor (`/proc/self/fd/N`): checked
 * once it cannot be exchanged for another, its path may be longer than the 107 bytes a socket address holds, and
 * it stays reachable when a window is mounted above it.
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  unlinkSync,
} from 'node:fs';
import { Failure } from './failure.ts';

export interface Registry {
  fd: number;
  path: string;
}

/** The directories where this user's windows may be registered, best first. */
export function registryPaths(): string[] {
  const uid = process.getuid!();
  const runtime = process.env.XDG_RUNTIME_DIR;
  const fallback = `/tmp/forget-${uid}`;
  if (uid === 0) return ['/run/forget', fallback];
  return runtime?.startsWith('/') ? [`${runtime}/forget`, fallback] : [fallback];
}

/** Creates the directory, 0700, where it is missing, and opens it. Throws a Failure when none can be trusted. */
export function openRegistry(): Registry {
  const reasons: string[] = [];
  for (const path of registryPaths()) {
    try {
      mkdirSync(path, { mode: 0o700 });
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code !== 'EEXIST') {
        reasons.push(`${path}: ${code}`);
        continue;
      }
    }
    const registry = openTrusted(path);
    if (typeof registry !== 'string') return registry;
    reasons.push(registry);
  }
  throw new Failure(`no directory for control sockets: ${reasons.join('; ')}`);
}

/** The directories that exist and are this user's own. */
export function openRegistries(): Registry[] {
  return registryPaths()
    .map(openTrusted)
    .filter((registry) => typeof registry !== 'string');
}

export function closeRegistry(registry: Registry): void {
  closeSync(registry.fd);
}

/** The directory, or why not. */
export function openTrusted(path: string): Registry | string {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  } catch (error) {
    return `${path}: ${(error as NodeJS.ErrnoException).code}`;
  }
  const stat = fstatSync(fd);
  const uid = process.getuid!();
  if (stat.uid === uid && (stat.mode & 0o077) === 0) return { fd, path };
  closeSync(fd);
  return `${path}: belongs to uid ${stat.uid} with mode ${(stat.mode & 0o777).toString(8)}, and must be uid ${uid}'s with 700`;
}

/** An address for bind(2) and connect(2), valid in this process. */
export function socketAddress(registry: Registry, id: string): string {
  return `/proc/self/fd/${registry.fd}/${id}.sock`;
}

/** `PID-RANDOM`: a pid alone may be another's too, where containers share the directory. */
export function newId(): string {
  const random = Math.floor(Math.random() * 0x10000);
  return `${process.pid}-${random.toString(16).padStart(4, '0')}`;
}

export function isId(text: string): boolean {
  return /^\d+-[0-9a-f]{4}$/.test(text);
}

/** The windows with a socket here, whether they still live or not. */
export function registeredIds(registry: Registry): string[] {
  return readdirSync(`/proc/self/fd/${registry.fd}`)
    .filter((name) => name.endsWith('.sock'))
    .map((name) => name.slice(0, -'.sock'.length))
    .filter(isId);
}

export function pidOf(id: string): number {
  return Number.parseInt(id, 10);
}

/** Milliseconds since the socket was bound; 0 when it is no longer there. */
export function socketAge(registry: Registry, id: string): number {
  const stat = lstatSync(socketAddress(registry, id), { throwIfNoEntry: false });
  return stat ? Date.now() - stat.ctimeMs : 0;
}

/** Removes the socket of a window that is gone. */
export function forgetSocket(registry: Registry, id: string): void {
  try {
    unlinkSync(socketAddress(registry, id));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}
