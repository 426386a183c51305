// stress-ng's filesystem class with --verify, all stressors at once: some forty programs in one mount. One after the
// other (--seq 1) takes a minute a run, finds no more, and is for the hand: docs/conformance.md.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import type { User } from '../harness/users.ts';
import type { RunResult } from '../harness/watchdog.ts';
import { inEachPart, type Place, runInside, runPlain, told } from './suite.ts';

const TIMEOUT = 300_000;

/** Stressors that say nothing about the view, or fail on a plain directory too, with the reason. */
const EXCLUDED: Record<User, Record<string, string>> = {
  root: {
    binderfs:
      'mounts another filesystem, which needs CAP_SYS_ADMIN, and does nothing where the kernel lacks it',
    'bind-mount': 'mounts over the machine; stress-ng itself asks for --pathological',
    chattr:
      'makes files immutable, which a mount of FUSE does not offer; killed in time, it leaves such a file behind on ext4',
    procfs: 'reads /proc, nothing below the mount; some kernels have files there that block',
  },
  ordinary: {
    binderfs: 'needs CAP_SYS_ADMIN',
    'bind-mount': 'needs CAP_SYS_ADMIN',
    procfs: 'reads /proc, nothing below the mount',
    chown:
      'expects EPERM for a chown to root; in a user namespace that knows one user the kernel says EINVAL, on ext4 too',
  },
};

/** Stressors that find nothing to do on a mount of FUSE: the kernel's own limits. */
const NOT_ON_FUSE = ['fiemap'];

// Small files: the default of 1 GiB is more than the upper may hold.
const SMALL = ['--fallocate-bytes', '16M', '--hdd-bytes', '16M', '--iomix-bytes', '16M'].concat([
  ...['--sync-file-bytes', '16M', '--copy-file-bytes', '128M', '--readahead-bytes', '16M'],
  ...['--mmap-bytes', '16M', '--msync-bytes', '16M', '--aiol-requests', '16'],
]);

/** Stressors of other classes that are about files, all at once. */
const FILE_INPUT_OUTPUT = [
  ...['aio', 'aiol', 'readahead', 'revio', 'seek', 'sendfile', 'splice', 'mmap', 'msync', 'msyncmany'],
  ...['mmapmany', 'mmapaddr', 'fpunch', 'copy-file', 'sync-file', 'hdd', 'getdent', 'flock'],
].flatMap((name) => [`--${name}`, '1']);

function stressNg(place: Place, options: readonly string[]): string[] {
  return ['stress-ng', '--verify', '--temp-path', place.directory, ...SMALL, ...options];
}

/** Stressors that did nothing, by their own words. */
function skipped({ stderr }: RunResult): string[] {
  const found = [...stderr.matchAll(/(\S+) stressor will be skipped|\] (\S+): .*, skipping/g)];
  return [...new Set(found.map((match) => (match[1] ?? match[2])!))].sort();
}

/** What went wrong in words; empty when each stressor did its work. */
function complaints({ stderr }: RunResult): string[] {
  return stderr.split('\n').filter((line) => /: (fail|error): |aborted early|failures reached/.test(line));
}

const oracles = new Map<string, Promise<RunResult>>();

/** The run on a plain directory, one for both parts. */
function oracle(place: Place, options: readonly string[]): Promise<RunResult> {
  const key = [place.user, ...options].join(' ');
  const run = oracles.get(key) ?? runPlain(place, stressNg(place, options), { timeout: TIMEOUT });
  oracles.set(key, run);
  return run;
}

async function sameStressors(place: Place, options: readonly string[]): Promise<void> {
  const inside = await runInside(place, stressNg(place, options), {
    timeout: TIMEOUT,
    // fanotify wants CAP_SYS_ADMIN.
    options: place.user === 'root' ? ['--keep-caps'] : [],
  });
  assert.deepEqual(complaints(inside), [], told(inside));
  assert.equal(inside.code, 0, told(inside));
  assert.deepEqual(readdirSync(place.directory), [], 'files left in the lower');
  const plain = await oracle(place, options);
  assert.equal(plain.code, 0, `stress-ng fails on the plain directory: ${told(plain)}`);
  const here = skipped(inside).filter((name) => !NOT_ON_FUSE.includes(name));
  assert.deepEqual(here, skipped(plain), 'stressors that found nothing to do only in the window');
}

for (const user of ['root', 'ordinary'] as const) {
  const excluded = Object.keys(EXCLUDED[user]).join(',');
  inEachPart(
    'stress-ng verifies the filesystem stressors, all at once,',
    { users: [user], timeout: 2 * TIMEOUT },
    (place) =>
      sameStressors(place, ['--class', 'filesystem', '--exclude', excluded, '--all', '1', '--timeout', '10']),
  );
}

inEachPart(
  'stress-ng verifies input and output of every kind, all at once,',
  { users: ['root'], timeout: 2 * TIMEOUT },
  (place) => sameStressors(place, [...FILE_INPUT_OUTPUT, '--mmap-file', '--timeout', '5']),
);
