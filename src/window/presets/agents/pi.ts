import type { Preset } from '../preset.ts';

const source =
  'pi 0.73.1 (@mariozechner/pi-coding-agent), run under forget with a mock model; its dist/config.js';
const date = '2026-11-30';

export const pi: Preset = {
  name: 'pi',
  title: 'pi',
  programs: ['pi'],
  packages: ['@mariozechner/pi-coding-agent'],
  places: [
    {
      directory: '${PI_CODING_AGENT_DIR:-~/.pi/agent}',
      rules: [
        '/*',
        '/sessions/',
        '/AGENTS.md',
        '!/auth.json',
        '!/settings.json',
        '!/models.json',
        '!/keybindings.json',
        '!/SYSTEM.md',
        '!/APPEND_SYSTEM.md',
        '!/bin/',
        '!/extensions/',
        '!/git/',
        '!/npm/',
        '!/prompts/',
        '!/skills/',
        '!/themes/',
        '!/tools/',
      ],
      source,
      date,
    },
    { directory: '$PI_CODING_AGENT_SESSION_DIR', rules: ['/*'], source, date },
  ],
  real: [
    'auth.json, settings.json, models.json, keybindings.json: credentials and settings',
    'bin, extensions, git, npm, prompts, skills, themes, tools: what you installed or wrote for it',
  ],
};
