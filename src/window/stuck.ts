/**
 * Windows whose server does not answer: what has become of it, and how to be rid of them. Nothing here touches a mount,
 * which may never answer: the control socket was asked, and /proc says the rest.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { displayName } from '../sys/bytes.ts';
import { monotonicMs } from '../sys/clock.ts';
import { childrenOf, hasEnded, stateOf } from './ancestry.ts';
import { answers, serverOf } from './control.ts';
import { clearThrough, type Guardian, guardianOf } from './guardian.ts';
import { isForgetMount, type Mount, parseMountinfo, readMountinfo } from './mountinfo.ts';

export interface StuckWindow {
  id: string;
  pid: number;
  guardian: Guardian | undefined;
  /**
   * `suspended`: stopped together with its command, as by Ctrl-Z, and nobody waits. `stopped`: it alone. `hung`: it
   * runs, or waits for something in the kernel. `ending`: it was killed, and a thread of it still waits.
   */
  state: 'suspended' | 'stopped' | 'hung' | 'ending';
}

/** Undefined where it is gone meanwhile, or out of this process's sight, as in a container. */
export function stuckWindow(id: string): StuckWindow | undefined {
  const pid = serverOf(id);
  if (pid === undefined || hasEnded(pid)) return undefined;
  const letter = stateOf(pid);
  const guardian = guardianOf(pid);
  if (letter === 'Z' || letter === 'X') return { id, pid, guardian, state: 'ending' };
  if (letter !== 'T') return { id, pid, guardian, state: 'hung' };
  const others = childrenOf(pid).filter((child) => child !== guardian?.pid);
  // The witness, which blocks SIGTSTP, is no part of the job.
  const suspended = others.some((child) => stateOf(child) === 'T');
  return { id, pid, guardian, state: suspended ? 'suspended' : 'stopped' };
}

/** One line for the person. */
export function describeStuck({ id, pid, guardian, state }: StuckWindow): string {
  const at = guardian ? ` at ${displayName(guardian.mountpoint)}` : '';
  const what = {
    suspended: 'is suspended with its command, as by Ctrl-Z',
    stopped: 'is stopped (SIGSTOP)',
    hung: `does not answer${waitsIn(pid)}`,
    ending: 'was killed, and waits in the kernel',
  }[state];
  return `window ${id}${at} (pid ${pid}) ${what}`;
}

/** Where in the kernel it waits: a name of a function, which tells a hung disk from a hung network. */
function waitsIn(pid: number): string {
  try {
    const place = readFileSync(`/proc/${pid}/wchan`, 'latin1').trim();
    return place && place !== '0' ? `, and waits in ${place}` : '';
  } catch {
    return '';
  }
}

const PATIENCE_MS = 5000;
const END_WITHIN_MS = 4000;

export interface Cleared {
  /** `answers`: it goes on. `ended`: its process is gone. `stays`: it was left alone, or nothing helped. */
  outcome: 'answers' | 'ended' | 'stays';
  /** For the person. */
  how: string;
}

/**
 * Has the window go on if that is all it needs, and otherwise ends it: first its connection, so that whoever waits for
 * an answer gets an error, then its process. What it had caught is lost, unless it went on. A suspended one is left
 * alone. Takes 15 s at the most.
 */
export async function clearStuck(window: StuckWindow): Promise<Cleared> {
  const { id, pid, guardian, state } = window;
  const name = `window ${id} (pid ${pid})`;
  if (state === 'suspended') return { outcome: 'stays', how: describeStuck(window) };
  if (state === 'stopped') signal(pid, 'SIGCONT');
  if (state !== 'ending' && (await answers(id, PATIENCE_MS))) {
    return { outcome: 'answers', how: `${name} ${state === 'stopped' ? 'was continued' : 'answers again'}` };
  }
  if (guardian) clearThrough(guardian);
  abortConnection(pid);
  if (await gone(pid, END_WITHIN_MS)) return { outcome: 'ended', how: `${name} was ended` };
  signal(pid, 'SIGKILL');
  if (await gone(pid, END_WITHIN_MS)) return { outcome: 'ended', how: `${name} was killed` };
  return { outcome: 'stays', how: `${name} was killed, and waits in the kernel for its workspace to answer` };
}

/** For a window without a guardian, where its namespace shows a mount that is not one of ours here as well. */
function abortConnection(pid: number): void {
  const here = new Set(readMountinfo().map(({ device }) => device));
  const own = threadsOf(pid)
    .flatMap((thread) => mountsOfThread(pid, thread))
    .filter((mount) => isForgetMount(mount) && !here.has(mount.device));
  const devices = new Set(own.map(({ device }) => device));
  const [device] = devices;
  if (device === undefined || devices.size > 1) return;
  try {
    writeFileSync(`/sys/fs/fuse/connections/${device.split(':')[1]}/abort`, '1');
  } catch (error) {
    // The control filesystem is not mounted here, the connection is another user's, or it has ended.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'EACCES' && code !== 'EPERM') throw error;
  }
}

/** A dead main thread has no namespace any more, and another may have. */
function mountsOfThread(pid: number, thread: string): Mount[] {
  try {
    return parseMountinfo(readFileSync(`/proc/${pid}/task/${thread}/mountinfo`, 'latin1'));
  } catch {
    return []; // it is dead, gone, or another user's
  }
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

function signal(pid: number, name: 'SIGCONT' | 'SIGKILL'): void {
  try {
    process.kill(pid, constants.signals[name]);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Gone meanwhile, or another user's: what follows tells.
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}

async function gone(pid: number, withinMs: number): Promise<boolean> {
  const deadline = monotonicMs() + withinMs;
  for (;;) {
    if (hasEnded(pid)) return true;
    if (monotonicMs() >= deadline) return false;
    await sleep(50);
  }
}
