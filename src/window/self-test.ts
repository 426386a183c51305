/**
 * A canary at every mount: written through the view to a protected path, it must be readable there and absent from
 * the lower. What it tests is the mount itself, that nothing of it is a plain pass-through. A process of its own
 * writes and reads it (gate.ts says why), and the overlay takes it away.
 */
import { fstatSync, lstatSync, rmSync } from 'node:fs';
import type { RuleLine } from '../overlay/rules.ts';
import { Failure } from './failure.ts';
import type { Outcome } from './gate.ts';

export interface Canary {
  /** Of a file in the root of the view. */
  name: string;
  /** What is written to it: letters and digits. */
  token: string;
  rule: RuleLine;
}

/** Under a directory rule, which holds for files as well: a file rule would make temporary names beside it held. */
export function newCanary(): Canary {
  const unique = `${process.pid.toString(36)}${process.hrtime.bigint().toString(36)}`;
  const name = `.forget-canary-${unique}`;
  return {
    name,
    token: unique,
    rule: { pattern: `/${name}/`, exempt: false, source: 'forget' },
  };
}

/**
 * Has the canary come through to the real directory, of which `lower` is a descriptor? If so it is taken away there.
 * Does not go through the mount.
 */
export function leakedTo(lower: number, name: string): boolean {
  const path = `/proc/self/fd/${lower}/${name}`;
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return false;
  rmSync(path, { recursive: true, force: true });
  return true;
}

/**
 * Whether this user may make files in the directory that `lower` is a descriptor of, by its mode. The command has no
 * capability that would let an ordinary user do more, and an ACL that does is no reason to fail either.
 */
function mayBeRefused(lower: number): boolean {
  const { mode, uid, gid } = fstatSync(lower);
  const user = process.geteuid!();
  if (user === 0) return false;
  if (uid === user) return (mode & 0o200) === 0;
  const inGroup = gid === process.getegid!() || process.getgroups!().includes(gid);
  return (mode & (inGroup ? 0o020 : 0o002)) === 0;
}

/** `lower` is a descriptor of the real directory. Throws a Failure when the window does not hold. */
export function judge(outcome: Outcome | undefined, leaked: boolean, readonly: boolean, lower: number): void {
  const fail = (why: string) => new Failure(`the self-test failed: ${why}; nothing was started`);
  if (leaked) throw fail('a protected write reached the real workspace');
  if (outcome === undefined) throw fail('the shell that does it ended before it was through');
  if (readonly) {
    if (outcome !== 'refused') throw fail('a read-only window took a write');
  } else if (outcome === 'refused' && !mayBeRefused(lower)) throw fail('the canary could not be written');
  else if (outcome === 'lost') throw fail('the view lost a protected write');
}
