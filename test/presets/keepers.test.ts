/**
 * For each preset a program that keeps its state as the agent does (agents' sources and documentation, see the presets): in a
 * home that has it all already, with hot databases, and in one that has nothing yet. Afterwards the home is what it was.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { KNOWN_PRESETS } from '../../src/window/presets/known.ts';
import { identityDifferences, snapshot } from '../harness/tree.ts';
import {
  asUser,
  environmentOf,
  forgetFor,
  idsOf,
  readableFor,
  temporaryDirectory,
  type User,
  users,
} from '../harness/users.ts';
import { describeProcess, markedProcesses, runWatched } from '../harness/watchdog.ts';

type How =
  | 'append'
  | 'whole'
  | 'replace'
  | 'locked'
  | 'aside'
  | 'dated'
  | 'removed'
  | 'tree'
  | 'wal'
  | 'rollback';
/** A path below the home directory, in which `work` is the workspace. */
type Write = [How, string];

interface Keeper {
  state: Write[];
  /** Files that stay real: they are overwritten. */
  real: string[];
  /** Directories that no rule is about, on the way to the state: they are real where they were missing, and empty. */
  directories?: string[];
  /** In place of recognition. */
  options?: string[];
}

const KEEPERS: Record<string, Keeper> = {
  claude: {
    state: [
      ['append', '.claude/projects/-home-ada-work/0f1e.jsonl'],
      ['whole', '.claude/projects/-home-ada-work/memory/MEMORY.md'],
      ['append', '.claude/projects/-home-ada-work/0f1e/subagents/a.jsonl'],
      ['append', '.claude/history.jsonl'],
      ['whole', '.claude/file-history/0f1e/abc@v1'],
      ['replace', '.claude/sessions/4711.json'],
      ['removed', '.claude/paste-cache/x.txt'],
      ['whole', '.claude/CLAUDE.md'],
      ['whole', 'work/.claude/agent-memory/reviewer/MEMORY.md'],
    ],
    directories: ['work/.claude'],
    real: ['.claude/.credentials.json', '.claude/settings.json', '.claude.json', 'work/CLAUDE.md'],
  },
  'claude+config': {
    state: [
      ['replace', '.claude.json'],
      ['aside', '.claude.json'],
      ['append', '.claude/history.jsonl'],
    ],
    real: ['.claude/settings.json', 'notes.txt'],
    options: ['--agent', 'claude+config'],
  },
  codex: {
    state: [
      ['append', '.codex/sessions/2026/11/30/rollout-x.jsonl'],
      ['append', '.codex/history.jsonl'],
      ['append', '.codex/session_index.jsonl'],
      ['tree', '.codex/memories'],
      ['wal', '.codex/state_5.sqlite'],
      ['wal', '.codex/logs_2.sqlite'],
      ['removed', '.codex/shell_snapshots/a.sh'],
    ],
    real: ['.codex/auth.json', '.codex/config.toml'],
  },
  openclaw: {
    state: [
      ['wal', '.openclaw/agents/main/agent/openclaw-agent.sqlite'],
      ['wal', '.openclaw/state/openclaw.sqlite'],
      ['dated', '.openclaw/agents/main/sessions/s.jsonl'],
      ['replace', '.openclaw/agents/main/sessions/sessions.json'],
      ['rollback', '.openclaw/memory/main.sqlite'],
      ['whole', '.openclaw/workspace/MEMORY.md'],
      ['locked', '.openclaw/workspace/memory/2026-11-30.md'],
      ['rollback', '.cache/openclaw/copy/database.sqlite'],
    ],
    directories: ['.openclaw', '.openclaw/workspace', '.cache', '.cache/openclaw'],
    real: ['.openclaw/openclaw.json', '.openclaw/credentials/oauth.json', '.openclaw/workspace/report.md'],
  },
  hermes: {
    state: [
      ['locked', '.hermes/memories/MEMORY.md'],
      ['locked', '.hermes/memories/USER.md'],
      ['wal', '.hermes/state.db'],
      ['wal', '.hermes/kanban.db'],
      ['append', '.hermes/logs/agent.log'],
      ['replace', '.hermes/sessions/s.json'],
    ],
    real: ['.hermes/config.yaml', '.hermes/.env', '.hermes/auth.json'],
  },
  gemini: {
    state: [
      ['append', '.gemini/tmp/work/chats/session-1.jsonl'],
      ['whole', '.gemini/tmp/work/logs.json'],
      ['locked', '.gemini/tmp/work/memory/notes.md'],
      ['tree', '.gemini/history/work'],
      ['aside', '.gemini/projects.json'],
      ['whole', '.gemini/GEMINI.md'],
    ],
    real: ['.gemini/settings.json', '.gemini/oauth_creds.json'],
  },
  aider: {
    state: [
      ['append', 'work/.aider.chat.history.md'],
      ['append', 'work/.aider.input.history'],
      ['wal', 'work/.aider.tags.cache.v4/cache.db'],
    ],
    real: ['work/.aider.conf.yml', 'work/.gitignore'],
  },
  goose: {
    state: [
      ['rollback', '.local/share/goose/sessions/sessions.db'],
      ['append', '.local/state/goose/logs/cli.log'],
      ['append', '.config/goose/memory/work.txt'],
      ['whole', '.config/goose/memory/work.txt'],
      ['append', 'work/.goose/memory/work.txt'],
    ],
    directories: ['work/.goose'],
    real: ['.config/goose/config.yaml', '.config/goose/secrets.yaml', 'work/.goosehints'],
  },
  opencode: {
    state: [
      ['wal', '.local/share/opencode/opencode.db'],
      ['replace', '.local/share/opencode/storage/session/p/s.json'],
      ['tree', '.local/share/opencode/snapshot/p'],
      ['append', '.local/share/opencode/log/opencode.log'],
      ['append', '.local/state/opencode/prompt-history.jsonl'],
    ],
    real: ['.local/share/opencode/auth.json', '.config/opencode/opencode.json'],
  },
  cline: {
    state: [
      ['replace', '.cline/data/tasks/1/ui_messages.json'],
      ['replace', '.cline/data/sessions/1/1.messages.json'],
      ['wal', '.cline/data/db/sessions.db'],
      ['append', '.cline/data/cache/user_input_history.jsonl'],
      ['whole', 'work/memory-bank/activeContext.md'],
    ],
    real: ['.cline/data/secrets.json', '.cline/data/globalState.json', '.cline/data/settings/providers.json'],
  },
  cursor: {
    state: [
      ['append', '.cursor/projects/p/agent-transcripts/s/s.jsonl'],
      ['wal', '.cursor/chats/w/s/store.db'],
      ['wal', '.config/Cursor/User/globalStorage/state.vscdb'],
      ['rollback', '.config/Cursor/User/workspaceStorage/h/state.vscdb'],
    ],
    directories: ['.config', '.config/Cursor', '.config/Cursor/User', '.config/Cursor/User/globalStorage'],
    real: ['.cursor/mcp.json', '.config/Cursor/User/settings.json'],
  },
  letta: {
    state: [
      ['tree', '.letta/agents/a/memory'],
      ['append', '.letta/transcripts/t.jsonl'],
      ['whole', '.letta/plans/p.md'],
    ],
    real: ['.letta/settings.json'],
  },
  pi: {
    state: [
      ['append', '.pi/agent/sessions/--home-ada-work--/s.jsonl'],
      ['append', '.pi/agent/pi-debug.log'],
    ],
    real: ['.pi/agent/auth.json', '.pi/agent/settings.json'],
  },
  mem0: {
    state: [
      ['rollback', '.mem0/history.db'],
      ['rollback', '.mem0/vector_store.db'],
      ['rollback', 'work/memory.db'],
    ],
    real: ['.mem0/config.json'],
  },
};

const programs = fileURLToPath(new URL('./programs', import.meta.url));

test('each preset has a program here', () => {
  const missing = KNOWN_PRESETS.filter(({ name }) => KEEPERS[name] === undefined);
  assert.deepEqual(missing, []);
});

for (const [at, [name, keeper]] of Object.entries(KEEPERS).entries()) {
  const user = users[at % users.length]!;
  test(
    `what a program keeps as ${name} does is gone after the window, as ${user}`,
    { timeout: 120_000 },
    () => keep(name, keeper, user),
  );
}

async function keep(
  name: string,
  { state, real, directories = [], options = [] }: Keeper,
  user: User,
): Promise<void> {
  const preset = KNOWN_PRESETS.find((one) => one.name === name.split('+')[0])!;
  const top = temporaryDirectory('keep', user);
  const home = join(top, 'ada');
  const program = join(top, 'bin', preset.programs[0]!);
  const script = `${readableFor(user, programs)}/keeper.py`;
  // OpenClaw's log is covered in TMPDIR where /tmp/openclaw is another user's, in a directory that stays.
  const env = { HOME: home, XDG_CONFIG_HOME: '', TMPDIR: join(top, 'tmp') };
  const keeps = (writes: readonly Write[]) => [home, JSON.stringify(writes)];
  const inside = (writes: readonly Write[]) =>
    runWatched([forgetFor(user), 'exec', ...options, '--', program, ...keeps(writes)], {
      user,
      cwd: join(home, 'work'),
      env,
    });
  const plain = (more: Record<string, string> = {}): string => {
    const [file, ...rest] = asUser(user, [program, ...keeps(state)]);
    return execFileSync(file!, rest, { env: environmentOf(user, { ...env, ...more }), encoding: 'utf8' });
  };
  const owned = (): void => {
    const { uid, gid } = idsOf(user);
    execFileSync('chown', ['-R', `${uid}:${gid}`, top]);
  };
  try {
    for (const name of ['bin', 'tmp']) mkdirSync(join(top, name));
    writeFileSync(program, `#!/bin/sh\nexec python3 '${script}' "$@"\n`);
    chmodSync(program, 0o755);
    mkdirSync(join(home, 'work'), { recursive: true });
    owned();

    const bare = snapshot(home);
    const first = await inside(state);
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stderr, new RegExp(`^forget: covering ${preset.title}: `, 'm'));
    assert.deepEqual(
      leftBy(identityDifferences(bare, snapshot(home)), directories),
      [],
      'a home that had nothing',
    );
    assert.equal(first.stdout, plain(), 'what is read back inside is what is read back without forget');

    plain({ KEEPER_CRASHES: '1' });
    for (const [how, path] of state) {
      if (how === 'wal') assert.ok(lstatSync(join(home, `${path}-wal`)).size > 0, `${path} is hot`);
    }
    for (const path of real) {
      mkdirSync(dirname(join(home, path)), { recursive: true });
      writeFileSync(join(home, path), 'as it was\n');
    }
    owned();
    const before = snapshot(home);
    const second = await inside([...state, ...real.map((path): Write => ['whole', path])]);
    assert.equal(second.code, 0, second.stderr);
    const changed = identityDifferences(before, snapshot(home)).filter(
      (line) => !real.some((path) => line.startsWith(`"${path}": `)),
    );
    assert.deepEqual(changed, [], 'a home that had it all');
    for (const path of real) {
      assert.match(readFileSync(join(home, path), 'utf8'), /quince/, `${path} is real`);
    }
    assert.deepEqual(markedProcesses(second.mark).map(describeProcess), []);
  } finally {
    rmSync(top, { recursive: true, force: true });
  }
}

/**
 * An agent's home that was not there is a real directory while the window is open, and taken away at its end if nothing real
 * is in it (window.ts): the directory that held it has new times.
 */
function leftBy(differences: readonly string[], directories: readonly string[]): string[] {
  const touched = ['', ...directories.map((path) => dirname(path))];
  return differences.filter(
    (line) =>
      !directories.some((path) => line.startsWith(`"${path}": only in the second (directory`)) &&
      !touched.some((path) => line.startsWith(`"${path}": mtime `) || line.startsWith(`"${path}": ctime `)),
  );
}
