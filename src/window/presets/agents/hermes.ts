import type { Preset } from '../preset.ts';

const directory = '${HERMES_HOME:-~/.hermes}';
const source = "Hermes' source (tools/memory_tool.py, hermes_state.py, kanban_db.py)";
const date = '2026-11-30';

export const hermes: Preset = {
  name: 'hermes',
  title: 'Hermes',
  programs: ['hermes'],
  places: [
    {
      directory,
      rules: [
        '/*',
        '/memories/',
        '/sessions/',
        '/logs/',
        '/skills/',
        '/SOUL.md',
        '/state.db',
        '/kanban.db',
        '!/config.yaml',
        '!/.env',
        '!/auth.json',
        '!/hindsight/config.json',
        '!/hooks/',
        '!/plugins/',
        '!/hermes-agent/',
      ],
      source,
      date,
    },
  ],
  parts: {
    'real-kanban': {
      title: 'kanban.db stays real: tasks that were added or done are kept, with their text',
      without: "Hermes' board (kanban.db) is forgotten too, tasks done included",
      places: [{ directory, rules: ['!/kanban.db'], source, date }],
    },
    'real-state': {
      title: 'state.db stays real: everything in it, transcripts of all sessions included',
      places: [{ directory, rules: ['!/state.db'], source, date }],
    },
  },
  real: [
    'config.yaml, .env, auth.json, hindsight/config.json: credentials and settings',
    'hooks, plugins, hermes-agent: what you installed',
  ],
  notes: [
    'state.db holds the sessions and what the gateway keeps beside them in one file: all of it is forgotten, or with +real-state all of it kept',
    'a gateway that runs already writes past a window of forget exec: stop it first, or start it inside',
  ],
};
