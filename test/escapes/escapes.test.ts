// What a window could not catch is found when it closes, and said; and ordinary work is no escape.
import assert from 'node:assert/strict';
import { chownSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Escape } from '../../src/window/escapes/escape.ts';
import type { WindowReport } from '../../src/window/report.ts';
import { python, withWorkspace } from '../cases/window.ts';
import { forgetExec, plainExec, protectedDifferences, type Workspace } from '../harness/forget.ts';
import { forgetFor } from '../harness/users.ts';

const PAGE = `Ada Lovelace is going to leave the company in March because her mother is ill, and nobody
else on the team knows about it yet. She wants Charles to take over the analytical engine.
`;
const OTHER = `The parser reads one token ahead and never gives one back, which keeps the whole grammar
simple enough that a person can follow it, and an error always names the place where it began.
`;

const GIT = {
  ...{ GIT_AUTHOR_NAME: 'A', GIT_AUTHOR_EMAIL: 'a@example.invalid', GIT_CONFIG_GLOBAL: '/dev/null' },
  ...{ GIT_COMMITTER_NAME: 'A', GIT_COMMITTER_EMAIL: 'a@example.invalid', GIT_CONFIG_NOSYSTEM: '1' },
};

interface Ran {
  code: number | null;
  said: string;
  report: WindowReport;
}

/** The script writes files by `put NAME <<END`; between two commands that is later, a clock tick passes. */
async function run(workspace: Workspace, script: string, options: string[] = []): Promise<Ran> {
  const file = join(workspace.top, 'report.json');
  const lines = `set -e\nput() { mkdir -p "$(dirname "$1")"; cat > "$1"; }\nlater() { sleep 0.05; }\n${script}`;
  const result = await forgetExec(workspace, ['sh', '-c', lines], {
    options: ['--report', file, ...options],
    env: GIT,
  });
  assert.ok(existsSync(file), result.stderr);
  const report = JSON.parse(readFileSync(file, 'utf8')) as WindowReport;
  return { code: result.code, said: result.stderr, report };
}

const put = (path: string, text: string) => `put '${path}' <<'END'\n${text}END\n`;

const short = ({ kind, path, what, protected: of }: Escape) =>
  [kind, path, what, of].filter(Boolean).join(' | ');

interface Case {
  script: string;
  escapes: string[];
  prepare?: (path: string) => void;
  options?: string[];
}

function finds(title: string, { script, escapes, prepare, options }: Case): void {
  withWorkspace(
    title,
    async (workspace) => {
      const { report, said, code } = await run(workspace, script, options);
      assert.equal(code, 0, said);
      assert.deepEqual(
        report.escapes.map(short),
        escapes.map((one) => one.replace('WORKSPACE', workspace.path)),
      );
      assert.deepEqual(
        report.unsearched.filter(({ why }) => !why.startsWith('processes')),
        [],
      );
      for (const { path } of report.escapes) assert.ok(said.includes(path), said);
      const json = JSON.stringify({ ...report, command: [] });
      assert.ok(
        !json.includes('Lovelace') && !/[0-9a-f]{20}/.test(json),
        'the report has content, or a hash of it',
      );
      assert.deepEqual(protectedDifferences(workspace), []);
    },
    { shape: { empty: true, ...(prepare && { prepare }) } },
  );
}

/** A file that stands there before the window. */
const write = (path: string, text: string) => (root: string) => {
  writeFileSync(join(root, path), text);
  const { uid, gid } = statSync(root);
  chownSync(join(root, path), uid, gid);
};

finds('a copy of a memory page, and one with a changed line, are found in unprotected files', {
  script: `${put('memory/ada.md', PAGE)}later\ncp memory/ada.md notes.txt\nsed 's/company/firm/' notes.txt > src.ts\necho x > other.txt`,
  escapes: ['text | notes.txt | memory/ada.md', 'text | src.ts | memory/ada.md'],
});

finds('a page is found by a name that its copy got later, and in a directory that was renamed', {
  script: `${put('memory/ada.md', PAGE)}later\nmkdir new\ncp memory/ada.md new/tmp\nmv new/tmp new/notes.txt\nmv new old`,
  escapes: ['text | old/notes.txt | memory/ada.md'],
});

finds('a page is found where only a part of an older file is its', {
  prepare: write('README.md', OTHER),
  script: `${put('memory/ada.md', PAGE)}later\ncat memory/ada.md >> README.md`,
  escapes: ['text | README.md | memory/ada.md'],
});

finds('a page that is rewritten, or gone by the end, is found as it was', {
  script: `${put('memory/a.md', PAGE)}later\ncp memory/a.md a.txt\nlater\n${put('memory/a.md', OTHER)}later\ncp memory/a.md b.txt\nrm memory/a.md`,
  escapes: ['text | a.txt | memory/a.md', 'text | b.txt | memory/a.md'],
});

finds('what a page says of files that had it first is no escape', {
  prepare: write('README.md', OTHER),
  script: `${put('memory/ada.md', 'Today.\n')}later\n${put('guide.md', PAGE)}later
cat README.md guide.md >> memory/ada.md\nlater\necho more >> README.md\n${put('guide.md', `${PAGE}more\n`)}cp README.md again.md`,
  escapes: [],
});

finds("the person's words of a transcript are found, its tool calls are not", {
  script: `mkdir logs\n${python(`
import json, time
lines = [
  {"type": "user", "message": {"role": "user", "content": ${JSON.stringify(PAGE.replaceAll('\n', ' '))}}},
  {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "tool_use", "input": {"content": ${JSON.stringify(OTHER)}}}]}},
]
open("logs/session.jsonl", "w").write("".join(json.dumps(l) + "\\n" for l in lines))
time.sleep(0.05)
open("code.ts", "w").write(${JSON.stringify(OTHER)})
open("said.txt", "w").write(${JSON.stringify(PAGE)})`)}`,
  escapes: ['text | said.txt | logs/session.jsonl'],
});

finds('a page in a commit, in its message and in a pack is found', {
  script: `git init -q\n${put('memory/ada.md', PAGE)}later\ncp memory/ada.md notes.txt\ngit add notes.txt\ngit commit -q -F memory/ada.md
git init -q packed\ncp notes.txt packed/page\ncd packed\ngit add page\ngit commit -q -m Page\ngit repack -q -a -d\nrm page\ncd ..\nrm notes.txt`,
  escapes: [
    'git | .git | notes.txt, in a new commit | memory/ada.md',
    'git | .git | the message of a new commit | memory/ada.md',
    'git | packed/.git | a file in a new pack | memory/ada.md',
  ],
});

finds('a symlink in memory that leads out is found, and one that does not is none', {
  script: `mkdir memory src\nln -s /tmp memory/out\nln -s ../memory/b.md memory/in\nln -s ../src memory/src\nln -s /usr/bin/env memory/env`,
  escapes: ['symlink | memory/out | /tmp'],
});

finds('a symlink in memory to an unprotected file is found when that was written', {
  script: `mkdir memory\nln -s ../notes.txt memory/link.md\necho real > memory/link.md\ncat notes.txt`,
  escapes: ['symlink | memory/link.md | WORKSPACE/notes.txt'],
});

finds('text that was in memory before the window is no escape of it', {
  prepare: write('MEMORY.md', PAGE),
  script: `cat MEMORY.md > notes.txt\nlater\nmkdir memory\ncp MEMORY.md memory/again.md\nlater\ncp MEMORY.md more.txt\necho 'One more.' >> MEMORY.md\ncp MEMORY.md most.txt`,
  escapes: [],
});

withWorkspace(
  'memory of another root of the window is found in the workspace, and by its own name',
  async (workspace) => {
    const home = join(workspace.top, 'agent');
    mkdirSync(home);
    const { uid, gid } = statSync(workspace.path);
    chownSync(home, uid, gid);
    const script = `${put(join(home, 'memory.md'), PAGE)}later\ncp '${home}/memory.md' notes.txt`;
    const { report } = await run(workspace, script, ['--root', home]);
    assert.deepEqual(report.escapes.map(short), [`text | notes.txt | ${home}/memory.md`]);
  },
  { shape: { empty: true } },
);

withWorkspace(
  'a mount that every process sees is looked at when it is unmounted',
  async (workspace) => {
    const file = join(workspace.top, 'report.json');
    const forget = forgetFor(workspace.user);
    const script = `set -e\nput() { mkdir -p "$(dirname "$1")"; cat > "$1"; }
${forget} mount --report ${file} ${workspace.path}
cd ${workspace.path}
${put('memory/ada.md', PAGE)}sleep 0.05\ncp memory/ada.md notes.txt\ncd /\n${forget} unmount ${workspace.path}`;
    const result = await plainExec(workspace, ['sh', '-c', script], { cwd: '/' });
    assert.equal(result.code, 0, result.stderr);
    const report = JSON.parse(readFileSync(file, 'utf8')) as WindowReport;
    assert.deepEqual(report.escapes.map(short), ['text | notes.txt | memory/ada.md']);
    assert.match(`${result.stdout}${result.stderr}`, /escaped: notes\.txt has 34 words of memory\/ada\.md/);
  },
  { shape: { empty: true }, users: ['root'] },
);
