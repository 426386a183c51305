/**
 * Where the table of checks runs: each target is a place (a plain directory, or a part of a window's view) on a base
 * filesystem, and the plain directory on the same base is its oracle. State: none; each run has its own workspace,
 * and what it mounts is in a mount namespace of its own, which goes with the run.
 */
import { chownSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { disposeWorkspace, makeWorkspace } from '../harness/forget.ts';
import { asUser, environmentOf, forgetFor, idsOf, readableFor, type User } from '../harness/users.ts';
import { runWatched } from '../harness/watchdog.ts';

/** `disk` is the filesystem of TMPDIR; the others are mounted by root for one run. */
export type Base = 'disk' | 'overlayfs' | 'small';

export interface Driver {
  name: string;
  /** Options of `forget exec` that choose it. */
  options: readonly string[];
  /** Runs on disk alone, in the unprotected and the protected part. */
  brief?: true;
}

export interface Target {
  /** As it stands at the head of a column and at the end of a test's name. */
  name: string;
  base: Base;
  /** The driver that serves the window; without one, the place is a plain directory. */
  driver?: Driver;
  /** A directory of the workspace: `memory` is protected by the default rules, `src` is not. */
  directory: 'src' | 'memory';
  /** Whether what the checks want there was in the lower before the window opened, or is made in the window. */
  existing: boolean;
}

export interface Result {
  name: string;
  outcome: 'pass' | 'fail' | 'refused';
  detail: string;
  seconds: number;
}

export interface Run {
  target: Target;
  user: User;
  /** The type of the filesystem that the checks stood on, from the mount table. */
  filesystem: string;
  results: Result[];
  /** Checks whose directory in the lower was not the same afterwards. */
  changedBelow: string[];
}

export interface Check {
  name: string;
  says: string;
  group: string;
  /** Only root can run it: it acts as several users, or needs root's powers. */
  root: boolean;
}

/** The window's drivers. One line more is one more set of columns. */
export const drivers: readonly Driver[] = [
  { name: 'forget', options: [] },
  // What lies below is the overlay's business, whoever drives it: to keep the run short, this one has the disk alone,
  // and what was there before.
  { name: 'fuse-native', options: ['--driver', 'fuse-native'], brief: true },
];

const isRoot = process.getuid?.() === 0;

function targetsOf(base: Base): Target[] {
  const plain: Target = { name: `a plain directory`, base, directory: 'src', existing: true };
  const views = drivers.flatMap((driver): Target[] => {
    if (driver.brief && base !== 'disk') return [];
    const part = (name: string, directory: 'src' | 'memory', existing: boolean) => ({
      name: `${name} of ${driver.name}`,
      base,
      driver,
      directory,
      existing,
    });
    const parts = [
      part('the unprotected part', 'src', true),
      part('the protected part', 'memory', true),
      part('the protected part, all of it born in the window,', 'memory', false),
    ];
    return driver.brief ? parts.filter((one) => one.existing) : parts;
  });
  const where = { disk: '', overlayfs: ' on overlayfs', small: ' on a small tmpfs' }[base];
  return [plain, ...views].map((one) => ({ ...one, name: `${one.name}${where}` }));
}

/** All targets that this process can run: bases that have to be mounted are root's. */
export const targets: readonly Target[] = [
  ...targetsOf('disk'),
  // What is born in the window does not touch the lower: on another one it would be the same run again.
  ...(isRoot ? [...targetsOf('overlayfs'), ...targetsOf('small')].filter((one) => one.existing) : []),
];

/** The plain directory with which a target's refusals are compared. */
export function oracleOf(target: Target): Target {
  return targets.find((one) => one.base === target.base && one.driver === undefined)!;
}

const checksDirectory = fileURLToPath(new URL('./checks', import.meta.url));
const SMALL = '16m';

// Everything below "$1", which the script owns; the lower is then "$1"/ws. An overlayfs does not stand on another, so it
// has a tmpfs for its layers whatever TMPDIR is on.
const MOUNTS: Record<Base, string> = {
  disk: '',
  overlayfs: `
mount -t tmpfs -o mode=755 tmpfs "$1"
mkdir "$1/lower" "$1/upper" "$1/work" "$1/ws" "$1/lower/src" "$1/lower/memory"
chown -R "$2" "$1"
mount -t overlay -o "lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work" overlay "$1/ws"`,
  small: `
mount -t tmpfs -o mode=755,size=${SMALL} tmpfs "$1"
mkdir "$1/ws" "$1/ws/src" "$1/ws/memory"
chown -R "$2" "$1"`,
};

/**
 * Arguments: the checks' program, the place, where fingerprints of the lower there go if they are wanted, "before" or
 * "within", the checks' groups.
 */
const RUN = `
table=$1 place=$2 aside=$3 prepared=$4
shift 4
[ "$prepared" = within ] || python3 "$table" prepare "$place" "$@"
fingerprint() {
  if [ -z "$aside" ] || [ ! -d "$place" ]; then return; fi
  python3 "$table" fingerprint "$place" > "$aside/$1" || exit
}
fingerprint before
cd "$(dirname "$(dirname "$place")")"
[ "$prepared" = before ] || within=--prepare
$WINDOW python3 "$table" run $within "$place" "$@" || exit
fingerprint after`;

function readFingerprints(path: string): Record<string, string> {
  // Where nothing was prepared in the lower there is none, and there must be none afterwards either.
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
}

function differing(before: Record<string, string>, after: Record<string, string>): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => before[name] !== after[name]);
}

/** Runs on a target, as a user, those of the checks that it wants. */
export async function runTarget(checks: readonly Check[], target: Target, user: User): Promise<Run> {
  const groups = new Set(wantedChecks(checks, target, user).map((one) => one.group));
  const workspace = makeWorkspace(user, { empty: true });
  const { uid, gid } = idsOf(user);
  try {
    const aside = join(workspace.top, 'aside');
    const base = join(workspace.top, 'base');
    for (const directory of [aside, base]) {
      mkdirSync(directory);
      chownSync(directory, uid, gid);
    }
    const lower = target.base === 'disk' ? workspace.path : join(base, 'ws');
    const window = target.driver
      ? [
          forgetFor(user),
          'exec',
          '--quiet',
          // The filesystem is asked, not what forget leaves a command of root's powers.
          ...(user === 'root' ? ['--keep-caps'] : []),
          ...(target.base === 'small' ? ['--upper-size', SMALL] : []),
          ...target.driver.options,
          '--',
        ]
      : [];
    const argv = [
      'sh',
      '-c',
      RUN.replace('$WINDOW', window.map((word) => `'${word}'`).join(' ')),
      'sh',
      join(readableFor(user, checksDirectory), 'run.py'),
      join(lower, target.directory, 'checks'),
      target.directory === 'memory' ? aside : '',
      target.existing ? 'before' : 'within',
      ...groups,
    ];
    const mounts = MOUNTS[target.base];
    const line = mounts
      ? [
          'unshare',
          '--mount',
          '--propagation',
          'private',
          'sh',
          '-e',
          '-c',
          `${mounts}\nshift 2\nexec "$@"`,
          'sh',
          base,
          `${uid}:${gid}`,
          ...asUser(user, argv),
        ]
      : argv;
    if (!mounts) {
      const made = ['mkdir', '-p', join(lower, 'src'), join(lower, 'memory')];
      await runWatched(made, { user, cwd: workspace.top });
    }
    const result = await runWatched(line, {
      user: mounts ? 'root' : user,
      cwd: dirname(workspace.top),
      env: environmentOf(user),
      timeout: 240_000,
      started: (_, mark) => workspace.marks.push(mark),
    });
    const lines = result.stdout.split('\n').filter(Boolean);
    if (result.code !== 0)
      throw new Error(`the run ended with ${result.code ?? result.signal}: ${result.stderr}`);
    const [head, ...results] = lines.map((text) => JSON.parse(text));
    return {
      target,
      user,
      filesystem: head.filesystem,
      results,
      changedBelow: differing(
        readFingerprints(join(aside, 'before')),
        readFingerprints(join(aside, 'after')),
      ),
    };
  } finally {
    await disposeWorkspace(workspace);
  }
}

/** The whole table, in the order of its files. */
export async function listChecks(): Promise<Check[]> {
  const user = isRoot ? 'root' : 'ordinary';
  const listed = await runWatched(['python3', join(checksDirectory, 'run.py'), 'list'], { user, cwd: '/' });
  return listed.stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Check);
}

/** The groups that run on a base: those that fill it want a small one, and the one that is dear runs once a place. */
const APART: Partial<Record<string, Base>> = { space: 'small', crowd: 'disk' };

/** The checks that a target must have results of. */
export function wantedChecks(all: readonly Check[], target: Target, user: User): Check[] {
  return all.filter((one) => {
    if (one.root && user !== 'root') return false;
    const base = APART[one.group];
    return base === undefined ? target.base !== 'small' : target.base === base;
  });
}
