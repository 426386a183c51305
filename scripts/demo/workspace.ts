/**
 * The example workspace: a small git repository that an agent lives in, with the agent's memory, session log and
 * deliverables beside the source; and a snapshot of what a directory holds, to compare before and after.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CODENAME, GREETING } from './task.ts';

/** The agent's transcript of an earlier session, which it goes on appending to. */
export const SESSION = 'logs/session.jsonl';

/** git without the person's settings, and with fixed dates: the same commit has the same id in every run. */
export const GIT_ENV: Readonly<Record<string, string>> = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'Agent',
  GIT_AUTHOR_EMAIL: 'agent@example.invalid',
  GIT_AUTHOR_DATE: '2026-06-01T12:00:00Z',
  GIT_COMMITTER_NAME: 'Agent',
  GIT_COMMITTER_EMAIL: 'agent@example.invalid',
  GIT_COMMITTER_DATE: '2026-06-01T12:00:00Z',
};

function earlierSession(root: string): string {
  const timestamp = '2026-05-30T09:00:00.000Z';
  const said = (id: string, parentId: string | null, message: object): object => ({
    type: 'message',
    id,
    parentId,
    timestamp,
    message,
  });
  const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2 };
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  const lines = [
    { type: 'session', version: 3, id: '7b0f5c52-0000-4000-8000-000000000001', timestamp, cwd: root },
    said('00000001', null, { role: 'user', content: 'How do we greet?', timestamp: 0 }),
    said('00000002', '00000001', {
      role: 'assistant',
      content: [{ type: 'text', text: 'I wrote it down in memory/people.md.' }],
      api: 'openai-completions',
      provider: 'mock',
      model: 'mock',
      usage: { ...usage, cost },
      stopReason: 'stop',
      timestamp: 0,
    }),
  ];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

const files: Record<string, string> = {
  'MEMORY.md': '# Memory\n\n- memory/project.md: what this is\n- memory/people.md: what people like\n',
  'memory/project.md': `# Project\n\nCodename: ${CODENAME}\n`,
  'memory/people.md': `# People\n\nGreeting: ${GREETING}\n`,
  'memory/notes.md': '# Notes\n\n- 2026-05-30: asked how we greet\n',
  'DELIVERABLES.md': '# Deliverables\n\n- [ ] nothing yet\n',
  'package.json': '{ "name": "greeting", "version": "1.0.0", "type": "module", "private": true }\n',
  'src/greeting.js': "export function greet(name) {\n  return 'Hello ' + name;\n}\n",
  'test/greeting.test.js':
    "import assert from 'node:assert';\nimport test from 'node:test';\nimport { greet } from '../src/greeting.js';\n\n" +
    "test('greets as agreed', () => assert.equal(greet('Ada'), 'Hello, Ada!'));\n",
  '.gitignore': '/MEMORY.md\n/DELIVERABLES.md\n/memory/\n/logs/\n/.agent-home/\n',
};

/** Writes the example workspace into the new directory `root`. */
export function createWorkspace(root: string): void {
  writeTree(root, { ...files, [SESSION]: earlierSession(root) });
  git(root, 'init', '--quiet', '--initial-branch=main');
  git(root, 'add', '.');
  git(root, 'commit', '--quiet', '--message=Greet');
}

/** Writes each file, and the directories above it. */
export function writeTree(root: string, contents: Record<string, string>): void {
  for (const [path, content] of Object.entries(contents)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}

/** stdout of one git command in `root`, trimmed; throws with git's own words. */
export function git(root: string, ...args: string[]): string {
  const run = spawnSync('git', ['-c', 'safe.directory=*', ...args], {
    cwd: root,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, ...GIT_ENV },
  });
  if (run.error) throw run.error;
  if (run.status !== 0) throw new Error(`git ${args.join(' ')}: ${run.stderr.trim()}`);
  return run.stdout.trim();
}

/** What one path is. `state` holds everything that must not change when nothing touches it; atime is left out. */
export interface Entry {
  kind: 'file' | 'directory' | 'symlink' | 'other';
  size: number;
  /** Of the bytes of a file, or the target of a symlink; empty otherwise. */
  content: string;
  /** Mode in octal and owner, as `644 0:0`. */
  permissions: string;
  state: string;
}

/** Every path below `root` but .git (compared by commit), relative, sorted. */
export function snapshot(root: string): Map<string, Entry> {
  const entries = new Map<string, Entry>();
  const walk = (directory: string): void => {
    for (const name of readdirSync(join(root, directory)).sort()) {
      const path = join(directory, name);
      if (path === '.git') continue;
      const entry = entryOf(join(root, path));
      entries.set(path, entry);
      if (entry.kind === 'directory') walk(path);
    }
  };
  walk('');
  return entries;
}

function entryOf(path: string): Entry {
  const stat = lstatSync(path, { bigint: true });
  const kind = stat.isFile()
    ? 'file'
    : stat.isDirectory()
      ? 'directory'
      : stat.isSymbolicLink()
        ? 'symlink'
        : 'other';
  const bytes =
    kind === 'file' ? readFileSync(path) : kind === 'symlink' ? readlinkSync(path, 'buffer') : undefined;
  const content = bytes === undefined ? '' : createHash('sha256').update(bytes).digest('hex');
  const permissions = `${(stat.mode & 0o7777n).toString(8)} ${stat.uid}:${stat.gid}`;
  const state = [kind, content, permissions, stat.nlink, stat.ino, stat.mtimeNs, stat.ctimeNs].join(' ');
  return { kind, size: Number(stat.size), content, permissions, state };
}

/** The paths whose entry differs between two snapshots, or stands in one of them alone. */
export function changedPaths(before: Map<string, Entry>, after: Map<string, Entry>): string[] {
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  return paths.filter((path) => before.get(path)?.state !== after.get(path)?.state);
}
