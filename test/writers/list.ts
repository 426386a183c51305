/** Every writer program of the main job, by sort. */
import type { Writer } from './writer.ts';

const agent = { interpreter: 'node', program: 'agents.mjs' };
const node = { interpreter: 'node', program: 'files.mjs' };
const python = { interpreter: 'python3', program: 'files.py' };
const shell = { interpreter: 'sh', program: 'files.sh' };

export const AGENT_WRITERS: readonly Writer[] = [
  { ...agent, name: "Cline's exclusive temporary file and rename", arguments: ['cline'] },
  { ...agent, name: "Roo Code's lock directory and two renames", arguments: ['roo'] },
  { ...agent, name: "Codex's append, compression and truncation", arguments: ['codex'] },
  { ...agent, name: "Gemini CLI's rewrite of a record it cannot read", arguments: ['gemini'] },
  { ...agent, name: "OpenClaw's dated session names", arguments: ['openclaw'] },
  { ...agent, name: "Claude Code's appends and truncation in place", arguments: ['claude'] },
  { name: "Hermes' memory tool and state database", interpreter: 'python3', program: 'hermes.py' },
];

export const EDITOR_WRITERS: readonly Writer[] = [
  { name: 'vim in each way it saves', interpreter: 'sh', program: 'editors.sh' },
];

export const GIT_WRITERS: readonly Writer[] = [
  {
    name: 'git with branches and tags named like logs and memory',
    interpreter: 'sh',
    program: 'repository.sh',
  },
];

export const NODE_WRITERS: readonly Writer[] = [
  { ...node, name: "Node's synchronous fs", arguments: ['sync'] },
  { ...node, name: "Node's fs/promises", arguments: ['promises'] },
  { ...node, name: "Node's streams", arguments: ['streams'] },
  { ...node, name: "Node's fs.watch", arguments: ['watching'] },
  { ...node, name: 'Node making, copying and removing directory trees', arguments: ['trees'] },
];

export const PYTHON_WRITERS: readonly Writer[] = [
  { ...python, name: "Python's open in every mode", arguments: ['modes'] },
  { ...python, name: "Python's os.open, pwrite, ftruncate, fchmod and openat", arguments: ['descriptors'] },
  { ...python, name: 'Python renaming, linking, truncating and stamping files', arguments: ['names'] },
  { ...python, name: 'Python copying, moving, mapping and replacing files', arguments: ['whole'] },
  { ...python, name: 'Python locking files between processes', arguments: ['locks'] },
  {
    ...python,
    name: 'Python making, moving and removing directory trees',
    arguments: ['trees'],
    // The program moves the directory away; its protected file stays in the lower, and so the directory with it.
    comparison: { leaveOut: (path) => path === 'names' },
  },
];

export const SHELL_WRITERS: readonly Writer[] = [
  {
    ...shell,
    name: 'a shell with sed, tee, truncate, dd, cp, mv, ln, install and touch',
    arguments: ['targets'],
  },
  {
    ...shell,
    name: 'a shell with mkdir, cp -a, rsync, mv, find -delete and rm -rf on trees',
    arguments: ['trees'],
  },
];

export const SQLITE_WRITERS: readonly Writer[] = [
  {
    name: 'SQLite with two processes in each journal mode, on old, new and hot databases',
    interpreter: 'python3',
    program: 'databases.py',
    // Two writers take turns as they come: the rows' order differs from run to run.
    comparison: { contentVaries: (path) => path.endsWith('.db') },
  },
];
