import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { WindowReport } from '../../src/window/report.ts';
import { reportMarkdown } from '../../src/window/report-markdown.ts';
import { withWorkspace } from '../cases/window.ts';
import { forgetExec } from '../harness/forget.ts';
import { asUser, environmentOf, forgetFor } from '../harness/users.ts';

withWorkspace('a saved report is printed for people, as Markdown and as JSON', async (workspace) => {
  const file = join(workspace.top, 'report.json');
  const script = 'echo x >memory/new; rm memory/old.md; sleep 60 & ';
  const { stderr } = await forgetExec(workspace, ['sh', '-c', script], {
    options: ['--verbose', '--report', file],
  });
  const report = (...args: string[]) => {
    const [program, ...line] = asUser(workspace.user, [forgetFor(workspace.user), 'report', ...args]);
    return spawnSync(program!, line, {
      cwd: workspace.top,
      env: environmentOf(workspace.user),
      encoding: 'utf8',
      timeout: 20_000,
    });
  };
  const printed = report('report.json').stdout;
  assert.match(printed, /memory\/new +created, 2 written +\(sh \d+\)/);
  assert.match(printed, /memory\/old\.md +deleted/);
  // The same lines as at the window's end.
  assert.ok(stderr.includes(printed), `${printed}\n---\n${stderr}`);
  const markdown = report('--markdown', 'report.json').stdout;
  assert.match(markdown, /^\| <code>memory\/old\.md<\/code> \| deleted \| <code>rm<\/code> \d+ \|$/m);
  assert.match(markdown, /^- left running: sleep 60 &#40;pid \d+&#41; was terminated$/m);
  assert.deepEqual(
    JSON.parse(report('--json', 'report.json').stdout),
    JSON.parse(readFileSync(file, 'utf8')),
  );

  const wrong: [string, RegExp][] = [
    ['{"a": 1}', /: is not a report of forget; name a file that --report wrote/],
    ['text', /: is not JSON/],
    ['[]', /: is not a report/],
    ['null', /: is not a report/],
    ['{"version": 2}', /: is of version 2, which this forget does not know/],
  ];
  for (const [content, line] of wrong) {
    writeFileSync(join(workspace.top, 'wrong.json'), content);
    const { status, stdout, stderr: said } = report('wrong.json');
    assert.deepEqual([status, stdout], [125, ''], content);
    assert.match(said, /^forget: wrong\.json[^\n]*\n$/);
    assert.match(said, line);
  }
  assert.match(report('absent.json').stderr, /absent\.json: cannot be read \(ENOENT\)/);
});

test('no name in a report can become more than text in Markdown, and a long report stays short', () => {
  const nasty = '`a|b`<img src=x>](http://x) **b** @someone #1 &lt; \\| ~~x~~ _y_';
  const paths = [nasty, ...Array.from({ length: 1000 }, (_, n) => `memory/${n}`)];
  const report: WindowReport = {
    version: 1,
    kind: 'exec',
    workspace: nasty,
    roots: ['/ws', nasty],
    command: ['sh', '-c', nasty],
    exit: { code: null, signal: 9 },
    opened: '2026-01-01T00:00:00Z',
    closed: '2026-01-01T00:00:01Z',
    times: { start: 1, open: 1234 },
    upper: { used: 4096, limit: 1024 ** 3, noswap: true },
    protected: paths.map((path) => ({
      path,
      created: true,
      deleted: false,
      written: 1,
      changed: false,
      programs: [{ pid: 1, command: nasty }],
    })),
    totals: { written: 1, created: 1, deleted: 0, renamed: 0, bytes: 1 },
    moved: [{ path: nasty, why: nasty }],
    errors: [{ path: nasty, error: nasty, count: 2 }],
    escapes: [
      {
        kind: 'text',
        path: nasty,
        protected: nasty,
        words: 1,
        percent: 1,
        program: { pid: 1, command: nasty },
      },
      { kind: 'symlink', path: nasty, what: nasty },
    ],
    searched: { files: 1, bytes: 1, milliseconds: 1 },
    unsearched: [{ why: nasty, count: 1 }],
    leftovers: [{ pid: 2, command: nasty, how: 'killed' }],
    tracked: [nasty],
    requests: {},
    notifications: 0,
    defects: [nasty],
  };
  const markdown = reportMarkdown(report);
  assert.match(markdown, /^### forget: caught 1001 protected paths$/m);
  assert.match(markdown, /: signal 9, 1\.2 s\./);
  assert.match(markdown, /^and 801 more$/m);
  assert.ok(markdown.length < 200_000);
  // What Markdown or HTML is made of, beside the table's own.
  const text = markdown
    .replaceAll(/<\/?code>/g, '')
    .replaceAll(/&#\d+;/g, '')
    .replaceAll(/^\|.*\|$/gm, (row) => row.slice(2, -2).replaceAll(' | ', ' '));
  assert.doesNotMatch(text.replaceAll(/^#+ /gm, ''), /[`|<>[\]*@#&~_\\]/);
});
