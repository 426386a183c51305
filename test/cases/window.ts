/** The form most cases take: a script inside one window, what it must print, and what the lower must be afterwards. */
import assert from 'node:assert/strict';
import { lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  type ComparisonOptions,
  compareWithPlain,
  disposeWorkspace,
  type ForgetOptions,
  forgetExec,
  makeWorkspace,
  protectedDifferences,
  type Workspace,
  type WorkspaceShape,
} from '../harness/forget.ts';
import { type User, users } from '../harness/users.ts';
import { markedProcesses, type RunResult } from '../harness/watchdog.ts';

const TIMEOUT = 120_000;

/** Runs a body with a workspace for each user, and removes it afterwards. */
export function withWorkspace(
  title: string,
  body: (workspace: Workspace) => Promise<void>,
  only: { users?: readonly User[]; shape?: WorkspaceShape; timeout?: number } = {},
): void {
  for (const user of users.filter((one) => only.users?.includes(one) ?? true)) {
    test(`${title}, as ${user}`, { timeout: only.timeout ?? TIMEOUT }, async () => {
      const workspace = makeWorkspace(user, only.shape);
      try {
        await body(workspace);
      } finally {
        await disposeWorkspace(workspace);
      }
    });
  }
}

export interface Case {
  /** For `sh -c`; errors go to its standard output unless it says otherwise. */
  script: string;
  prints: string | RegExp;
  exec?: ForgetOptions;
  users?: readonly User[];
  shape?: WorkspaceShape;
  /** Which paths the window protects, where that is not the default. */
  isProtected?: (path: string) => boolean;
  /** What the lower must hold afterwards: a path's content, or null for absent. */
  lower?: Record<string, string | null>;
  afterwards?: (workspace: Workspace, result: RunResult) => void | Promise<void>;
}

export function assertLower(workspace: Workspace, lower: Record<string, string | null>): void {
  for (const [path, content] of Object.entries(lower)) {
    const at = join(workspace.path, path);
    if (content === null) {
      assert.ok(!lstatSync(at, { throwIfNoEntry: false }), `${path} is in the lower`);
    } else {
      assert.equal(readFileSync(at, 'utf8'), content, `${path} in the lower`);
    }
  }
}

/** Runs the script in a window as each user; the protected part of the lower must come out identical. */
export function inWindow(title: string, wanted: Case): void {
  withWorkspace(
    title,
    async (workspace) => {
      const result = await forgetExec(workspace, ['sh', '-c', `exec 2>&1\n${wanted.script}`], wanted.exec);
      const told = `${result.stdout}${result.stderr}`;
      if (typeof wanted.prints === 'string') assert.equal(result.stdout, wanted.prints, told);
      else assert.match(result.stdout, wanted.prints, told);
      assert.equal(result.code, 0, told);
      assert.deepEqual(protectedDifferences(workspace, wanted.isProtected), []);
      assert.deepEqual(markedProcesses(result.mark), [], 'processes left after the window');
      assertLower(workspace, wanted.lower ?? {});
      await wanted.afterwards?.(workspace, result);
    },
    { ...(wanted.users && { users: wanted.users }), ...(wanted.shape && { shape: wanted.shape }) },
  );
}

/** A script that must print the same, and leave the same unprotected tree, as without forget. */
export function sameAsPlain(
  title: string,
  script: string,
  options: ComparisonOptions & { users?: readonly User[] } = {},
) {
  for (const user of users.filter((one) => options.users?.includes(one) ?? true)) {
    test(`${title}, as ${user}`, { timeout: TIMEOUT }, async () => {
      const result = await compareWithPlain(user, ['sh', '-c', `exec 2>&1\n${script}`], options);
      assert.equal(result.inside.stdout, result.plain.stdout, result.inside.stderr);
      assert.equal(result.inside.code, result.plain.code);
      assert.deepEqual(result.protectedPart, []);
      assert.deepEqual(result.unprotectedPart, []);
      assert.deepEqual(markedProcesses(result.inside.mark), [], 'processes left after the window');
    });
  }
}

/** A python program as a line of `sh`. */
export function python(source: string): string {
  return `python3 - <<'PYTHON'\n${source.trim()}\nPYTHON`;
}
