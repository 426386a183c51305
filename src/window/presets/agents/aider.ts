import type { Preset } from '../preset.ts';

const source = "aider's source (args.py, io.py, repomap.py) and its documentation of options";
const date = '2026-11-30';

export const aider: Preset = {
  name: 'aider',
  title: 'aider',
  programs: ['aider'],
  places: [
    { file: '$AIDER_CHAT_HISTORY_FILE', source, date },
    { file: '$AIDER_INPUT_HISTORY_FILE', source, date },
    { file: '$AIDER_LLM_HISTORY_FILE', source, date },
  ],
  workspace: {
    // .aider.chat.history.md, .aider.input.history, .aider.llm.history, .aider.tags.cache.v*/.
    rules: [
      '.aider*',
      '!.aider.conf.yml',
      '!.aider.model.settings.yml',
      '!.aider.model.metadata.json',
      '!.aiderignore',
    ],
    source,
    date,
  },
  real: [
    '.aider.conf.yml, .aider.model.settings.yml, .aider.model.metadata.json, .aiderignore: settings',
    '~/.aider: sign-in, counters and caches, nothing of a conversation',
    'the line that it adds to .gitignore',
  ],
  notes: [
    'its histories stand at the root of the git repository: take that for the workspace, not a directory below it',
  ],
};
