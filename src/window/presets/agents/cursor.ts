import type { Preset } from '../preset.ts';

const source = 'third parties that read its transcripts; it could not be run here';
const date = '2026-11-30';
const user = '${XDG_CONFIG_HOME:-~/.config}/Cursor/User';

export const cursor: Preset = {
  name: 'cursor',
  title: 'Cursor',
  programs: ['cursor', 'cursor-agent'],
  places: [
    // agent-transcripts, and the command line's chats. What else stands there is not known well enough to forget it.
    { directory: '~/.cursor', rules: ['/projects/', '/chats/'], source, date },
    {
      directory: user,
      rules: ['/globalStorage/state.vscdb', '/workspaceStorage/', '/History/'],
      source,
      date,
    },
  ],
  parts: {
    'real-state': {
      title:
        'globalStorage/state.vscdb stays real: sign-in and settings are kept, and so are the chats in it',
      without:
        "Cursor keeps its sign-in and the editor's state in one database with its chats: all are forgotten, so sign in outside of a window",
      places: [{ directory: user, rules: ['!/globalStorage/state.vscdb'], source, date }],
    },
  },
  real: ['all of ~/.cursor but projects and chats, and all of ~/.config/Cursor that is not named above'],
  notes: [
    'an editor that runs already takes over what a second one is asked to open, and writes past the window',
  ],
};
