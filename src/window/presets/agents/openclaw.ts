import type { Preset } from '../preset.ts';

const source =
  'OpenClaw 2026.9.6, run under forget with a mock model and Node 24; its docs (gateway/security/secrets-and-storage, gateway/config-agents) and source';
const date = '2026-11-30';

/** What its own tools write as memory, in a workspace of its agents. */
const MEMORY = ['MEMORY.md', 'USER.md', 'SOUL.md', 'IDENTITY.md', 'DREAMS.md', 'memory/'];

const rules = [
  '/*',
  '/agents/',
  '/state/',
  '/memory/',
  '/logs/',
  '!/openclaw.json',
  '!/.env',
  '!/secrets.json',
  '!/*.token',
  '!/agents/*/agent/auth-profiles.json',
  '!/agents/*/agent/auth.json',
  '!/cron/jobs.json',
  '!/credentials/',
  '!/extensions/',
  '!/hooks/',
  '!/identity/',
  '!/npm/',
  '!/npm-runtime/',
  // Links to the skills of its plugins, made anew at each start. Protected, they would not be followed.
  '!/plugin-skills/',
  '!/settings/',
  '!/skills/',
  '!/tools/',
  // The agents' workspaces are work, but for their memory.
  '!/workspace*/',
  ...MEMORY.map((name) => `/workspace*/${name}`),
];

// With their locks, which are databases too: openclaw-agent.sqlite.generation-lock.sqlite.
const databases = ['!/agents/*/agent/openclaw-agent.sqlite*', '!/state/openclaw*.sqlite*'];

const home = '${OPENCLAW_STATE_DIR:-${OPENCLAW_HOME:-~}/.openclaw}';
const profile = '${OPENCLAW_HOME:-~}/.openclaw-$OPENCLAW_PROFILE';

export const openclaw: Preset = {
  name: 'openclaw',
  title: 'OpenClaw',
  programs: ['openclaw'],
  packages: ['openclaw'],
  places: [
    { directory: home, rules, source, date },
    { directory: profile, rules, source, date },
    // The day's log: at its default level it has the last words of each turn, and of failed tools what they were given.
    {
      directory: '/tmp/openclaw',
      rules: ['/*'],
      make: true,
      otherwise: '${TMPDIR:-${TMP:-${TEMP:-/tmp}}}/openclaw-$UID',
      source,
      date,
    },
    // Copies of its databases, while it takes them.
    { directory: '${XDG_CACHE_HOME:-~/.cache}/openclaw', rules: ['/*'], make: true, source, date },
    { directory: '$OPENCLAW_WORKSPACE_DIR', rules: MEMORY.map((name) => `/${name}`), source, date },
  ],
  workspace: { rules: MEMORY.map((name) => `/${name}`), source, date },
  parts: {
    'real-databases': {
      title:
        'agents/*/agent/openclaw-agent.sqlite and state/openclaw.sqlite stay real: sign-ins are kept, and so is every transcript and what was indexed of memory',
      without:
        'OpenClaw keeps sign-ins (model auth profiles, MCP OAuth tokens) in one database with its transcripts: both are forgotten, so sign in outside of a window',
      places: [
        { directory: home, rules: databases, source, date },
        { directory: profile, rules: databases, source, date },
      ],
    },
  },
  real: [
    'openclaw.json, .env, secrets.json, *.token, credentials, identity, settings: credentials and settings',
    'extensions, hooks, npm, npm-runtime, plugin-skills, skills, tools, cron/jobs.json: what you installed or set up',
    'workspace*: the work of its agents, but for MEMORY.md, USER.md, SOUL.md, IDENTITY.md, DREAMS.md and memory/',
  ],
  notes: [
    'a gateway that runs already writes past a window of forget exec: stop it first, or start it inside',
    "its log is covered in /tmp/openclaw, or in $TMPDIR/openclaw-UID where that is another user's; elsewhere (logging.file) --root DIR covers it",
    'homes of older versions (~/.clawdbot, ~/.moltbot) are not covered',
  ],
};
