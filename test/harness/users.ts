/**
 * Who runs what in the tests: root and an ordinary user without a name, a home of its own and the same PATH.
 * State: none. The checkout must be readable for the ordinary user; where it is not, a copy of what `bin/forget`
 * needs is made once, under the run's temporary directory.
 */
import { accessSync, chownSync, constants, cpSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export type User = 'root' | 'ordinary';

export const ORDINARY_ID = 1001;

/** The checkout, without a trailing slash. */
export const checkout = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

const isRoot = process.getuid?.() === 0;

/** The users that this process can be: both as root, else only itself. */
export const users: readonly User[] = isRoot ? ['root', 'ordinary'] : ['ordinary'];

/** uid and gid of a user's processes and files. */
export function idsOf(user: User): { uid: number; gid: number } {
  if (user === 'root') return { uid: 0, gid: 0 };
  return isRoot ? { uid: ORDINARY_ID, gid: ORDINARY_ID } : { uid: process.getuid!(), gid: process.getgid!() };
}

/** A command line that runs `argv` as `user`. */
export function asUser(user: User, argv: readonly string[]): string[] {
  if (user === 'root' || !isRoot) return [...argv];
  const id = String(ORDINARY_ID);
  return ['setpriv', '--reuid', id, '--regid', id, '--clear-groups', '--', ...argv];
}

const temporary = new Set<string>();

process.on('exit', () => {
  for (const path of temporary) rmSync(path, { recursive: true, force: true });
});

/** A new directory that `user` owns; gone when this process ends, if the test has not removed it before. */
export function temporaryDirectory(prefix: string, user: User): string {
  const path = mkdtempSync(join(tmpdir(), `${prefix}-`));
  const { uid, gid } = idsOf(user);
  chownSync(path, uid, gid);
  temporary.add(path);
  return path;
}

const homes = new Map<User, string>();

/** A home directory for `user`, one a process, under the run's temporary directory. */
export function homeOf(user: User): string {
  const known = homes.get(user);
  if (known !== undefined && existsSync(known)) return known;
  const home = temporaryDirectory(`home-${user}`, user);
  homes.set(user, home);
  return home;
}

// The system's own programs first: a python or node of root's home is out of an ordinary user's reach.
const systemPath = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/** The whole environment of a test's program: the same on each machine and for both users. */
export function environmentOf(user: User, extra: Record<string, string> = {}): Record<string, string> {
  const home = homeOf(user);
  return {
    PATH: [...systemPath, dirname(process.execPath)].join(delimiter),
    HOME: home,
    XDG_CONFIG_HOME: join(home, '.config'),
    TMPDIR: tmpdir(),
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    TZ: 'UTC',
    PYTHONDONTWRITEBYTECODE: '1',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_AUTHOR_NAME: 'Ada',
    GIT_AUTHOR_EMAIL: 'ada@example.org',
    GIT_AUTHOR_DATE: '2026-01-02T03:04:05Z',
    GIT_COMMITTER_NAME: 'Ada',
    GIT_COMMITTER_EMAIL: 'ada@example.org',
    GIT_COMMITTER_DATE: '2026-01-02T03:04:05Z',
    ...extra,
  };
}

function reachableForOthers(path: string): boolean {
  for (let at = path; ; at = dirname(at)) {
    if ((statSync(at).mode & 0o005) !== 0o005) return false;
    if (at === dirname(at)) return true;
  }
}

let copied: string | undefined;

/** `bin/forget` as `user` can start it. */
export function forgetFor(user: User): string {
  const own = join(checkout, 'bin/forget');
  accessSync(own, constants.X_OK);
  if (user === 'root' || !isRoot || reachableForOthers(checkout)) return own;
  if (copied === undefined) {
    copied = temporaryDirectory('checkout', user);
    for (const part of [
      'bin',
      'dist',
      'share',
      'package.json',
      'node_modules/koffi',
      'node_modules/@koromix',
      'node_modules/fuse-native',
    ]) {
      cpSync(join(checkout, part), join(copied, part), { recursive: true });
    }
  }
  return join(copied, 'bin/forget');
}

/** A file of the checkout (a writer program, say) by a path at which `user` can read it. */
export function readableFor(user: User, path: string): string {
  if (user === 'root' || !isRoot || reachableForOthers(dirname(path))) return path;
  const copy = join(temporaryDirectory('programs', user), basename(path));
  cpSync(path, copy, { recursive: true });
  return copy;
}
