/**
 * How often the look at the close (docs/escapes.md) is wrong, and what of planted leaks it finds:
 *
 *   node --import tsx scripts/escapes/measure.ts [--commits N] REPOSITORY...
 *
 * REPOSITORY is a git directory with history. Its last N commits are done again by a scripted agent (replay-agent.mjs),
 * five in a window; whatever is reported is a false alarm. Then its prose is taken for memory and planted.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Escape } from '../../src/window/escapes/escape.ts';
import type { WindowReport } from '../../src/window/report.ts';
import { forms, plantScript } from './plants.ts';

const forget = fileURLToPath(new URL('../../bin/forget', import.meta.url));
const agent = fileURLToPath(new URL('./replay-agent.mjs', import.meta.url));
const COMMITS_A_WINDOW = 5;
const HABITS = ['after', 'plan', 'asked'] as const;

const { values, positionals } = parseArgs({
  options: { commits: { type: 'string', default: '50' }, pages: { type: 'string', default: '20' } },
  allowPositionals: true,
});

const IDENTITY = {
  ...{ GIT_AUTHOR_NAME: 'Agent', GIT_AUTHOR_EMAIL: 'agent@example.invalid', GIT_CONFIG_GLOBAL: '/dev/null' },
  ...{ GIT_COMMITTER_NAME: 'Agent', GIT_COMMITTER_EMAIL: 'agent@example.invalid', GIT_CONFIG_NOSYSTEM: '1' },
};

function inWindow(workspace: string, argv: readonly string[]): WindowReport {
  const report = `${workspace}.json`;
  const run = spawnSync(forget, ['exec', '--quiet', '--report', report, '--', ...argv], {
    cwd: workspace,
    encoding: 'utf8',
    env: { ...process.env, ...IDENTITY },
    timeout: 120_000,
  });
  if (run.status !== 0) throw new Error(`${argv.join(' ')}: ${run.status} ${run.stderr}`);
  return JSON.parse(readFileSync(report, 'utf8')) as WindowReport;
}

function git(directory: string, ...args: string[]): string {
  return execFileSync('git', ['-c', 'safe.directory=*', ...args], {
    cwd: directory,
    encoding: 'utf8',
    maxBuffer: 256 << 20,
  }).trim();
}

/** A repository of its own with the tree of a commit in its first commit. */
function checkout(repository: string, commit: string, workspace: string): void {
  rmSync(workspace, { recursive: true, force: true });
  const files = execFileSync('git', ['--git-dir', repository, 'archive', commit], { maxBuffer: 1 << 30 });
  execFileSync('mkdir', [workspace]);
  execFileSync('tar', ['-x', '-C', workspace], { input: files });
  git(workspace, 'init', '--quiet');
  git(workspace, 'add', '--all');
  execFileSync('git', ['commit', '--quiet', '--message', 'Start'], {
    cwd: workspace,
    env: { ...process.env, ...IDENTITY },
  });
}

function replay(repository: string, scratch: string): void {
  const workspace = join(scratch, 'workspace');
  const log = git(
    scratch,
    '--git-dir',
    repository,
    'log',
    '--first-parent',
    '--no-merges',
    '--format=%H',
    `-${values.commits}`,
  );
  // A first commit has none to start from.
  const commits = log.split('\n').reverse().slice(1);
  for (const habit of HABITS) {
    const alarms: Escape[] = [];
    let wrong = 0;
    let milliseconds = 0;
    let files = 0;
    let windows = 0;
    for (let at = 0; at < commits.length; at += COMMITS_A_WINDOW) {
      const some = commits.slice(at, at + COMMITS_A_WINDOW);
      checkout(repository, `${some[0]}^`, workspace);
      const report = inWindow(workspace, ['node', agent, habit, repository, ...some]);
      const found = report.escapes.filter(({ kind }) => kind !== 'mount');
      windows++;
      if (found.length > 0) wrong++;
      alarms.push(...found);
      files += report.searched.files;
      milliseconds = Math.max(milliseconds, report.searched.milliseconds);
    }
    console.log(
      `${basename(dirname(repository))}, notes ${habit}: ${commits.length} commits in ${windows} windows: ${wrong} windows with an alarm, ${alarms.length} alarms (${files} files looked through, at most ${milliseconds} ms a window)`,
    );
    for (const { kind, path, what, words, percent, ...rest } of alarms)
      console.log(`    ${kind} ${path} ${what ?? ''}: ${words} words of ${rest.protected}, ${percent} %`);
  }
}

/** Pages of prose: what stands in the repository's own documents, in pieces of a memory page's size. */
function pagesOf(repository: string, workspace: string): string[] {
  const names = git(workspace, '--git-dir', repository, 'ls-tree', '-r', '--name-only', 'HEAD').split('\n');
  const pages: string[] = [];
  for (const name of names.filter((one) => /\.(md|rst)$/.test(one))) {
    const text = git(workspace, '--git-dir', repository, 'show', `HEAD:${name}`).replace(
      /^```[\s\S]*?^```/gm,
      '',
    );
    const paragraphs = text
      .split(/\n\s*\n/)
      .filter((one) => one.split(/\s+/).length > 25 && !/^\s*[|<.:]/.test(one));
    for (let at = 0; at + 3 <= paragraphs.length; at += 3)
      pages.push(`${paragraphs.slice(at, at + 3).join('\n\n')}\n`);
  }
  const step = Math.max(1, Math.floor(pages.length / Number(values.pages)));
  return pages.filter((_, index) => index % step === 0).slice(0, Number(values.pages));
}

function plant(repository: string, scratch: string): void {
  const workspace = join(scratch, 'planted');
  const page = join(scratch, 'page.md');
  const found = new Map<string, number>(forms.map(({ name }) => [name, 0]));
  const pages = pagesOf(repository, scratch);
  for (const text of pages) {
    rmSync(workspace, { recursive: true, force: true });
    execFileSync('mkdir', [workspace]);
    git(workspace, 'init', '--quiet');
    writeFileSync(page, text);
    const report = inWindow(workspace, ['sh', '-c', plantScript(page)]);
    for (const { name, isFound } of forms) {
      if (report.escapes.some(isFound)) found.set(name, found.get(name)! + 1);
    }
  }
  console.log(`${basename(dirname(repository))}: ${pages.length} pages planted`);
  for (const [name, count] of found) console.log(`    ${name}: ${count} of ${pages.length}`);
}

for (const repository of positionals) {
  const scratch = mkdtempSync(join(tmpdir(), 'forget-escapes-'));
  try {
    replay(repository, scratch);
    plant(repository, scratch);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
