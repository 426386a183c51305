// CPython's own tests of everything that touches files, with its temporary files in the window: the same tests pass,
// and the same skip themselves for the same reason, as on a plain directory.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readableFor } from '../harness/users.ts';
import type { RunResult } from '../harness/watchdog.ts';
import { inEachPart, type Place, runInside, runPlain, told } from './suite.ts';

// Debian has no test_sqlite3 in its package; sqlite.test.ts is harder on databases than that one.
const TESTS = ['test_os', 'test_shutil', 'test_mmap', 'test_fcntl', 'test_tempfile', 'test_pathlib'].concat([
  ...['test_posix', 'test_fileio', 'test_file', 'test_glob', 'test_filecmp', 'test_dbm'],
]);
const TIMEOUT = 240_000;
const program = fileURLToPath(new URL('./programs/cpython.py', import.meta.url));

/** Fail for the ordinary user on the plain directory too (compared below), with the reason. */
const NOT_OF_THE_FILESYSTEM: Record<string, string> = {
  'test.test_os.ChownFileTests.test_chown_without_permission':
    'expects EPERM; in a user namespace that knows one user the kernel says EINVAL',
  'test.test_pathlib.PathTest.test_home': 'the user has no entry in /etc/passwd',
  'test.test_pathlib.PosixPathTest.test_home': 'the user has no entry in /etc/passwd',
  'test.test_pathlib.PosixPathTest.test_expanduser': 'the user has no entry in /etc/passwd',
  'test.test_posix.PosixTester.test_getgrouplist': 'the user has no entry in /etc/passwd',
};

interface Outcomes {
  code: number;
  /** Test by its full name: "passed", "failed", or "skipped: " and why. */
  cases: Record<string, string>;
  /** The end of what the runner printed. */
  output: string;
}

function outcomes(result: RunResult): Outcomes {
  assert.equal(result.code, 0, told(result));
  return JSON.parse(result.stdout) as Outcomes;
}

// The tests belong to the system's own python, whatever else is in the PATH.
const command = (place: Place) => [
  '/usr/bin/python3',
  readableFor(place.user, program),
  place.directory,
  ...TESTS,
];

const oracles = new Map<string, Promise<RunResult>>();

inEachPart(
  "CPython's own file tests pass as on a plain directory",
  { timeout: 2 * TIMEOUT },
  async (place) => {
    const inside = outcomes(
      await runInside(place, command(place), {
        timeout: TIMEOUT,
        // The tests of extended attributes want a trusted.* one, which takes CAP_SYS_ADMIN.
        options: place.user === 'root' ? ['--keep-caps'] : [],
      }),
    );
    const known = place.user === 'root' ? {} : NOT_OF_THE_FILESYSTEM;
    const failed = Object.keys(inside.cases).filter(
      (name) => inside.cases[name] === 'failed' && !(name in known),
    );
    assert.deepEqual(failed, [], inside.output);
    assert.ok(Object.keys(inside.cases).length > 1200, inside.output);
    assert.deepEqual(readdirSync(place.directory), [], 'files left in the lower');
    const run = oracles.get(place.user) ?? runPlain(place, command(place), { timeout: TIMEOUT });
    oracles.set(place.user, run);
    assert.deepEqual(inside.cases, outcomes(await run).cases);
  },
);
