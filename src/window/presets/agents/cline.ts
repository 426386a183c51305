import type { Preset } from '../preset.ts';

const source =
  'Cline CLI 3.0.65, run under forget by hand with a mock model; @cline/shared 0.0.86 (storage/paths)';
const date = '2026-11-30';

export const cline: Preset = {
  name: 'cline',
  title: 'Cline',
  programs: ['cline'],
  packages: ['cline'],
  places: [
    {
      directory: '${CLINE_DATA_DIR:-${CLINE_DIR:-~/.cline}/data}',
      rules: [
        '/*',
        '/tasks/',
        '/sessions/',
        '/teams/',
        '/db/',
        '/cache/',
        '/logs/',
        '/workspaces/',
        '!/settings/',
        '!/secrets.json',
        '!/globalState.json',
      ],
      source,
      date,
    },
    { directory: '${CLINE_DIR:-~/.cline}', rules: ['/tasks/'], source, date },
    { directory: '$CLINE_SESSION_DATA_DIR', rules: ['/*'], source, date },
    { directory: '$CLINE_TEAM_DATA_DIR', rules: ['/*'], source, date },
    { directory: '$CLINE_DB_DATA_DIR', rules: ['/*'], source, date },
  ],
  workspace: { rules: ['/memory-bank/'], source: "Cline's documentation of the memory bank", date },
  real: [
    'settings, secrets.json, globalState.json: credentials and settings',
    'skills, rules, plugins, cron and schedules in ~/.cline; ~/Documents/Cline',
  ],
  notes: [
    'a Cline hub that runs already writes past a window of forget exec: end it first; one that is started inside is ended with the window',
    "the extension for VS Code keeps its tasks with the editor's, which this does not cover",
  ],
};
