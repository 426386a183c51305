import type { Preset } from '../preset.ts';

const source = 'opencode 1.18.33 (opencode-ai), run under forget with a mock model; its source';
const date = '2026-11-30';

export const opencode: Preset = {
  name: 'opencode',
  title: 'opencode',
  programs: ['opencode'],
  packages: ['opencode-ai'],
  places: [
    {
      directory: '${XDG_DATA_HOME:-~/.local/share}/opencode',
      rules: [
        '/*',
        '/opencode.db',
        '/storage/',
        '/snapshot/',
        '/log/',
        '/plans/',
        '/tool-output/',
        '!/auth.json',
        '!/mcp-auth.json',
        '!/account.json',
        '!/bin/',
        '!/worktree/',
      ],
      source,
      date,
    },
    {
      directory: '${XDG_STATE_HOME:-~/.local/state}/opencode',
      rules: [
        '/*',
        '/prompt-history.jsonl',
        '/prompt-stash.jsonl',
        '/frecency.jsonl',
        '!/kv.json',
        '!/model.json',
        '!/plugin-meta.json',
      ],
      source,
      date,
    },
    // A relative one stands in the data directory, which is covered.
    { file: '$OPENCODE_DB', source, date },
  ],
  real: [
    'auth.json, mcp-auth.json, account.json, kv.json, model.json, ~/.config/opencode: credentials and settings',
    'bin, ~/.cache/opencode, ~/.config/opencode/node_modules: programs and plugins that it downloads',
    'worktree: checkouts that it makes for work',
  ],
};
