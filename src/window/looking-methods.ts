/** What the control socket offers for looking into a window and for keeping: its requests and their answers. */
import type { KeptPath } from '../overlay/keep-outcome.ts';
import type { Conflict } from '../overlay/keep-plan.ts';
import type { HeldPath } from '../overlay/look.ts';
import type { Asker } from './control.ts';

/** A path that the window holds, and which of the window's roots it is in. */
export interface ListedPath extends HeldPath {
  root: number;
  /** Byte strings: where it is seen in the window, and where it really is. */
  seenAt: string;
  realPath: string;
}

export interface LookingMethods {
  /** Parts: ListedPath[]. */
  list: { params: Record<string, never>; result: { count: number } };
  /** Of a regular file, at most so many bytes. Parts: base64. */
  content: {
    params: { root: number; path: string; version: 'upper' | 'lower'; most: number };
    result: Record<string, never>;
  };
  log: { params: { follow: boolean }; result: Record<string, never> };
  keep: {
    params: { globs: string[]; force: boolean; dryRun: boolean };
    result: { kept: KeptPath[]; conflicts: Conflict[] };
  };
}

/** Parameters come from whoever connects: a handler takes nothing in them for granted. */
export type LookingHandlers = {
  [M in keyof LookingMethods]: (
    params: { [K in keyof LookingMethods[M]['params']]?: unknown },
    asker: Asker,
  ) => Promise<LookingMethods[M]['result']>;
};

const METHODS: readonly string[] = ['list', 'content', 'log', 'keep'] satisfies (keyof LookingMethods)[];

export function isLooking(method: unknown): method is keyof LookingMethods {
  return typeof method === 'string' && METHODS.includes(method);
}
