import type { Preset } from '../preset.ts';

const source = "Goose's source (config/paths.rs, session_manager.rs, goose-mcp memory/mod.rs)";
const date = '2026-11-30';
// Models that it downloads are no state of a conversation.
const data = ['/*', '!/models/'];

export const goose: Preset = {
  name: 'goose',
  title: 'Goose',
  programs: ['goose'],
  places: [
    { directory: '${XDG_DATA_HOME:-~/.local/share}/goose', rules: data, source, date },
    { directory: '${XDG_STATE_HOME:-~/.local/state}/goose', rules: ['/*'], source, date },
    { directory: '${XDG_CONFIG_HOME:-~/.config}/goose', rules: ['/memory/'], source, date },
    { directory: '$GOOSE_PATH_ROOT/data', rules: data, source, date },
    { directory: '$GOOSE_PATH_ROOT/state', rules: ['/*'], source, date },
    { directory: '$GOOSE_PATH_ROOT/config', rules: ['/memory/'], source, date },
  ],
  workspace: { rules: ['.goose/memory/'], source, date },
  real: [
    '~/.config/goose but for memory/: config.yaml, secrets.yaml and the like',
    'models below ~/.local/share/goose',
    '.goosehints of the workspace',
  ],
};
