import type { Preset } from '../preset.ts';

const documentation = 'run under forget with a mock model; its documentation (claude-directory, settings)';
const date = '2026-11-30';

export const claude: Preset = {
  name: 'claude',
  title: 'Claude Code',
  programs: ['claude'],
  packages: ['@anthropic-ai/claude-code'],
  places: [
    {
      directory: '${CLAUDE_CONFIG_DIR:-~/.claude}',
      // All that is not known to be a setting, so that the next version's additions are forgotten too.
      rules: [
        '/*',
        '/projects/',
        '/history.jsonl',
        '/CLAUDE.md',
        '/agent-memory/',
        '/backups/',
        '/debug/',
        '/feedback-bundles/',
        '/file-history/',
        '/image-cache/',
        '/paste-cache/',
        '/plans/',
        '/session-env/',
        '/sessions/',
        '/shell-snapshots/',
        '/tasks/',
        '/todos/',
        '/uploads/',
        '/usage-data/',
        '!/.credentials.json',
        '!/settings.json',
        '!/settings.local.json',
        '!/keybindings.json',
        '!/agents/',
        '!/commands/',
        '!/hooks/',
        '!/output-styles/',
        '!/plugins/',
        // What the built-in ones keep of each session.
        '/plugins/store/',
        '!/rules/',
        '!/skills/',
        '!/themes/',
        '!/workflows/',
        // The program itself, where it was installed by `claude migrate-installer`.
        '!/local/',
        // With CLAUDE_CONFIG_DIR it stands here; the part `config` decides.
        '!/.claude.json',
        '!/.config.json',
      ],
      source: `Claude Code 2.1.332: ${documentation}`,
      date,
    },
  ],
  workspace: {
    rules: ['.claude/agent-memory/', '.claude/agent-memory-local/'],
    source: `Claude Code 2.1.332: ${documentation}`,
    date,
  },
  parts: {
    config: {
      title:
        '.claude.json too: sign-in, trusted directories and MCP servers in one file with what it keeps of each project. ' +
        'In the home directory that is all of it under forget',
      places: [
        {
          file: '${CLAUDE_CONFIG_DIR:-~}/.claude.json',
          source:
            'Claude Code 2.1.332: the program joins CLAUDE_CONFIG_DIR, or else the home directory, with .claude.json',
          date,
        },
      ],
    },
  },
  real: [
    '.credentials.json, settings*.json, keybindings.json: credentials and settings',
    'agents, commands, hooks, output-styles, plugins, rules, skills, themes, workflows: what you installed or wrote for it',
    '.claude.json: sign-in and settings, with a little of each project (last session, cost); --agent claude+config covers it',
    'CLAUDE.md and CLAUDE.local.md of the workspace; -p CLAUDE.md covers them',
  ],
  notes: [
    'output of background tasks stands in /tmp/claude-UID until the system clears it; CLAUDE_CODE_TMPDIR moves it',
  ],
};
