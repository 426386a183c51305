/** What forget may leave behind on a machine, as names: mounts, processes, temporary files. */
import { readFileSync } from 'node:fs';
import { allPids, describeProcess, forgetMounts, processesWith } from './watchdog.ts';

export interface Leftovers {
  mounts: string[];
}

/** Mounts of type fuse.forget in every namespace that this process can see. */
export function machineLeftovers(): Leftovers {
  return {
    mounts: forgetMounts(allPids()).map((mount) => mount.mountpoint),
  };
}

function parentOf(pid: number): number {
  try {
    return Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

function ancestry(pid: number): number[] {
  const chain: number[] = [];
  for (let at = pid; at > 1; at = parentOf(at)) chain.push(at);
  return chain;
}

/** Processes of a run (they share its TMPDIR) that are neither this process's forebears nor its children. */
export function runProcesses(temporary: string): string[] {
  const own = new Set(ancestry(process.pid));
  const related = (pid: number) =>
    own.has(pid) || ancestry(pid).includes(process.pid) || own.has(parentOf(pid));
  return processesWith('TMPDIR', temporary)
    .filter((pid) => !related(pid))
    .map(describeProcess);
}
