/**
 * Processes, signals and the terminal's job control, through koffi: what Node's child_process cannot do, since it
 * takes arguments as UTF-8 text, forks a process as large as Node, and owns the waiting.
 *
 * Same rules as in libc.ts: a call returns what C returns. The posix_spawn and pthread families return the errno
 * itself instead of -1.
 */
import { constants } from 'node:os';
import { cstring, displayName } from './bytes.ts';
import { O_NONBLOCK } from './constants.ts';
import { SysError } from './errno.ts';
import { koffi } from './koffi.ts';
import { addressOf, fcntl } from './libc.ts';

const lib = koffi.load(null);

type Int = number;

// posix_spawn(3)
/** `argv` and `envp` are arrays of addresses, as `stringArray` makes them. `pid` gets an int32. */
const posixSpawn: (
  pid: Buffer,
  path: Buffer,
  actions: Buffer,
  attributes: Buffer,
  argv: Buffer,
  envp: Buffer,
) => Int = lib.func(
  'int posix_spawn(void* pid, void* path, void* actions, void* attr, void* argv, void* envp)',
);
const spawnActionsInit: (actions: Buffer) => Int = lib.func(
  'int posix_spawn_file_actions_init(void* actions)',
);
const spawnActionsDestroy: (actions: Buffer) => Int = lib.func(
  'int posix_spawn_file_actions_destroy(void* actions)',
);
const spawnActionsAddChdir: (actions: Buffer, path: Buffer) => Int = lib.func(
  'int posix_spawn_file_actions_addchdir_np(void* actions, void* path)',
);
/** With `from` equal to `to` this clears the descriptor's close-on-exec flag in the child. */
const spawnActionsAddDup2: (actions: Buffer, from: Int, to: Int) => Int = lib.func(
  'int posix_spawn_file_actions_adddup2(void* actions, int from, int to)',
);
const spawnAttributesInit: (attributes: Buffer) => Int = lib.func('int posix_spawnattr_init(void* attr)');
const spawnAttributesDestroy: (attributes: Buffer) => Int = lib.func(
  'int posix_spawnattr_destroy(void* attr)',
);
const spawnAttributesSetFlags: (attributes: Buffer, flags: Int) => Int = lib.func(
  'int posix_spawnattr_setflags(void* attr, short flags)',
);
const spawnAttributesSetDefault: (attributes: Buffer, set: Buffer) => Int = lib.func(
  'int posix_spawnattr_setsigdefault(void* attr, void* set)',
);
const spawnAttributesSetMask: (attributes: Buffer, set: Buffer) => Int = lib.func(
  'int posix_spawnattr_setsigmask(void* attr, void* set)',
);
const POSIX_SPAWN_SETSIGDEF = 4;
const POSIX_SPAWN_SETSIGMASK = 8;
const POSIX_SPAWN_SETSID = 0x80;
/** Room for `posix_spawnattr_t` (336 bytes in glibc and musl) and `posix_spawn_file_actions_t` (80). */
const SPAWN_STRUCT_BYTES = 512;

// Waiting
/** `status` gets an int32; see `exitCodeOf` and its neighbours. */
export const waitpid: (pid: Int, status: Buffer, options: Int) => Int = lib.func(
  'int waitpid(int pid, void* status, int options)',
);
export const WNOHANG = 1;
export const WUNTRACED = 2;
/** The exit code of a wait status, or null if a signal ended or stopped the process. */
export const exitCodeOf = (status: Int): Int | null => ((status & 0x7f) === 0 ? (status >> 8) & 0xff : null);
/** The signal that ended the process, or null. */
export const endSignalOf = (status: Int): Int | null => {
  const low = status & 0x7f;
  return low !== 0 && low !== 0x7f ? low : null;
};
export const isStopped = (status: Int): boolean => (status & 0xff) === 0x7f;

// Signals
export const kill: (pid: Int, signal: Int) => Int = lib.func('int kill(int pid, int signal)');
const setHandler: (signal: Int, handler: Int) => unknown = lib.func('signal', 'intptr_t', [
  'int',
  'intptr_t',
]);
const SIG_DFL = 0;
const SIG_IGN = 1;
export const ignoreSignal = (signal: Int): unknown => setHandler(signal, SIG_IGN);
export const defaultSignal = (signal: Int): unknown => setHandler(signal, SIG_DFL);
const pthreadSigmask: (how: Int, set: Buffer, old: Buffer | null) => Int = lib.func(
  'int pthread_sigmask(int how, void* set, void* old)',
);
const SIG_SETMASK = 2;
const SIGSET_BYTES = 128;

/** A `sigset_t` of the given signals. Signal n is bit n-1 on every architecture here. */
export function signalSet(signals: Iterable<Int>): Buffer {
  const set = Buffer.alloc(SIGSET_BYTES);
  for (const n of signals) set[(n - 1) >> 3]! |= 1 << ((n - 1) & 7);
  return set;
}

/** Runs `action` with `signals` blocked on the calling thread. */
export function withSignalsBlocked<T>(signals: Iterable<Int>, action: () => T): T {
  const old = Buffer.alloc(SIGSET_BYTES);
  pthreadSigmask(SIG_SETMASK, signalSet(signals), old);
  try {
    return action();
  } finally {
    pthreadSigmask(SIG_SETMASK, old, null);
  }
}

// The terminal
export const getpgrp: () => Int = lib.func('int getpgrp()');
/** -1 where the descriptor is not this session's terminal. */
export const tcgetpgrp: (fd: Int) => Int = lib.func('int tcgetpgrp(int fd)');
export const tcsetpgrp: (fd: Int, group: Int) => Int = lib.func('int tcsetpgrp(int fd, int group)');

/**
 * Ends the process at once. Node's own exit puts the terminal's settings back to what they were when Node started,
 * and so would undo a command's `stty`.
 */
export const exitNow: (code: Int) => never = lib.func('void _exit(int code)') as never;

const F_GETFD = 1;
const F_GETFL = 3;
const F_SETFL = 4;

/** Is the descriptor open in this process? */
export const isOpen = (fd: Int): boolean => fcntl(fd, F_GETFD, 0) !== -1;

/**
 * Makes reads and writes wait again. Node sets O_NONBLOCK on a pipe or socket as soon as `process.stdin`, `stdout`
 * or `stderr` is touched, which an `import` from 'node:process' does for all three; the flag belongs to the open
 * file, so the command would get EAGAIN.
 */
export function makeBlocking(fd: Int): void {
  const flags = fcntl(fd, F_GETFL, 0);
  if (flags !== -1 && flags & O_NONBLOCK) fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
}

/** A NULL-terminated `char*[]` of byte strings, and behind it the strings, in one Buffer: an address keeps none alive. */
function stringArray(values: readonly string[]): Buffer {
  const pointers = (values.length + 1) * 8;
  const out = Buffer.alloc(values.reduce((size, { length }) => size + length + 1, pointers));
  const address = addressOf(out);
  let at = pointers;
  values.forEach((value, i) => {
    out.writeBigUInt64LE(address + BigInt(at), i * 8);
    at += out.latin1Write(value, at) + 1;
  });
  return out;
}

/** Every signal number that a process may set: 1 to 64 but KILL and STOP. */
export const SETTABLE_SIGNALS: readonly Int[] = Array.from({ length: 64 }, (_, i) => i + 1).filter(
  (n) => n !== constants.signals.SIGKILL && n !== constants.signals.SIGSTOP,
);

export interface SpawnRequest {
  /** Absolute path of the program. */
  path: string;
  argv: readonly string[];
  /** `NAME=value`, byte strings. */
  environment: readonly string[];
  /** Byte string; undefined keeps the caller's. */
  cwd?: string;
  /** Descriptors the child gets under the same numbers. All others must be close-on-exec. */
  descriptors: readonly Int[];
  /** One more that the child gets, under a number that is none of those. */
  renumbered?: { from: Int; to: Int };
  /** Signals that stay as they are in this process, where that is "ignored"; all others get their default action. */
  keepIgnored: ReadonlySet<Int>;
  blockedSignals: readonly Int[];
  /** In a session and process group of its own. */
  ownSession?: true;
}

/**
 * posix_spawn(3): the child shares this memory until its exec, so that nothing of Node is copied, and the calling
 * thread waits for that exec. Returns the pid; throws SysError.
 */
export function spawnProcess(request: SpawnRequest): Int {
  const check = (result: Int, doing: string): void => {
    if (result !== 0) throw new SysError(result, doing);
  };
  const actions = Buffer.alloc(SPAWN_STRUCT_BYTES);
  const attributes = Buffer.alloc(SPAWN_STRUCT_BYTES);
  check(spawnActionsInit(actions), 'posix_spawn_file_actions_init');
  check(spawnAttributesInit(attributes), 'posix_spawnattr_init');
  try {
    if (request.cwd !== undefined) {
      check(spawnActionsAddChdir(actions, cstring(request.cwd)), 'posix_spawn_file_actions_addchdir_np');
    }
    for (const fd of request.descriptors) {
      check(spawnActionsAddDup2(actions, fd, fd), 'posix_spawn_file_actions_adddup2');
    }
    if (request.renumbered) {
      const { from, to } = request.renumbered;
      check(spawnActionsAddDup2(actions, from, to), 'posix_spawn_file_actions_adddup2');
    }
    const session = request.ownSession ? POSIX_SPAWN_SETSID : 0;
    spawnAttributesSetFlags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | session);
    const reset = SETTABLE_SIGNALS.filter((n) => !request.keepIgnored.has(n));
    spawnAttributesSetDefault(attributes, signalSet(reset));
    spawnAttributesSetMask(attributes, signalSet(request.blockedSignals));
    const argv = stringArray(request.argv);
    const environment = stringArray(request.environment);
    const pid = Buffer.alloc(4);
    const path = cstring(request.path);
    const result = posixSpawn(pid, path, actions, attributes, argv, environment);
    check(result, `starting ${displayName(request.path)}`);
    return pid.readInt32LE();
  } finally {
    spawnActionsDestroy(actions);
    spawnAttributesDestroy(attributes);
  }
}
