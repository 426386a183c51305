/**
 * What bin/forget saw before Node started, and Node then hid: which signals the caller had set to be ignored (Node
 * resets them all, and so would undo `nohup`), which descriptors above 2 it passed on (Node marks them close-on-exec,
 * which would break `forget exec -- diff <(a) <(b)`), and the soft limit of open files (Node raises it to the hard
 * one, where select(2) is not safe and programs that close all descriptors are slow).
 */
import { isOpen } from '../sys/spawn.ts';

/** Set by bin/forget as `MASK:FD,FD,...:LIMIT`, the mask in hexadecimal as in /proc/PID/status; never passed on. */
export const ENTRY_VARIABLE = 'FORGET_ENTRY';

export interface Entry {
  ignoredSignals: Set<number>;
  descriptors: number[];
  /** A number or `unlimited`; undefined where Node was started without bin/forget. */
  openFiles: string | undefined;
}

export function entryOf(variable: string | undefined): Entry {
  const match = /^([0-9a-f]{1,16}):([0-9,]*):([0-9]+|unlimited)$/.exec(variable ?? '');
  if (!match) return { ignoredSignals: new Set(), descriptors: [], openFiles: undefined };
  const mask = BigInt(`0x${match[1]}`);
  const ignoredSignals = new Set<number>();
  for (let n = 1; n <= 64; n++) if ((mask >> BigInt(n - 1)) & 1n) ignoredSignals.add(n);
  const descriptors = match[2]!.split(',').filter(Boolean).map(Number);
  return {
    ignoredSignals,
    descriptors: descriptors.filter((fd) => fd > 2 && isOpen(fd)),
    openFiles: match[3],
  };
}
