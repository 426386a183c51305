import type { Preset } from '../preset.ts';

const source = 'Letta Code 0.32.18 (@letta-ai/letta-code): its letta.js';
const date = '2026-11-30';

const rules = [
  '/*',
  '/agents/',
  '/transcripts/',
  '/plans/',
  '/projects/',
  '/logs/',
  '/lc-local-backend/',
  '!/settings.json',
  '!/remote-settings.json',
  '!/.lettasettings',
  '!/bin/',
  '!/channels/',
  '!/extensions/',
  '!/mods/',
  '!/skills/',
  '!/worktrees/',
];

export const letta: Preset = {
  name: 'letta',
  title: 'Letta Code',
  programs: ['letta'],
  packages: ['@letta-ai/letta-code'],
  places: [
    // Most of it takes the home directory whatever LETTA_HOME says.
    { directory: '~/.letta', rules, source, date },
    { directory: '$LETTA_HOME', rules, source, date },
    { directory: '$LETTA_TRANSCRIPT_ROOT', rules: ['/*'], source, date },
    { directory: '$LETTA_LOCAL_BACKEND_DIR', rules: ['/*'], source, date },
    { directory: '$LETTA_MEMORY_DIR', rules: ['/*'], source, date },
  ],
  real: [
    'settings.json, remote-settings.json, .lettasettings, channels (with its sign-ins): credentials and settings',
    'bin, extensions, mods, skills: what you installed or wrote for it',
    'worktrees: checkouts that it makes for work',
  ],
  notes: [
    'memory and messages of an agent on a Letta server are not on this disk, and forget cannot hold them',
  ],
};
