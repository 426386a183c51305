import type { Preset } from '../preset.ts';

export const gemini: Preset = {
  name: 'gemini',
  title: 'Gemini CLI',
  programs: ['gemini'],
  packages: ['@google/gemini-cli'],
  places: [
    {
      directory: '${GEMINI_CLI_HOME:-~}/.gemini',
      rules: [
        '/*',
        '/tmp/',
        '/history/',
        '/GEMINI.md',
        '/projects.json',
        '!/settings.json',
        '!/.env',
        '!/oauth_creds.json',
        '!/google_accounts.json',
        '!/mcp-oauth-tokens*.json',
        '!/a2a-oauth-tokens*.json',
        '!/gemini-credentials.json',
        '!/trustedFolders.json',
        '!/installation_id',
        '!/user_id',
        '!/keybindings.json',
        '!/policy_integrity.json',
        '!/acknowledgments/',
        '!/agents/',
        '!/commands/',
        '!/extensions/',
        '!/policies/',
        '!/skills/',
        // Programs that it downloads once, such as ripgrep.
        '!/tmp/bin/',
      ],
      source:
        'Gemini CLI 0.61.0, run under forget with a mock model; its source (storage.ts, chatRecordingService.ts)',
      date: '2026-11-30',
    },
  ],
  real: [
    'settings.json, .env, oauth_creds.json, google_accounts.json, *-oauth-tokens*.json, gemini-credentials.json, trustedFolders.json: credentials and settings',
    'agents, commands, extensions, policies, skills, tmp/bin: what you installed or wrote for it',
    'GEMINI.md of the workspace; -p GEMINI.md covers it',
  ],
};
