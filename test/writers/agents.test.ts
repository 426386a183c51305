import { testWriter } from './writer.ts';

const agent = { interpreter: 'node', program: 'agents.mjs' };

testWriter({ ...agent, name: "Cline's exclusive temporary file and rename", arguments: ['cline'] });
testWriter({ ...agent, name: "Roo Code's lock directory and two renames", arguments: ['roo'] });
testWriter({ ...agent, name: "Codex's append, compression and truncation", arguments: ['codex'] });
testWriter({ ...agent, name: "Gemini CLI's rewrite of a record it cannot read", arguments: ['gemini'] });
testWriter({ ...agent, name: "OpenClaw's dated session names", arguments: ['openclaw'] });
testWriter({ ...agent, name: "Claude Code's appends and truncation in place", arguments: ['claude'] });
testWriter({
  name: "Hermes' memory tool and state database",
  interpreter: 'python3',
  program: 'hermes.py',
});
