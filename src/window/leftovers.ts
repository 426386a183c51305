/**
 * What a command leaves running when it ends: its descendants, which forget has adopted as a subreaper, and whatever
 * else is in the window's mount namespace. They get a grace to end by themselves, then SIGTERM, then SIGKILL.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { scratchCstring } from '../sys/bytes.ts';
import { monotonicMs } from '../sys/clock.ts';
import { AT_FDCWD } from '../sys/constants.ts';
import { readlinkat } from '../sys/libc.ts';
import { kill } from '../sys/spawn.ts';
import type { RunningCommand } from './supervision.ts';

export interface Leftover {
  pid: number;
  /** Byte string: the arguments joined by spaces, or the short name in brackets. */
  command: string;
  /** `survived`: SIGKILL did not end it in time (a process stuck in the kernel). */
  how: 'ended' | 'terminated' | 'killed' | 'survived';
}

export interface LeftoverOptions {
  /** Milliseconds to end by itself; default 1000. As long again from SIGTERM to SIGKILL. */
  grace?: number;
  /** As `mountNamespace()` gives it, if the window has one of its own: whoever is in it belongs to the window. */
  mountNamespace?: string;
}

/** The command that has ended. `hurry` ends the grace. */
export type EndedCommand = Pick<RunningCommand, 'bystanders' | 'childless' | 'hurry'>;

interface Process {
  pid: number;
  parent: number;
  /** In clock ticks since boot: with the pid it names one process for good. */
  started: string;
}

const KILL_WAIT_MS = 2000;

/** The mount namespace of the main thread, e.g. `mnt:[4026531841]`. */
export function mountNamespace(): string {
  return readlinkSync('/proc/self/ns/mnt');
}

/**
 * Ends all that the command left behind and says what had to be waited for or ended, in the order found. Needs the
 * reaper of the running command, so call it before `release`.
 */
export async function endLeftovers(
  command: EndedCommand,
  options: LeftoverOptions = {},
): Promise<Leftover[]> {
  const grace = options.grace ?? 1000;
  const found = new Map<string, Leftover>();
  const look = async (): Promise<Process[]> => {
    const running = command.childless() ? [] : descendants(command.bystanders());
    if (options.mountNamespace !== undefined)
      running.push(
        ...membersOf(options.mountNamespace, [...running.map(({ pid }) => pid), ...command.bystanders()]),
      );
    for (const { pid, started } of running) {
      const key = `${pid}/${started}`;
      const before = found.get(key);
      // Named by what it runs now: at first sight it may be a fork that has not become its program yet.
      const command = (await commandLine(pid)) ?? before?.command ?? shortName(pid);
      found.set(key, { pid, command, how: before?.how ?? 'ended' });
    }
    return running;
  };

  let running = await look();
  for (const phase of ['ended', 'terminated', 'killed'] as const) {
    const deadline = monotonicMs() + (phase === 'killed' ? KILL_WAIT_MS : grace);
    const signalled = new Set<string>();
    for (let pause = 2; running.length > 0 || !command.childless(); pause = Math.min(pause * 2, 50)) {
      if (phase !== 'ended') {
        // Again at each look: one that forked in the meantime left a child that has not been told.
        for (const one of running) {
          const key = `${one.pid}/${one.started}`;
          found.get(key)!.how = phase;
          if (phase === 'terminated' && signalled.has(key)) continue;
          signalled.add(key);
          kill(one.pid, phase === 'killed' ? constants.signals.SIGKILL : constants.signals.SIGTERM);
          // A stopped process does not act on SIGTERM until it goes on.
          if (phase === 'terminated') kill(one.pid, constants.signals.SIGCONT);
        }
      }
      const hurried = command.hurry.asked && phase !== 'killed';
      if (monotonicMs() >= deadline || (hurried && phase === 'ended')) break;
      await sleep(hurried ? Math.min(pause, 20) : pause);
      running = await look();
    }
  }
  for (const { pid, started } of running) found.get(`${pid}/${started}`)!.how = 'survived';
  return [...found.values()];
}

/** Running descendants of forget; zombies are none. */
function descendants(except: readonly number[]): Process[] {
  const children = new Map<number, Process[]>();
  for (const one of processes()) {
    const siblings = children.get(one.parent);
    if (siblings) siblings.push(one);
    else children.set(one.parent, [one]);
  }
  const found: Process[] = [];
  const descend = (parent: number): void => {
    for (const child of children.get(parent) ?? []) {
      if (except.includes(child.pid)) continue;
      found.push(child);
      descend(child.pid);
    }
  };
  descend(process.pid);
  return found;
}

/** Running processes in a mount namespace, without forget itself and those known already. */
function membersOf(namespace: string, known: readonly number[]): Process[] {
  const pids = new Set([process.pid, ...known]);
  // Most processes of the machine are elsewhere, and many not ours to look into: a link read without a throw first.
  const members = processIds().filter((pid) => !pids.has(pid) && namespaceOf(pid) === namespace);
  return members.map(processOf).filter((one) => one !== undefined);
}

function processIds(): number[] {
  return readdirSync('/proc').map(Number).filter(Number.isInteger);
}

function processes(): Process[] {
  return processIds()
    .map(processOf)
    .filter((one) => one !== undefined);
}

/** Undefined for a zombie, too. */
function processOf(pid: number): Process | undefined {
  const stat = unlessGone(() => readFileSync(`/proc/${pid}/stat`, 'latin1'));
  // The name in parentheses may hold anything; the fields after it are those of proc(5) from the third on.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (!fields || fields[0] === 'Z' || fields[0] === 'X') return undefined;
  return { pid, parent: Number(fields[1]), started: fields[19]! };
}

const link = Buffer.alloc(64);

/** Undefined where the process is gone or another user's. */
function namespaceOf(pid: number): string | undefined {
  const length = readlinkat(AT_FDCWD, scratchCstring(`/proc/${pid}/ns/mnt`), link, link.length);
  return length < 0 ? undefined : link.latin1Slice(0, length);
}

/**
 * On a pool thread: the kernel reads the other process's memory, and may wait for one that itself waits for a page of a
 * file in the window, which this thread must deliver. Undefined for one that has ended, or is about to.
 */
async function commandLine(pid: number): Promise<string | undefined> {
  const { readFile } = await import('node:fs/promises');
  const line = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '');
  return line === '' ? undefined : line.replace(/\0$/, '').replaceAll('\0', ' ');
}

function shortName(pid: number): string {
  return `[${unlessGone(() => readFileSync(`/proc/${pid}/comm`, 'latin1'))?.trimEnd() ?? 'gone'}]`;
}

/** Undefined where the process is gone or another user's: such a one is not ours to look into. */
function unlessGone<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH' || code === 'EACCES' || code === 'EPERM') return undefined;
    throw error;
  }
}
