import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { compileRules } from '../../src/overlay/rules.ts';
import { bytesOf } from '../../src/sys/bytes.ts';
import { choose } from '../../src/window/presets/choose.ts';
import { coversOf } from '../../src/window/presets/covers.ts';
import { KNOWN_PRESETS } from '../../src/window/presets/known.ts';
import { expandPath } from '../../src/window/presets/path.ts';

const timeout = 10_000;

function around(env: Record<string, string> = {}) {
  return { env: new Map(Object.entries(env)), home: '/home/ada', cwd: '/home/ada/work' };
}

/** Each directory that `name` covers, with the verdict on a path relative to it. */
function covered(name: string, env: Record<string, string> = {}) {
  const { covers, ...rest } = coversOf(choose(name, KNOWN_PRESETS), around(env));
  const byDirectory = new Map(covers.map(({ directory, rules }) => [directory, compileRules(rules)]));
  const forgets = (path: string): boolean =>
    [...byDirectory].some(
      ([directory, rules]) =>
        path.startsWith(`${directory}/`) && rules.protects(path.slice(directory.length + 1)),
    );
  return { directories: [...byDirectory.keys()], forgets, ...rest };
}

/** For each preset: what it must forget, and what it must leave real, in `~` and below the variables' values. */
const FACTS: Record<string, { forgets: string[]; real: string[] }> = {
  claude: {
    forgets: [
      'projects/-home-ada-work/0f1e.jsonl',
      'projects/-home-ada-work/memory/MEMORY.md',
      'history.jsonl',
      'file-history/s/abc@v1',
      'CLAUDE.md',
      'a-directory-of-the-next-version/x',
      'plugins/store/x.json',
      'backups/.claude.json.backup.1',
    ].map((path) => `~/.claude/${path}`),
    real: [
      ...['.credentials.json', '.credentials.json.tmp.12', 'settings.json', 'settings.local.json'],
      ...['plugins/a/b.json', 'skills/x/SKILL.md', 'agents/a.md', 'commands/c.md', 'local/node_modules/x'],
    ]
      .map((path) => `~/.claude/${path}`)
      .concat('~/.claude.json'),
  },
  codex: {
    forgets: [
      'sessions/2026/11/30/rollout-x.jsonl',
      'sessions/2026/11/30/rollout-x.jsonl.zst',
      'archived_sessions/a.jsonl',
      'history.jsonl',
      'session_index.jsonl',
      'memories/MEMORY.md',
      'memories/.git/HEAD',
      'state_5.sqlite',
      'state_5.sqlite-wal',
      'logs_2.sqlite-shm',
      'db-backups/state.sqlite',
      'shell_snapshots/a.sh',
    ].map((path) => `~/.codex/${path}`),
    real: ['auth.json', 'config.toml', 'skills/.system/x', 'rules/default.rules'].map(
      (path) => `~/.codex/${path}`,
    ),
  },
  openclaw: {
    forgets: [
      ...[
        'agents/main/agent/openclaw-agent.sqlite',
        'agents/main/agent/openclaw-agent.sqlite-wal',
        'agents/main/sessions/s.jsonl',
        'agents/main/sessions/s.jsonl.deleted.2026-01-02T03-04-05.678Z',
        'agents/main/sessions/sessions.json',
        'state/openclaw.sqlite',
        'memory/main.sqlite.backup-0f1e',
        'workspace/MEMORY.md',
        'workspace/memory/2026-11-30.md',
        'workspace-work/memory/.dreams/x',
      ].map((path) => `~/.openclaw/${path}`),
      '/tmp/openclaw/openclaw-2026-11-30.log',
      '~/.cache/openclaw/openclaw-sqlite-readonly-v2-ESm8Zr/database.sqlite',
    ],
    real: [
      ...[
        'openclaw.json',
        'openclaw.json.bak',
        '.env',
        'credentials/oauth.json',
        'skills/x/SKILL.md',
        'plugin-skills/canvas',
        'gateway.token',
      ],
      ...['workspace/report.md', 'workspace/src/a.ts', 'agents/main/agent/auth-profiles.json'],
    ].map((path) => `~/.openclaw/${path}`),
  },
  hermes: {
    forgets: [
      ...[
        'memories/MEMORY.md',
        'memories/MEMORY.md.lock',
        'memories/.mem_x1.tmp',
        'state.db',
        'state.db-wal',
      ],
      ...['kanban.db', 'sessions/a.json', 'logs/agent.log'],
    ].map((path) => `~/.hermes/${path}`),
    real: ['config.yaml', '.env', 'auth.json', 'hindsight/config.json'].map((path) => `~/.hermes/${path}`),
  },
  gemini: {
    forgets: [
      ...[
        'tmp/work/chats/session-1.jsonl',
        'tmp/work/logs.json',
        'tmp/work/memory/.extraction.lock',
        'GEMINI.md',
      ],
      ...['history/work/.git/HEAD', 'projects.json', 'projects.json.lock/x'],
    ].map((path) => `~/.gemini/${path}`),
    real: [
      'settings.json',
      'oauth_creds.json',
      'google_accounts.json',
      'trustedFolders.json',
      'tmp/bin/rg',
    ].map((path) => `~/.gemini/${path}`),
  },
  aider: { forgets: [], real: ['~/.aider/oauth-keys.env'] },
  goose: {
    forgets: [
      '~/.local/share/goose/sessions/sessions.db',
      '~/.local/share/goose/sessions/sessions.db-journal',
      '~/.local/state/goose/logs/cli/x.log',
      '~/.config/goose/memory/work.txt',
    ],
    real: [
      '~/.config/goose/config.yaml',
      '~/.config/goose/secrets.yaml',
      '~/.local/share/goose/models/a.gguf',
    ],
  },
  opencode: {
    forgets: [
      ...[
        'opencode.db',
        'opencode.db-wal',
        'storage/session/a.json',
        'snapshot/x/HEAD',
        'log/opencode.log',
      ].map((path) => `~/.local/share/opencode/${path}`),
      '~/.local/state/opencode/prompt-history.jsonl',
    ],
    real: [
      '~/.local/share/opencode/auth.json',
      '~/.local/state/opencode/model.json',
      '~/.config/opencode/opencode.json',
    ],
  },
  cline: {
    forgets: [
      'tasks/1/ui_messages.json',
      'tasks/1/ui_messages.json.4711.0b0e7b9e-5d7c-4b0e-9b0e-7b9e5d7c4b0e.tmp',
      'sessions/1/1.messages.json',
      'db/sessions.db-wal',
      'cache/user_input_history.jsonl',
    ].map((path) => `~/.cline/data/${path}`),
    real: ['secrets.json', 'globalState.json', 'settings/providers.json'].map(
      (path) => `~/.cline/data/${path}`,
    ),
  },
  cursor: {
    forgets: [
      '~/.cursor/projects/p/agent-transcripts/s/s.jsonl',
      '~/.cursor/chats/w/s/store.db-wal',
      '~/.config/Cursor/User/globalStorage/state.vscdb',
      '~/.config/Cursor/User/workspaceStorage/h/state.vscdb-journal',
    ],
    real: ['~/.cursor/mcp.json', '~/.cursor/cli-config.json', '~/.config/Cursor/User/settings.json'],
  },
  letta: {
    forgets: ['agents/a/memory/system/x.md', 'transcripts/t.jsonl', 'plans/p.md'].map(
      (path) => `~/.letta/${path}`,
    ),
    real: ['settings.json', 'skills/x/SKILL.md'].map((path) => `~/.letta/${path}`),
  },
  pi: {
    forgets: ['sessions/--home-ada--/s.jsonl', 'pi-debug.log'].map((path) => `~/.pi/agent/${path}`),
    real: ['auth.json', 'settings.json', 'models.json', 'bin/rg', 'npm/package.json'].map(
      (path) => `~/.pi/agent/${path}`,
    ),
  },
  mem0: {
    forgets: ['~/.mem0/history.db', '~/.mem0/vector_store.db-journal'],
    real: ['~/.mem0/config.json'],
  },
};

/** Paths of the workspace that the preset's own rules forget. */
const WORKSPACE: Record<string, string[]> = {
  claude: ['.claude/agent-memory/reviewer/MEMORY.md', '.claude/agent-memory-local/x/a.md'],
  openclaw: ['MEMORY.md', 'USER.md', 'memory/2026-11-30.md'],
  aider: ['.aider.chat.history.md', '.aider.input.history', 'sub/.aider.tags.cache.v4/cache.db-wal'],
  goose: ['.goose/memory/work.txt'],
  cline: ['memory-bank/activeContext.md'],
  mem0: ['memory.db', 'memory.db-journal'],
};

describe('a known preset', { timeout }, () => {
  for (const { name } of KNOWN_PRESETS) {
    test(`${name} forgets what its agent keeps, and leaves credentials and settings real`, () => {
      const facts = FACTS[name];
      assert.ok(facts, 'each preset has its line in FACTS');
      const home = (path: string) => path.replace(/^~/, '/home/ada');
      const { forgets } = covered(name);
      assert.deepEqual(
        facts.forgets.filter((path) => !forgets(home(path))),
        [],
        'reaches the disk',
      );
      assert.deepEqual(
        facts.real.filter((path) => forgets(home(path))),
        [],
        'would be lost',
      );
      const workspace = compileRules(covered(name).workspaceRules);
      assert.deepEqual(
        (WORKSPACE[name] ?? []).filter((path) => !workspace.protects(path)),
        [],
      );
      for (const path of [
        'src/index.ts',
        'README.md',
        '.aider.conf.yml',
        '.claude/settings.json',
        'docs/memory.md',
      ])
        assert.ok(!workspace.protects(path), path);
    });

    test(`${name} says where it is from, and when somebody looked`, () => {
      const preset = KNOWN_PRESETS.find((one) => one.name === name)!;
      const noted = [
        ...preset.places,
        ...(preset.workspace ? [preset.workspace] : []),
        ...Object.values(preset.parts ?? {}).flatMap(({ places }) => places),
      ];
      for (const { source, date } of noted) {
        assert.ok(source);
        assert.match(date ?? '', /^20\d\d-[01]\d-[0-3]\d$/);
      }
      assert.ok((preset.real?.length ?? 0) > 0);
    });
  }
});

test('the variables of the programs move their homes', { timeout }, () => {
  const at = (name: string, env: Record<string, string>) => covered(name, env).directories;
  assert.deepEqual(at('claude', { CLAUDE_CONFIG_DIR: '/c' }), ['/c']);
  assert.deepEqual(at('claude+config', { CLAUDE_CONFIG_DIR: '/c' }), ['/c']);
  assert.deepEqual(at('claude+config', {}), ['/home/ada/.claude', '/home/ada']);
  assert.deepEqual(at('codex', { CODEX_HOME: '/c', CODEX_SQLITE_HOME: '/s' }), ['/c', '/s']);
  const claw = ['/tmp/openclaw', '/home/ada/.cache/openclaw'];
  assert.deepEqual(at('openclaw', { OPENCLAW_STATE_DIR: '/o', OPENCLAW_HOME: '/h' }), ['/o', ...claw]);
  assert.deepEqual(at('openclaw', { OPENCLAW_HOME: '~/claws' }), ['/home/ada/claws/.openclaw', ...claw]);
  assert.deepEqual(at('openclaw', { OPENCLAW_PROFILE: 'work' }), [
    '/home/ada/.openclaw',
    '/home/ada/.openclaw-work',
    ...claw,
  ]);
  assert.deepEqual(at('hermes', { HERMES_HOME: '/h' }), ['/h']);
  assert.deepEqual(at('gemini', { GEMINI_CLI_HOME: '/g' }), ['/g/.gemini']);
  assert.deepEqual(at('opencode', { XDG_DATA_HOME: '/d', XDG_STATE_HOME: '/s', OPENCODE_DB: '/x/y.db' }), [
    '/d/opencode',
    '/s/opencode',
    '/x',
  ]);
  assert.deepEqual(at('cline', { CLINE_DIR: '/c' }), ['/c/data', '/c']);
  assert.deepEqual(at('cline', { CLINE_DATA_DIR: '/d' }), ['/d', '/home/ada/.cline']);
  assert.deepEqual(at('pi', { PI_CODING_AGENT_DIR: 'rel/pi' }), ['/home/ada/work/rel/pi']);
  assert.deepEqual(at('mem0', { MEM0_DIR: '/m' }), ['/m']);
  assert.deepEqual(at('aider', {}), []);
  assert.deepEqual(at('aider', { AIDER_CHAT_HISTORY_FILE: 'log/chat.md' }), ['/home/ada/work/log']);
  assert.deepEqual(at('claude', { CLAUDE_CONFIG_DIR: '' }), ['/home/ada/.claude']);
});

test('a part changes what it says, and nothing else', { timeout }, () => {
  assert.ok(covered('claude+config').forgets('/home/ada/.claude.json'));
  assert.ok(covered('claude+config').forgets('/home/ada/.claude.json.tmp.4711.1700000000'));
  assert.ok(!covered('claude+config').forgets('/home/ada/notes.md'));
  assert.ok(covered('claude+config', { CLAUDE_CONFIG_DIR: '/c' }).forgets('/c/.claude.json'));
  assert.ok(!covered('claude', { CLAUDE_CONFIG_DIR: '/c' }).forgets('/c/.claude.json'));
  const kept = covered('openclaw+real-databases');
  assert.ok(!kept.forgets('/home/ada/.openclaw/agents/main/agent/openclaw-agent.sqlite-wal'));
  assert.ok(
    !kept.forgets('/home/ada/.openclaw/agents/main/agent/openclaw-agent.sqlite.generation-lock.sqlite'),
  );
  assert.ok(kept.forgets('/home/ada/.openclaw/agents/main/sessions/a.jsonl'));
  assert.ok(!covered('hermes+real-kanban').forgets('/home/ada/.hermes/kanban.db-wal'));
  assert.ok(covered('hermes+real-kanban').forgets('/home/ada/.hermes/state.db'));
});

test('where state and credentials share a file, the start says what becomes of it until a part was chosen', {
  timeout,
}, () => {
  for (const name of ['openclaw', 'hermes', 'cursor']) {
    const [note] = covered(name).notes;
    const part = /--agent (\S+) changes that$/.exec(note ?? '')?.[1];
    assert.ok(part?.startsWith(`${name}+`), note);
    assert.deepEqual(covered(part!).notes, []);
  }
});

test('a single file is a rule in the directory that holds it, whatever its name', { timeout }, () => {
  for (const name of ['a b', 'x[1]*?', '{a,b}', '(a|b)+@!', 'ünï', '#x', '!x', 'back\\slash']) {
    const preset = { name: 'x', title: 'x', programs: [], places: [{ file: '$F' }] };
    const { covers } = coversOf({ preset, parts: [] }, around({ F: `/d/${bytesOf(name)}` }));
    assert.equal(covers[0]!.directory, '/d');
    const rules = compileRules(covers[0]!.rules);
    assert.ok(rules.protects(bytesOf(name)), name);
    for (const other of ['a', 'b', 'x1', 'xy', 'ab', 'x'])
      assert.ok(!rules.protects(other), `${name} takes ${other}`);
  }
});

test("paths are in the shell's notation, or refused", { timeout }, () => {
  const at = (text: string, env = {}) => expandPath(text, around(env), 'preset x');
  assert.equal(at('~'), '/home/ada');
  assert.equal(at('~/x/../y/'), '/home/ada/y');
  assert.equal(at('$A/x', { A: '/a' }), '/a/x');
  assert.equal(at('$A/x'), undefined);
  assert.equal(at('${A:-$B/c}'), undefined);
  assert.equal(at('${A:-${B:-~/b}/c}/d'), '/home/ada/b/c/d');
  assert.equal(at('${A:-${B:-~/b}/c}/d', { B: '/b' }), '/b/c/d');
  assert.equal(at('${A}x', { A: '/a' }), '/ax');
  for (const wrong of ['${A', '$', '$1', '${A-x}', '${A:+x}', '$(id)'])
    assert.throws(() => at(wrong), /^Failure: preset x: .* is no path of a preset/s);
});
