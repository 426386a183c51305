// Ordinary work is no escape; and the look at it is bounded.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WindowReport } from '../../src/window/report.ts';
import { python, withWorkspace } from '../cases/window.ts';
import { forgetExec, type Workspace } from '../harness/forget.ts';
import { checkout } from '../harness/users.ts';

const GIT = {
  ...{ GIT_AUTHOR_NAME: 'A', GIT_AUTHOR_EMAIL: 'a@example.invalid', GIT_CONFIG_GLOBAL: '/dev/null' },
  ...{ GIT_COMMITTER_NAME: 'A', GIT_COMMITTER_EMAIL: 'a@example.invalid', GIT_CONFIG_NOSYSTEM: '1' },
};
/** A page of prose that is in nobody's memory by accident. */
const PAGE =
  'Ada Lovelace is going to leave the company in March because her mother is ill, and nobody else on the team knows about it yet.\n';

async function run(
  workspace: Workspace,
  argv: string[],
  options: string[] = [],
): Promise<{ code: number | null; said: string; report: WindowReport }> {
  const file = join(workspace.top, 'report.json');
  const result = await forgetExec(workspace, argv, {
    options: ['--report', file, ...options],
    env: GIT,
    timeout: 100_000,
  });
  assert.ok(existsSync(file), result.stderr);
  return { code: result.code, said: result.stderr, report: JSON.parse(readFileSync(file, 'utf8')) };
}

const leaks = ({ escapes }: WindowReport) =>
  escapes
    .filter(({ kind }) => kind !== 'mount')
    .map(({ kind, path, what }) => `${kind} ${path} ${what ?? ''}`);

/** In JavaScript for `node -e`: reads, writes and commits as an agent does, and keeps a transcript and notes of it all. */
const AGENT = String.raw`
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const log = (line) => fs.appendFileSync('logs/session.jsonl', JSON.stringify(line) + '\n');
const tool = (input, output) => {
  log({ type: 'assistant', message: { role: 'assistant', content: [{ type: 'tool_use', name: 'Write', input }] } });
  log({ type: 'user', message: { role: 'user', content: [{ type: 'tool_result', content: output }] }, toolUseResult: { output } });
};
fs.mkdirSync('logs', { recursive: true });
fs.mkdirSync('memory', { recursive: true });
fs.writeFileSync('.gitignore', '/memory/\n/logs/\n');
execFileSync('git', ['init', '-q']);
log({ type: 'user', message: { role: 'user', content: 'Please bring the sources over, and their documents.' } });
for (const [from, to] of JSON.parse(process.argv[1])) {
  const text = fs.readFileSync(from, 'utf8');
  fs.mkdirSync(require('node:path').dirname(to), { recursive: true });
  fs.writeFileSync(to, text.slice(0, text.length / 2));
  fs.writeFileSync(to, text);
  tool({ file_path: to, content: text }, text);
  execFileSync('git', ['add', '-A']);
  execFileSync('git', ['commit', '-qm', 'Add ' + to + '\n\n' + text.split('\n').slice(1, 8).join('\n')]);
  // No agent is quicker; what comes within a tick of the file clock cannot be told apart (find-escapes.ts).
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 25);
  fs.appendFileSync('memory/today.md', '\n## ' + to + '\n\n' + text.slice(0, 2000) + '\n\n' + '\x60\x60\x60\n' + text.slice(0, 500) + '\n\x60\x60\x60\n');
  log({ type: 'assistant', message: { role: 'assistant', content: [{ type: 'text', text: 'Done: ' + text.slice(0, 1000) }] } });
}
`;

const MATERIAL = ['README.md', 'docs/report.md', 'src/overlay/rename.ts', 'src/overlay/node.ts', 'LICENSE'];

withWorkspace(
  'no escape: sources and documents are written and committed, with a transcript and notes that quote them',
  async (workspace) => {
    const pairs = MATERIAL.map((path) => [join(checkout, path), path]);
    const { report, said } = await run(workspace, ['node', '-e', AGENT, JSON.stringify(pairs)]);
    assert.ok(report.searched.files >= 3 * MATERIAL.length, said);
    assert.deepEqual(leaks(report), [], said);
  },
  { shape: { empty: true }, users: ['root'] },
);

withWorkspace(
  'no escape: a formatter and a bundler go over sources that the notes quote',
  async (workspace) => {
    const script = `set -e
mkdir memory
cp -r '${checkout}/src/overlay' src
sleep 0.05
head -c 3000 src/node.ts > memory/today.md
head -c 3000 '${checkout}/README.md' >> memory/today.md
sleep 0.05
echo '{"formatter":{"indentStyle":"space","lineWidth":70}}' > biome.json
'${checkout}/node_modules/.bin/biome' format --write src > /dev/null
'${checkout}/node_modules/.bin/esbuild' src/rules.ts src/node.ts --outdir=out --sourcemap --log-level=error
cp '${checkout}/README.md' memory/readme.md`;
    const { report, said, code } = await run(workspace, ['sh', '-c', script]);
    assert.equal(code, 0, said);
    assert.ok(report.searched.files > 30, said);
    assert.deepEqual(leaks(report), [], said);
  },
  { shape: { empty: true }, users: ['root'] },
);

withWorkspace('a window in which nothing protected was written is not looked at', async (workspace) => {
  const { report } = await run(workspace, ['sh', '-c', 'cat MEMORY.md > notes.txt; cp -r src src2']);
  assert.deepEqual(report.searched, { files: 0, bytes: 0, milliseconds: 0 });
  assert.deepEqual(report.escapes, []);
});

withWorkspace(
  'a look at 20,000 files ends in time, says what it left out, and finds what people wrote after an install',
  async (workspace) => {
    const script = `${python(`
import os, time
os.mkdir("memory")
open("memory/ada.md", "w").write(${JSON.stringify(PAGE)})
time.sleep(0.05)
for d in range(200):
    os.makedirs(f"node_modules/p{d}")
    for f in range(100):
        open(f"node_modules/p{d}/{f}.js", "w").write(f"export const n{f} = {d};\\n" * 100)
open("notes.txt", "w").write(${JSON.stringify(PAGE)})`)}`;
    const { report, said } = await run(workspace, ['sh', '-c', script]);
    assert.deepEqual(leaks(report), ['text notes.txt ']);
    assert.ok(
      report.unsearched.some(({ why, count }) => /than are remembered/.test(why) && count > 14_000),
      said,
    );
    assert.ok(
      report.searched.files <= 5000 && report.searched.milliseconds < 4000,
      JSON.stringify(report.searched),
    );
  },
  { shape: { empty: true }, users: ['root'], timeout: 120_000 },
);

withWorkspace(
  'large files are left out, and that is said',
  async (workspace) => {
    const page = JSON.stringify(PAGE);
    const { report } = await run(workspace, [
      'sh',
      '-c',
      `mkdir memory\n${python(`
import time
open("memory/ada.md", "w").write(${page})
time.sleep(0.05)
open("large.txt", "w").write(${page} * 20000)
open("small.txt", "w").write(${page})`)}`,
    ]);
    assert.deepEqual(leaks(report), ['text small.txt ']);
    assert.deepEqual(
      report.unsearched.filter(({ why }) => !why.startsWith('processes')),
      [{ why: 'large files', count: 1 }],
    );
  },
  { shape: { empty: true } },
);

const LEAK = `mkdir -p memory; printf '%s' '${PAGE.repeat(2)}' > memory/ada.md; sleep 0.05; cp memory/ada.md notes.txt`;
const verdicts: [title: string, options: string[], script: string, code: number][] = [
  ['without --fail-on a leak changes no exit code', [], `${LEAK}; exit 7`, 7],
  ['--fail-on leak makes 3 of a leak', ['--fail-on', 'leak'], LEAK, 3],
  ['--fail-on leak makes 3 of a failure with a leak', ['--fail-on', 'leak'], `${LEAK}; exit 7`, 3],
  ['--fail-on leak lets a protected write pass', ['--fail-on', 'leak'], 'echo x >> MEMORY.md', 0],
  ['--fail-on protected-write makes 3 of one', ['--fail-on', 'protected-write'], 'echo x >> MEMORY.md', 3],
  [
    '--fail-on protected-write lets all else pass',
    ['--fail-on', 'protected-write'],
    'echo x > a; cat MEMORY.md',
    0,
  ],
  ['both reasons together', ['--fail-on', 'protected-write', '--fail-on', 'leak'], 'rm MEMORY.md', 3],
];
for (const [title, options, script, code] of verdicts) {
  withWorkspace(
    title,
    async (workspace) => {
      const ran = await run(workspace, ['sh', '-c', script], options);
      assert.equal(ran.code, code, ran.said);
    },
    { users: ['ordinary'] },
  );
}

withWorkspace(
  '--fail-on with something else is refused',
  async (workspace) => {
    const result = await forgetExec(workspace, ['true'], { options: ['--fail-on', 'rain'] });
    assert.equal(result.code, 125);
    assert.match(result.stderr, /leak, protected-write/);
  },
  { users: ['ordinary'] },
);

withWorkspace(
  'a transcript of 300,000 messages is looked through, or the report says that it was not',
  async (workspace) => {
    const { code, said, report } = await run(workspace, [
      'sh',
      '-c',
      'echo more >>logs/long.jsonl; echo x >src/new.txt',
    ]);
    assert.equal(code, 0);
    assert.doesNotMatch(said, /internal error/);
    assert.deepEqual([report.defects, leaks(report)], [[], []]);
  },
  {
    users: ['root'],
    shape: {
      prepare: (path) =>
        writeFileSync(join(path, 'logs/long.jsonl'), '{"role":"user","content":"yes"}\n'.repeat(300_000)),
    },
  },
);
