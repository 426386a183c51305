/** Who started whom, from /proc/PID/stat. */
import { readFileSync } from 'node:fs';

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
