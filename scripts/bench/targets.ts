/**
 * What is compared: the bare directory, forget in its variants, and others' overlays. Each shows the same lower and runs
 * the same driver in it. State: the mounts that are up, so that an interrupted run can take them down.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Requests, requestsSoFar } from './requests.ts';
import { Session } from './session.ts';

export interface Place {
  /** The real directory that is shown. */
  lower: string;
  /** An empty directory beside it, on the same filesystem, for mount points and upper layers. */
  scratch: string;
  env: NodeJS.ProcessEnv;
}

export interface Opened {
  session: Session;
  /** FUSE requests so far; only forget counts them. */
  requests?(): Promise<Requests>;
  close(): Promise<void>;
}

export type Sort = 'native' | 'forget' | 'kernel' | 'peer';

export interface Target {
  name: string;
  sort: Sort;
  /** One line of who this is. */
  about: string;
  /** Whose trees it works on; both are one where the run is not root's. */
  owner: 'root' | 'ordinary';
  /** Debian's package; undefined where none is needed. */
  package?: string;
  /** Why it cannot run here; undefined when it can. */
  unavailable(): string | undefined;
  open(place: Place): Promise<Opened>;
}

export const forget = fileURLToPath(new URL('../../bin/forget', import.meta.url));
export const isRoot = process.getuid?.() === 0;
/** The ordinary user of the run; no account is needed. */
export const ORDINARY = isRoot ? 1001 : process.getuid!();
/** A command line's first words that make it the ordinary user's. */
export const asOrdinary: readonly string[] = isRoot
  ? ['setpriv', '--reuid', String(ORDINARY), '--regid', String(ORDINARY), '--clear-groups', '--']
  : [];
/** What an agent takes at least until its first look at the workspace; forget reads ahead meanwhile. */
const START_MS = 1000;
const nothing = (): undefined => undefined;
const needsRoot = (): string | undefined => (isRoot ? undefined : 'only root may');

const native: Target = {
  name: 'native',
  sort: 'native',
  owner: 'root',
  about: 'the bare directory',
  unavailable: nothing,
  async open({ lower, env }) {
    const session = await Session.start([], { cwd: lower, env, settle: START_MS });
    return { session, close: () => session.end() };
  },
};

function forgetTarget(
  name: string,
  about: string,
  how: { before?: readonly string[]; options?: readonly string[]; unavailable?(): string | undefined },
): Target {
  return {
    name,
    sort: 'forget',
    owner: how.before ? 'ordinary' : 'root',
    about,
    unavailable: how.unavailable ?? nothing,
    async open({ lower, env }) {
      const line = [
        ...(how.before ?? []),
        forget,
        'exec',
        '--quiet',
        '-w',
        lower,
        ...(how.options ?? []),
        '--',
      ];
      const session = await Session.start(line, { cwd: lower, env, settle: START_MS });
      return { session, requests: () => requestsSoFar(session.window!), close: () => session.end() };
    },
  };
}

function offersDriver(): string | undefined {
  const { stdout } = spawnSync(forget, ['exec', '--help'], { encoding: 'utf8' });
  return /--driver\b/.test(stdout) ? undefined : 'this forget has no --driver';
}

const mounted = new Set<string>();

/** A filesystem that `command` mounts at a mount point; its arguments from the directories it may use. */
function mountedTarget(
  base: Pick<Target, 'name' | 'sort' | 'about'> & { package?: string },
  command: (at: { lower: string; upper: string; work: string; mountpoint: string }) => string[],
): Target {
  return {
    ...base,
    owner: 'root',
    unavailable: needsRoot,
    async open({ lower, scratch, env }) {
      const at = {
        lower,
        upper: join(scratch, 'upper'),
        work: join(scratch, 'work'),
        mountpoint: join(scratch, 'mnt'),
      };
      for (const path of [at.upper, at.work, at.mountpoint]) mkdirSync(path, { recursive: true });
      const [program, ...args] = command(at);
      execFileSync(program!, args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: 20_000 });
      mounted.add(at.mountpoint);
      const session = await Session.start([], { cwd: at.mountpoint, env, settle: START_MS });
      return {
        session,
        async close() {
          await session.end();
          unmount(at.mountpoint);
          for (const path of [at.upper, at.work]) rmSync(path, { recursive: true, force: true });
        },
      };
    },
  };
}

function unmount(mountpoint: string): void {
  execFileSync('umount', [mountpoint], { stdio: ['ignore', 'ignore', 'pipe'], timeout: 20_000 });
  mounted.delete(mountpoint);
}

/** For a run that ends early: takes down what is still up, busy or not. */
export function unmountAll(): void {
  for (const mountpoint of mounted) spawnSync('umount', ['-l', mountpoint], { timeout: 20_000 });
  mounted.clear();
}

/** Peers run as Debian has them, with their default options, by root. */
export const targets: readonly Target[] = [
  native,
  forgetTarget('forget', 'forget exec, as root where the run is root', {}),
  forgetTarget('forget-fuse-native', 'the same overlay on libfuse 2, through the npm package fuse-native', {
    options: ['--driver', 'fuse-native'],
    unavailable: offersDriver,
  }),
  forgetTarget('forget-user', 'forget exec without root, in a user namespace', {
    before: asOrdinary,
    unavailable: () => (isRoot ? undefined : 'it is what `forget` is in this run'),
  }),
  mountedTarget(
    { name: 'overlayfs', sort: 'kernel', about: "the kernel's own overlay, which needs no daemon" },
    ({ lower, upper, work, mountpoint }) => [
      'mount',
      '-t',
      'overlay',
      'overlay',
      '-o',
      `lowerdir=${lower},upperdir=${upper},workdir=${work}`,
      mountpoint,
    ],
  ),
  mountedTarget(
    {
      name: 'fuse-overlayfs',
      sort: 'peer',
      about: 'overlay of rootless containers, in C',
      package: 'fuse-overlayfs',
    },
    ({ lower, upper, work, mountpoint }) => [
      'fuse-overlayfs',
      '-o',
      `lowerdir=${lower},upperdir=${upper},workdir=${work}`,
      mountpoint,
    ],
  ),
  mountedTarget(
    { name: 'bindfs', sort: 'peer', about: 'mirror of a directory, in C', package: 'bindfs' },
    ({ lower, mountpoint }) => ['bindfs', lower, mountpoint],
  ),
  mountedTarget(
    { name: 'mergerfs', sort: 'peer', about: 'union of directories, in C++', package: 'mergerfs' },
    ({ lower, mountpoint }) => ['mergerfs', lower, mountpoint],
  ),
  mountedTarget(
    { name: 'unionfs-fuse', sort: 'peer', about: 'union with copy-on-write, in C', package: 'unionfs-fuse' },
    ({ lower, upper, mountpoint }) => ['unionfs-fuse', '-o', 'cow', `${upper}=RW:${lower}=RO`, mountpoint],
  ),
];
