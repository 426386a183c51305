/**
 * A canary at every mount: written through the view to a protected path, it must be readable there and absent from
 * the lower. What it tests is the mount itself, that nothing of it is a plain pass-through.
 */

import { randomBytes } from 'node:crypto';
import { lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { RuleLine } from '../overlay/rules.ts';
import { Failure } from './failure.ts';

export interface Canary {
  directory: string;
  file: string;
  rule: RuleLine;
}

/** A directory rule, for a file rule would make temporary names beside it held. */
export function newCanary(): Canary {
  const directory = `.forget-canary-${randomBytes(6).toString('hex')}`;
  return {
    directory,
    file: `${directory}/canary`,
    rule: { pattern: `/${directory}/`, exempt: false, source: 'forget' },
  };
}

/**
 * Blocks the calling thread, which must not be the one that serves. `view` is the mounted workspace, a byte string;
 * `lower` a descriptor of the real one. Throws a Failure when the window does not hold.
 */
export function selfTest(canary: Canary, view: string, lower: number, readonly: boolean): void {
  const inView = (path: string) => Buffer.from(`${view}/${path}`, 'latin1');
  const text = randomBytes(16).toString('hex');
  try {
    mkdirSync(inView(canary.directory));
    writeFileSync(inView(canary.file), text);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (readonly && code === 'EROFS') return;
    throw new Failure(`the self-test failed: writing the canary gave ${code}; nothing was started`);
  }
  if (readonly)
    throw new Failure('the self-test failed: a read-only window took a write; nothing was started');
  const seen = readFileSync(inView(canary.file), 'latin1');
  const leaked =
    lstatSync(`/proc/self/fd/${lower}/${canary.directory}`, { throwIfNoEntry: false }) !== undefined;
  rmSync(inView(canary.directory), { recursive: true });
  if (leaked) {
    rmSync(`/proc/self/fd/${lower}/${canary.directory}`, { recursive: true, force: true });
    throw new Failure(
      'the self-test failed: a protected write reached the real workspace; nothing was started',
    );
  }
  if (seen !== text)
    throw new Failure('the self-test failed: the view lost a protected write; nothing was started');
}
