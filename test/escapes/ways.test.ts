// Ways past a window that are seen at its close: descriptors from outside, other mounts, changes that came by one.
import assert from 'node:assert/strict';
import { chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WindowReport } from '../../src/window/report.ts';
import { withWorkspace } from '../cases/window.ts';
import { plainExec, type Workspace } from '../harness/forget.ts';
import { forgetFor, idsOf } from '../harness/users.ts';

const shape = { empty: true } as const;

function fill(workspace: Workspace): void {
  const { uid, gid } = idsOf(workspace.user);
  mkdirSync(join(workspace.path, 'memory'));
  writeFileSync(join(workspace.path, 'memory/notes.md'), 'old\n');
  for (const path of ['memory', 'memory/notes.md']) chownSync(join(workspace.path, path), uid, gid);
}

/** A shell outside the window, with `$FORGET` for a window with a report. */
async function outside(
  workspace: Workspace,
  script: string,
): Promise<{ code: number | null; report: WindowReport }> {
  const file = join(workspace.top, 'report.json');
  const result = await plainExec(workspace, ['sh', '-c', script], {
    env: { FORGET: `${forgetFor(workspace.user)} exec --report ${file}` },
  });
  return { code: result.code, report: JSON.parse(readFileSync(file, 'utf8')) as WindowReport };
}

const found = ({ escapes }: WindowReport) => escapes.map(({ kind, path }) => `${kind} ${path}`);

withWorkspace(
  'a descriptor on real memory that the command was given is found, also where nothing else was written',
  async (workspace) => {
    fill(workspace);
    const { report, code } = await outside(
      workspace,
      'exec 7>>memory/notes.md 8<memory/notes.md; exec $FORGET --fail-on leak -- sh -c "echo past >&7"',
    );
    assert.deepEqual(found(report), ['descriptor memory/notes.md']);
    assert.equal(code, 3);
    assert.equal(readFileSync(join(workspace.path, 'memory/notes.md'), 'utf8'), 'old\npast\n');
  },
  { shape },
);

withWorkspace(
  'a process outside that has a file open which the window wrote too is found, and that the file changed',
  async (workspace) => {
    fill(workspace);
    const { report } = await outside(
      workspace,
      `sleep 60 7>>memory/notes.md & holder=$!
{ sleep 0.3; echo past >> memory/notes.md; } & writer=$!
$FORGET -- sh -c 'echo mine >> memory/notes.md; sleep 0.7'
wait $writer; kill $holder`,
    );
    // From a user namespace nobody may look into a process outside of it.
    if (workspace.user === 'ordinary') {
      assert.deepEqual(found(report), ['changed memory/notes.md']);
      assert.match(JSON.stringify(report.unsearched), /processes outside/);
      return;
    }
    assert.deepEqual(found(report), ['descriptor memory/notes.md', 'changed memory/notes.md']);
    assert.equal(report.escapes[0]!.program?.command, 'sleep');
  },
  { shape },
);

withWorkspace(
  "a process outside that writes other protected files is nobody's business",
  async (workspace) => {
    fill(workspace);
    const { report } = await outside(
      workspace,
      `sleep 60 7>>memory/notes.md & holder=$!\n$FORGET -- sh -c 'echo mine >> memory/mine.md'\nkill $holder`,
    );
    assert.deepEqual(found(report), []);
  },
  { shape },
);

withWorkspace(
  'another mount of the workspace is named, and is no leak',
  async (workspace) => {
    fill(workspace);
    const { code, report } = await outside(
      workspace,
      `exec unshare -m sh -c 'mkdir ../other && mount --bind . ../other && exec $FORGET --fail-on leak -- sh -c "echo x >> memory/notes.md"'`,
    );
    assert.deepEqual(found(report), [`mount ${workspace.top}/other`]);
    assert.equal(code, 0);
  },
  { shape, users: ['root'] },
);

withWorkspace(
  'what is written to memory by another mount is found as a change',
  async (workspace) => {
    fill(workspace);
    const { code, report } = await outside(
      workspace,
      `exec unshare -m sh -c 'mkdir ../other && mount --bind . ../other && exec $FORGET --fail-on leak -- sh -c "echo x >> memory/notes.md; echo past >> ../other/memory/notes.md"'`,
    );
    assert.deepEqual(found(report), ['changed memory/notes.md', `mount ${workspace.top}/other`]);
    assert.equal(code, 3);
  },
  { shape, users: ['root'] },
);
