/**
 * A protected path that is a symlink in the workspace (`memory -> ~/shared-memory`, dotfiles): writes go where it
 * leads. Found when the window opens, for rules that name one path; the overlay guards the others as they are met
 * (overlay/protected-links.ts).
 */
import { readlinkSync, realpathSync, statSync } from 'node:fs';
import { posix } from 'node:path';
import { compileRules, type RuleLine } from '../overlay/rules.ts';
import { bytesOf, displayName } from '../sys/bytes.ts';
import { Failure } from './failure.ts';
import type { WindowSettings } from './settings.ts';

const GLOB = /[*?[\]{}()!\\]/;

/**
 * Rules for what the protected symlinks lead to inside the workspace. Throws a Failure for one that leads out of it:
 * nobody could keep the promise there.
 */
export function linkedRules(settings: WindowSettings): RuleLine[] {
  const rules: RuleLine[] = [];
  for (const { pattern, exempt, source } of settings.rules) {
    const path = bytesOf(pattern.replace(/^\//, '').replace(/\/(\*\*)?$/, ''));
    if (exempt || path === '' || GLOB.test(path) || !pattern.replace(/\/$/, '').includes('/')) continue;
    const real = realPathOf(`${settings.workspace}/${path}`);
    if (real === undefined || real === `${settings.workspace}/${path}`) continue;
    if (!compileRules(settings.rules, { ignoreCase: settings.ignoreCase }).protects(path)) continue;
    if (!real.startsWith(`${settings.workspace}/`)) {
      throw new Failure(
        `${displayName(path)} leads to ${displayName(real)}, outside the workspace, where its writes would be real: ` +
          `use a workspace that holds both (-w), or make it real with --exempt '${displayName(path)}'`,
      );
    }
    const inside = real.slice(settings.workspace.length + 1).replace(/[*?[\]{}()!\\#]/g, '\\$&');
    const text = Buffer.from(inside, 'latin1').toString('utf8');
    const directory = statSync(Buffer.from(real, 'latin1'), { throwIfNoEntry: false })?.isDirectory();
    rules.push({
      pattern: `/${text}${directory ? '/' : ''}`,
      exempt: false,
      source: `${source} (by a symlink)`,
    });
  }
  return rules;
}

/** A dangling link's target is where a write through it would make a file. */
function realPathOf(path: string): string | undefined {
  try {
    return realpathSync.native(Buffer.from(path, 'latin1'), 'buffer').toString('latin1');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  try {
    const target = readlinkSync(Buffer.from(path, 'latin1'), 'buffer').toString('latin1');
    return posix.resolve(posix.dirname(path), target);
  } catch {
    return undefined; // nothing there, or below something that is not there
  }
}
