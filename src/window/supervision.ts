/**
 * Stands between the caller's job control and the command, which shares forget's process group: what the terminal
 * sends reaches both by itself, what is sent to forget alone is passed on, a stop of the command stops forget, and
 * the end of the command is the end that the caller sees.
 *
 * All waiting happens here, with waitpid(-1), for the command and for orphans that forget adopts as a subreaper.
 * While a command runs nothing else in the process may wait for children: Node's child_process would miss their end.
 */
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { PR_SET_CHILD_SUBREAPER } from '../sys/constants.ts';
import { ECHILD, EINTR, SysError } from '../sys/errno.ts';
import { errno, prctl } from '../sys/libc.ts';
import {
  defaultSignal,
  endSignalOf,
  exitCodeOf,
  exitNow,
  isStopped,
  kill,
  SETTABLE_SIGNALS,
  WNOHANG,
  WUNTRACED,
  waitpid,
  withSignalsBlocked,
} from '../sys/spawn.ts';
import type { Witness } from './signal-witness.ts';
import { openTerminal } from './terminal.ts';

/** How the command ended: exactly one of the two is a number. */
export interface CommandEnd {
  code: number | null;
  signal: number | null;
}

/** An AbortController that is made when somebody wants its signal: it takes 1 ms to load. */
export class Hurry {
  asked = false;
  private controller: AbortController | undefined;

  ask(): void {
    this.asked = true;
    this.controller?.abort();
  }

  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    if (this.asked) this.controller.abort();
    return this.controller.signal;
  }
}

export interface RunningCommand {
  readonly pid: number;
  /** Settles when the command, not what it left behind, has ended. */
  readonly done: Promise<CommandEnd>;
  /** Asked for by a SIGINT, SIGTERM, SIGHUP or SIGQUIT after the command's end: stop waiting for leftovers. */
  readonly hurry: Hurry;
  /**
   * Children that are no leftovers: forget's witness, and those that the process had before it became forget, as in
   * `forget exec -- cmd 2> >(tee log) | ...`, where the shell starts `tee` and then turns into forget.
   */
  bystanders(): number[];
  /** A child of forget's own, which is no leftover either. */
  addBystander(pid: number): void;
  /**
   * True when forget has no other child left, so that no descendant of the command can run. A look through /proc cannot
   * tell: who forks on and on is missed between two names of the listing.
   */
  childless(): boolean;
  /** From a group that died in the foreground. */
  takeTerminalBack(): void;
  /** Takes the terminal back from a dead group, and the signal listeners off. Call when no leftover runs. */
  release(): void;
  /**
   * Ends forget as the command ended: with its code, or 128+n after signal n. Where the terminal's own Ctrl-C or
   * Ctrl-\ killed the command forget dies of the same signal: a shell script that runs it is to stop as well,
   * and a shell goes by that.
   */
  exitAs(end: CommandEnd): never;
}

const { SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGCONT, SIGSTOP } = constants.signals;
const { SIGTSTP, SIGTTIN, SIGTTOU, SIGWINCH, SIGCHLD } = constants.signals;

/** A terminal sends these to the whole foreground group; to forget alone they come from kill(2). */
const KEYBOARD = [SIGINT, SIGQUIT, SIGTSTP, SIGWINCH];
const SENT = [SIGHUP, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM];
const HURRYING = [SIGINT, SIGQUIT, SIGHUP, SIGTERM];

/** Long enough for a signal to a group to have reached all of it. */
const GROUP_SIGNAL_MS = 10;

export function exitCodeFor(end: CommandEnd): number {
  return end.signal === null ? (end.code ?? 0) : 128 + end.signal;
}

/**
 * Spawns through `spawn`, which returns the pid, and supervises it. Signals in `ignored` stay ignored.
 */
export function supervise(
  spawn: () => number,
  startWitness: () => Witness,
  ignored: ReadonlySet<number>,
): RunningCommand {
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) !== 0) throw new SysError(errno(), 'becoming a subreaper');
  const terminal = openTerminal();
  const earlier = new Set(childrenOf(process.pid));
  const listeners = new Map<number, () => void>();
  const hurry = new Hurry();
  const fromKeyboard = new Set<number>();
  let ended: CommandEnd | undefined;
  /** The command's own process group, if it stopped while that was in the foreground. */
  let guest: number | undefined;
  /**
   * From a stop until shortly after its end. Of a SIGTSTP and a SIGCHLD that are pending together Linux delivers
   * SIGCHLD first, so that the listener for SIGTSTP may run only when the stop is over.
   */
  let stopped = false;
  let stopRequest: NodeJS.Timeout | undefined;
  let resolveDone: (end: CommandEnd) => void = () => {};
  const done = new Promise<CommandEnd>((resolve) => {
    resolveDone = resolve;
  });

  // Listeners first: a signal between the spawn and the first listener would kill forget, and the command with it.
  // They run on the event loop, so not before `pid` below is known.
  const pass = (signal: number): void => {
    const mayBeKeyboard = KEYBOARD.includes(signal) && terminal?.groupIsForeground() === true;
    if (ended) {
      const late = mayBeKeyboard && ended.signal === signal && !fromKeyboard.has(signal);
      if (late) fromKeyboard.add(signal);
      else if (HURRYING.includes(signal)) hurry.ask();
      return;
    }
    if (mayBeKeyboard) fromKeyboard.add(signal);
    // It has had its effect. The witness cannot tell: it loses a pending SIGTSTP to the SIGCONT that follows.
    if (signal === SIGTSTP && (mayBeKeyboard || stopped)) return;
    const timer = setTimeout(() => {
      const groupGotIt = witness.saw(signal) ?? mayBeKeyboard;
      if (!ended && !groupGotIt) kill(pid, signal);
    }, GROUP_SIGNAL_MS);
    if (signal === SIGTSTP) stopRequest = timer;
  };
  for (const signal of [...KEYBOARD, ...SENT]) listeners.set(signal, () => pass(signal));
  // These stop a background group that uses the terminal; the command stops by itself, and forget after it.
  for (const signal of [SIGTTIN, SIGTTOU]) listeners.set(signal, () => {});
  listeners.set(SIGCONT, () => {
    setTimeout(() => {
      stopped = false;
      if (ended || processState(pid) !== 'T') return;
      // An interactive shell that was suspended has a group of its own, of which the caller's `fg` knows nothing.
      if (guest !== undefined && terminal?.groupIsForeground()) terminal.giveTo(guest);
      kill(guest === undefined ? pid : -guest, SIGCONT);
    }, GROUP_SIGNAL_MS);
  });
  listeners.set(SIGCHLD, () => reap());
  for (const [signal, listener] of listeners) {
    if (!ignored.has(signal) || signal === SIGCHLD) process.on(signalName(signal), listener);
  }

  const status = Buffer.alloc(4);
  /** Returns whether children are left. */
  const reap = (): boolean => {
    for (;;) {
      const child = waitpid(-1, status, WNOHANG | WUNTRACED);
      if (child === 0) return true;
      if (child < 0 && errno() === ECHILD) return false;
      if (child < 0) {
        if (errno() === EINTR) continue;
        throw new SysError(errno(), 'waiting for the command');
      }
      const word = status.readInt32LE();
      if (child !== pid) {
        if (!isStopped(word)) {
          witness.reaped(child);
          earlier.delete(child);
        }
      } else if (isStopped(word)) stopWithTheCommand();
      else {
        witness.end();
        ended = { code: exitCodeOf(word), signal: endSignalOf(word) };
        const { signal } = ended;
        // Two threads of Node may have taken SIGINT and SIGCHLD, and the listeners run in either order.
        const awaited = terminal && (signal === SIGINT || signal === SIGQUIT) && !fromKeyboard.has(signal);
        if (awaited) setTimeout(resolveDone, GROUP_SIGNAL_MS, ended);
        else resolveDone(ended);
      }
    }
  };
  // Only a job-control shell, which has a terminal, looks for a stop and ends it. Without one forget goes on: a
  // process inside that stops the command for a moment must still be served.
  const stopWithTheCommand = (): void => {
    clearTimeout(stopRequest);
    stopped = true;
    guest = terminal?.guestInForeground() === groupOf(pid) ? groupOf(pid) : undefined;
    if (terminal) kill(process.pid, SIGSTOP);
  };

  let pid: number;
  try {
    pid = spawn();
  } catch (error) {
    for (const [signal, listener] of listeners) process.off(signalName(signal), listener);
    terminal?.close();
    throw error;
  }
  const witness = startWitness();
  // Signal listeners alone do not keep Node's event loop alive.
  const keepAlive = setInterval(reap, 60_000);
  reap();

  return {
    pid,
    done,
    hurry,
    addBystander: (child) => earlier.add(child),
    bystanders: () => [...witness.pids(), ...earlier],
    childless: () =>
      !reap() || (earlier.size > 0 && childrenOf(process.pid).every((child) => earlier.has(child))),
    takeTerminalBack: () => terminal?.takeBack(),
    release() {
      clearInterval(keepAlive);
      terminal?.takeBack();
      terminal?.close();
      for (const [signal, listener] of listeners) process.off(signalName(signal), listener);
    },
    exitAs(end) {
      if (end.signal !== null && fromKeyboard.has(end.signal)) dieOf(end.signal);
      exitNow(exitCodeFor(end));
    },
  };
}

/** Returns only where the signal has no effect, as for process 1 of a container. */
function dieOf(signal: number): void {
  defaultSignal(signal);
  // Blocking the others unblocks this one.
  withSignalsBlocked(
    SETTABLE_SIGNALS.filter((n) => n !== signal),
    () => kill(process.pid, signal),
  );
}

/** Children of a process's main thread; empty where the kernel does not list them (CONFIG_PROC_CHILDREN). */
function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').filter(Boolean).map(Number);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** The state letter (T: stopped, Z: zombie) of a child that has not been reaped. */
function processState(pid: number): string {
  return statFields(pid)[0]!;
}

function groupOf(pid: number): number {
  return Number(statFields(pid)[2]);
}

/** /proc/PID/stat from the third field of proc(5) on; the second, in parentheses, may hold anything. */
function statFields(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

const nameOf = new Map(Object.entries(constants.signals).map(([name, n]) => [n, name as NodeJS.Signals]));
function signalName(signal: number): NodeJS.Signals {
  return nameOf.get(signal)!;
}
