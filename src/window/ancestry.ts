/** Who started whom, from /proc/PID/stat. */
import { readdirSync, readFileSync } from 'node:fs';

/** The parent of a process, or 0 when it has none or is gone. */
export function parentOf(pid: number): number {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return 0;
  }
  // The command's name, in parentheses, may itself hold spaces and parentheses.
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}

/** The process's parent, its parent's parent, and so on; not the process itself. */
export function ancestorsOf(pid: number): number[] {
  const ancestors: number[] = [];
  for (let at = parentOf(pid); at > 0; at = parentOf(at)) ancestors.push(at);
  return ancestors;
}

/** Is `pid` the process `ancestor`, or did that one start it, directly or through others? */
export function descendsFrom(pid: number, ancestor: number): boolean {
  return pid === ancestor || ancestorsOf(pid).includes(ancestor);
}

/** The children of any of a process's threads; none where it is gone. An unreadable entry has ended meanwhile. */
export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((one) => Number.isInteger(one) && parentOf(one) === pid);
}

/** The state letter of proc(5) of a process's main thread (T: stopped, D: waits in the kernel, Z: dead), or undefined. */
export function stateOf(pid: number): string | undefined {
  const stat = unlessGone(() => readFileSync(`/proc/${pid}/stat`, 'latin1'));
  return stat?.[stat.lastIndexOf(')') + 2];
}

/** Has all of it ended? A thread may live on, in the kernel, where the main thread is dead. A zombie without has ended. */
export function hasEnded(pid: number): boolean {
  const state = stateOf(pid);
  if (state === undefined) return true;
  return (
    (state === 'Z' || state === 'X') && (unlessGone(() => readdirSync(`/proc/${pid}/task`))?.length ?? 0) <= 1
  );
}

function unlessGone<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return undefined;
    throw error;
  }
}
