/**
 * Finding the command and starting it: `setpriv` gives it the parent-death signal and takes capabilities from it,
 * a shell tests the mount for forget (gate.ts), and then both have become the command.
 */
import { accessSync, constants as fs, statSync } from 'node:fs';
import { constants } from 'node:os';
import { rawEnvironment } from '../sys/argv.ts';
import { displayName } from '../sys/bytes.ts';
import { socketpair } from '../sys/descriptor-passing.ts';
import { close } from '../sys/libc.ts';
import { ignoreSignal, makeBlocking, SETTABLE_SIGNALS, spawnProcess } from '../sys/spawn.ts';
import { ENTRY_VARIABLE, entryOf } from './entry.ts';
import { Failure } from './failure.ts';
import { GateKeeper, type GateSpec, gateArguments, parentGateArguments } from './gate.ts';
import { startWitness } from './signal-witness.ts';
import { type RunningCommand, supervise } from './supervision.ts';

export type { CommandEnd, RunningCommand } from './supervision.ts';
export { exitCodeFor } from './supervision.ts';

export interface CommandSpec {
  /** Byte strings; the first is the name as typed. */
  argv: string[];
  /** Byte string, absolute. */
  cwd: string;
  canaries: GateSpec['canaries'];
  /** Variables on top of the environment that forget was started with. */
  env: Record<string, string>;
  /**
   * What the command loses. `mount-capabilities`: CAP_SYS_ADMIN and CAP_SYS_PTRACE, for good (root).
   * `all-capabilities`: all it has, the ambient set included (an ordinary user in a user namespace).
   */
  drop: 'mount-capabilities' | 'all-capabilities' | 'nothing';
}

export interface StartedCommand extends RunningCommand {
  /** As GateKeeper's. Until then the child is a shell, which has touched nothing else of the mount. */
  readonly tested: GateKeeper['tested'];
  /** Lets the child become the command. */
  go(): void;
  /**
   * Ends a child that was not let go; nothing after `go`. Call on every way out: while `tested` is open
   * `process.exit` would wait for it.
   */
  cancel(): void;
}

/** Where the two programs stand that a command is started through. */
export interface Launcher {
  setpriv: string;
  shell: string;
}

/** What stands in for a command that cannot be started: 126 not executable, 127 not found. */
export interface CommandRefusal {
  code: 126 | 127;
  message: string;
}

/** Not PATH: it may hold relative directories, or some of the workspace. */
const SYSTEM_DIRECTORIES = [
  '/usr/bin',
  '/bin',
  '/usr/sbin',
  '/sbin',
  '/usr/local/bin',
  '/run/current-system/sw/bin',
];

/** Call before the mount. Throws a Failure that says what to install. */
export function findLauncher(): Launcher {
  const find = (name: string): string | undefined =>
    SYSTEM_DIRECTORIES.map((directory) => `${directory}/${name}`).find(
      (path) => verdictOn(path) === 'executable',
    );
  const setpriv = find('setpriv');
  if (!setpriv) throw new Failure('forget needs setpriv: install the package util-linux');
  const shell = find('sh');
  if (!shell) throw new Failure('forget needs a POSIX shell: no sh in /bin or /usr/bin');
  return { setpriv, shell };
}

/**
 * Finds a command as execvp(3) does, before the mount and before anything is started. All byte strings; `path` is
 * the PATH variable, `cwd` what relative names stand on.
 */
export function findCommand(
  name: string,
  path: string | undefined,
  cwd: string,
): { path: string } | CommandRefusal {
  const refuse = (code: 126 | 127, why: string): CommandRefusal => ({
    code,
    message: `forget: ${displayName(name)}: ${why}`,
  });
  const absolute = (file: string): string => (file.startsWith('/') ? file : `${cwd}/${file}`);
  if (name === '') return refuse(127, 'command not found');
  const slash = name.includes('/');
  const candidates = slash
    ? [absolute(name)]
    : (path ?? '/bin:/usr/bin').split(':').map((directory) => absolute(`${directory || '.'}/${name}`));
  let forbidden = false;
  for (const candidate of candidates) {
    const verdict = verdictOn(candidate);
    if (verdict === 'executable') return { path: candidate };
    if (slash && verdict === 'directory') return refuse(126, 'is a directory');
    if (verdict === 'forbidden') forbidden = true;
  }
  if (forbidden) return refuse(126, 'permission denied');
  return refuse(127, slash ? 'no such file or directory' : 'command not found');
}

function verdictOn(path: string): 'executable' | 'forbidden' | 'directory' | 'absent' {
  const bytes = Buffer.from(path, 'latin1');
  try {
    const stat = statSync(bytes, { throwIfNoEntry: false });
    if (!stat) return 'absent';
    if (stat.isDirectory()) return 'directory';
    accessSync(bytes, fs.X_OK);
    return 'executable';
  } catch (error) {
    // ENOTDIR, ELOOP, ENAMETOOLONG: nothing that could be run stands there.
    return (error as NodeJS.ErrnoException).code === 'EACCES' ? 'forbidden' : 'absent';
  }
}

const DROPS: Record<CommandSpec['drop'], string[]> = {
  'mount-capabilities': ['--bounding-set', '-sys_admin,-sys_ptrace', '--inh-caps', '-sys_admin,-sys_ptrace'],
  // The rest of the bounding set stays: without it programs with file capabilities, as ping, do not start.
  'all-capabilities': [
    ...['--bounding-set', '-sys_admin,-sys_ptrace'],
    ...['--inh-caps', '-all', '--ambient-caps', '-all'],
  ],
  nothing: [],
};

/** The only program in whose scripts a descriptor may have two digits. */
const BASH = '/bin/bash';

/** Where the child finds the channel: a number that the caller has not used, and the shell that can name it. */
function channelFor(inherited: readonly number[], launcher: Launcher): { channel: number; shell: string[] } {
  const free = (numbers: readonly number[]) => numbers.find((fd) => !inherited.includes(fd));
  const digit = free([3, 4, 5, 6, 7, 8, 9]);
  if (digit !== undefined) return { channel: digit, shell: [launcher.shell] };
  if (verdictOn(BASH) !== 'executable') {
    throw new Failure('the descriptors 3 to 9 are all in use: close one of them, or install bash');
  }
  // bash keeps copies of its own from 10 on, and moves them out of the way of what is open already.
  const number = free(Array.from({ length: inherited.length + 1 }, (_, i) => i + 10))!;
  return { channel: number, shell: [BASH, '--posix'] };
}

/**
 * Starts the command from the main thread (the parent-death signal follows the thread) and supervises it. The thread
 * does not wait for the mount, not even until the exec. Throws SysError or Failure.
 * While it runs write to descriptor 2 with `writeSync`: touching `process.stderr` makes it non-blocking.
 */
export function startCommand(spec: CommandSpec, launcher: Launcher): StartedCommand {
  const inherited = rawEnvironment();
  const value = (name: string): string | undefined =>
    inherited.find((entry) => entry.startsWith(`${name}=`))?.slice(name.length + 1);
  const entry = entryOf(value(ENTRY_VARIABLE));
  // A shell that finds PWD looks at the directory, and exports one of its own.
  const replaced = new Set([ENTRY_VARIABLE, 'PWD', 'OLDPWD', ...Object.keys(spec.env)]);
  const environment = [
    ...inherited.filter((line) => !replaced.has(line.slice(0, line.indexOf('=')))),
    ...Object.entries(spec.env).map(([name, content]) => `${name}=${content}`),
  ];
  // forget waits for children, so it cannot ignore SIGCHLD for the command's sake.
  const keepIgnored = new Set([...entry.ignoredSignals].filter((n) => n !== constants.signals.SIGCHLD));
  for (const signal of keepIgnored) ignoreSignal(signal);
  for (const fd of [0, 1, 2]) makeBlocking(fd);

  const { channel, shell } = channelFor(entry.descriptors, launcher);
  const gate = gateArguments({
    ...spec,
    channel,
    noDirectory: `forget: ${displayName(spec.cwd)}: this directory cannot be entered; the command was not started`,
    pwd: value('PWD'),
    oldpwd: value('OLDPWD'),
    openFiles: entry.openFiles,
  });
  const mortal = [launcher.setpriv, '--pdeathsig', 'KILL'];
  const [near, far] = socketpair();
  const spawn = (): number =>
    spawnProcess({
      path: launcher.setpriv,
      argv: [...mortal, ...DROPS[spec.drop], ...shell, ...gate],
      environment,
      cwd: '/',
      descriptors: [0, 1, 2, ...entry.descriptors],
      renumbered: { from: far, to: channel },
      keepIgnored,
      blockedSignals: [],
    });
  const spawnWitness = (): number =>
    spawnProcess({
      path: launcher.setpriv,
      argv: [...mortal, launcher.shell, ...parentGateArguments(['sleep', '2147483647'])],
      environment,
      cwd: '/',
      descriptors: [],
      keepIgnored: new Set(),
      blockedSignals: SETTABLE_SIGNALS,
    });
  let running: RunningCommand;
  try {
    running = supervise(spawn, () => startWitness(spawnWitness), keepIgnored);
  } catch (error) {
    close(near);
    throw error;
  } finally {
    close(far);
  }
  const keeper = new GateKeeper(near, spec.canaries.paths.length);
  return { ...running, tested: keeper.tested, go: () => keeper.go(), cancel: () => keeper.cancel() };
}
