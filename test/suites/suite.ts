/**
 * What the suites of others have in common: each runs in a directory of the unprotected part and in one of the
 * protected part of a window, and on a plain directory as the oracle, with the same powers over the machine.
 */
import assert from 'node:assert/strict';
import { chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  disposeWorkspace,
  forgetExec,
  makeWorkspace,
  plainExec,
  protectedDifferences,
  type Workspace,
} from '../harness/forget.ts';
import { idsOf, type User, users } from '../harness/users.ts';
import { markedProcesses, type RunResult } from '../harness/watchdog.ts';

export type Part = 'unprotected' | 'protected';

export const parts: readonly Part[] = ['unprotected', 'protected'];

const DIRECTORY: Record<Part, string> = { unprotected: 'work', protected: 'memory/work' };

/** A window's command line and time limit, as a suite wants them. */
export interface SuiteOptions {
  /** Milliseconds for one run. Default 120,000. */
  timeout?: number;
  env?: Record<string, string>;
  input?: string;
  /** Further options of `forget exec`. */
  options?: readonly string[];
}

export interface Place {
  user: User;
  part: Part;
  workspace: Workspace;
  /** Where the suite works: absolute, there before the window opens, the same on the plain directory. */
  directory: string;
  /** A plain directory beside the workspace. */
  aside: string;
}

/** What a person reads when a run failed: the end of both streams. */
export function told(result: RunResult): string {
  return `exit code ${result.code}, signal ${result.signal}\n${result.stdout.slice(-6000)}\n${result.stderr.slice(-6000)}`;
}

/** A place for one run; `fill` puts into its directory what the lower is to have before the window opens. */
export function makePlace(user: User, part: Part, fill?: (directory: string) => void): Place {
  const { uid, gid } = idsOf(user);
  // Made before the snapshot, so that the protected part must afterwards still have it, empty.
  const workspace = makeWorkspace(user, {
    prepare: (path) => {
      const directory = join(path, DIRECTORY[part]);
      mkdirSync(directory);
      chownSync(directory, uid, gid);
      fill?.(directory);
    },
  });
  const aside = join(workspace.top, 'aside');
  mkdirSync(aside);
  chownSync(aside, uid, gid);
  return { user, part, workspace, directory: join(workspace.path, DIRECTORY[part]), aside };
}

/** Runs a suite's program inside a window; nothing protected may reach the lower, and nothing may stay behind. */
export async function runInside(
  place: Place,
  argv: readonly string[],
  { options = [], timeout = 120_000, ...rest }: SuiteOptions = {},
): Promise<RunResult> {
  const result = await forgetExec(place.workspace, argv, {
    ...rest,
    timeout,
    options: ['--quiet', ...options],
  });
  assert.deepEqual(protectedDifferences(place.workspace), [], 'the protected part of the lower changed');
  assert.deepEqual(markedProcesses(result.mark), [], 'processes left after the window');
  return result;
}

/**
 * Runs the same on the plain directory. An ordinary user's window is in a user namespace that knows this user alone:
 * there the kernel itself answers EINVAL to a chown to anybody else, on any filesystem, and so it must here.
 */
export function runPlain(
  place: Place,
  argv: readonly string[],
  { timeout = 120_000, env, input }: SuiteOptions = {},
): Promise<RunResult> {
  const line = place.user === 'root' ? argv : ['unshare', '--user', '--map-current-user', ...argv];
  return plainExec(place.workspace, line, { timeout, ...(env && { env }), ...(input && { input }) });
}

/** One test for each user and part; the place is made before and removed after. */
export function inEachPart(
  title: string,
  limits: { timeout: number; users?: readonly User[]; fill?: (directory: string) => void },
  body: (place: Place) => Promise<void>,
): void {
  for (const user of users.filter((one) => limits.users?.includes(one) ?? true)) {
    for (const part of parts) {
      test(`${title} in the ${part} part, as ${user}`, { timeout: limits.timeout }, async () => {
        const place = makePlace(user, part, limits.fill);
        try {
          await body(place);
        } finally {
          await disposeWorkspace(place.workspace);
        }
      });
    }
  }
}
