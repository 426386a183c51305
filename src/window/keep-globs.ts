/**
 * Which paths of a window's roots the globs of `forget keep` mean. In gitignore syntax: relative to the workspace; one
 * without a slash for each root of the window; one that begins with `~/` or with a root's own absolute path for that root.
 */
import { homedir } from 'node:os';
import { posix } from 'node:path';
import { compileRules, type RuleLine } from '../overlay/rules.ts';
import { bytesOf } from '../sys/bytes.ts';
import { isWithin } from './mountinfo.ts';

/** Byte strings: where a root really is, and where it is mounted. */
export interface GlobRoot {
  directory: string;
  mountpoint: string;
}

type Match = (path: string) => boolean;

/** For each root which of its paths are meant. Throws RuleError. */
export function matchersFor(
  globs: readonly string[],
  roots: readonly GlobRoot[],
  workspace: string,
): Match[] {
  return roots.map((root) => matcherFor(globs, root, roots, workspace));
}

function matcherFor(
  globs: readonly string[],
  root: GlobRoot,
  roots: readonly GlobRoot[],
  workspace: string,
): Match {
  const here: RuleLine[] = [];
  const inWorkspace: RuleLine[] = [];
  for (const glob of globs) {
    const placed = placedIn(glob, roots);
    if (placed) {
      if (placed.root === root) here.push(line(placed.pattern));
      continue;
    }
    inWorkspace.push(line(glob));
    if (!isAnchored(glob)) here.push(line(glob));
  }
  const placed = compileRules(here, { siblings: false });
  const relative = compileRules(inWorkspace, { siblings: false });
  return (path) => {
    const at = posix.join(root.directory, path);
    const inside = at !== workspace && isWithin(at, workspace);
    return placed.protects(path) || (inside && relative.protects(at.slice(workspace.length + 1)));
  };
}

function line(pattern: string): RuleLine {
  return { pattern, exempt: false, source: 'forget keep' };
}

function isAnchored(glob: string): boolean {
  return glob.replace(/^!/, '').replace(/\/$/, '').includes('/');
}

/** A glob that names a place outside the workspace's own paths. */
function placedIn(glob: string, roots: readonly GlobRoot[]): { root: GlobRoot; pattern: string } | undefined {
  const sign = glob.startsWith('!') ? '!' : '';
  const bare = glob.slice(sign.length);
  const absolute = bytesOf(bare.startsWith('~/') ? homedir() + bare.slice(1) : bare);
  for (const root of roots) {
    for (const top of [root.directory, root.mountpoint]) {
      if (!absolute.startsWith(`${top}/`)) continue;
      const below = Buffer.from(absolute.slice(top.length), 'latin1').toString('utf8');
      return { root, pattern: sign + below };
    }
  }
  return undefined;
}
