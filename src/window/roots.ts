/**
 * Which directories a window mounts over: its roots. The workspace and the covers are places with rules of their own;
 * one that lies in another, is reached by a symlink, or does not exist yet ends up in the root that holds it.
 *
 * Mounted are directories only: a rename over a mounted file is EBUSY. A file beside a home (`~/.claude.json`) and a
 * directory that is not there yet are covered by the directory that holds them, in which all else is real.
 */
import { lstatSync, mkdirSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { posix } from 'node:path';
import { joinRules, type RuleGroup } from '../overlay/rule-groups.ts';
import { compileRules, type RuleLine, type Rules } from '../overlay/rules.ts';
import { bytesOf, displayName } from '../sys/bytes.ts';
import type { Cover } from './cover.ts';
import { Failure } from './failure.ts';
import { isWithin } from './mountinfo.ts';
import type { WindowSettings } from './settings.ts';
import { tilde } from './shown-path.ts';
import { refuseWorkspace } from './workspace.ts';

/** All paths are byte strings. */
export interface Root {
  /** Absolute, real. */
  directory: string;
  mountpoint: string;
  rules: Rules;
  /** Relative: files that cannot be changed inside. */
  fixed: string[];
  /** Relative: directories that were missing when the window opened, parents first. */
  missing: string[];
  /** Absolute: targets of protected symlinks that lead out of this root, into another. */
  reached: Set<string>;
}

export interface Plan {
  /** The first one holds the workspace. */
  roots: Root[];
  /** The workspace's own rules, relative to it. */
  workspaceRules: Rules;
  /** For the person: what is covered that nobody named. */
  notices: string[];
}

/** Where a cover comes to lie: the nearest directory that exists, and what is missing below it. */
interface Place {
  directory: string;
  base: string;
  rules: Rules;
  reached: string[];
}

/** The kernel's own limit on links in one path (MAXSYMLINKS). */
const MOST_LINKS = 40;
const OUT_OF_REACH = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST']);
const GLOB = /[*?[\]{}()!\\]/;

/** Throws a Failure or a RuleError for what cannot be covered. `own` are rules for every root. */
export function planRoots(settings: WindowSettings, mountpoint: string, own: readonly RuleLine[]): Plan {
  const { workspace, ignoreCase } = settings;
  const places: Place[] = [];
  const notices: string[] = [];
  const covers: Cover[] = [
    { directory: workspace, rules: settings.rules, source: 'the workspace' },
    ...settings.covers,
  ];
  for (const asked of covers) {
    if (covers.length > MOST_LINKS + settings.covers.length) {
      throw new Failure(`${asked.source}: its symbolic links lead to too many places`);
    }
    const cover = asked.make ? madeOf(asked) : asked;
    if (!cover) continue;
    const { directory, missing } = nearestDirectory(cover);
    const top = posix.join(directory, missing);
    const inPlace = cover.directory !== workspace || mountpoint === workspace;
    const { rules, elsewhere } = followLinks(cover, top, ignoreCase, inPlace);
    for (const { target, from, ...further } of elsewhere) {
      const known = covers.some(
        (one) => one.directory === further.directory && one.source === further.source,
      );
      if (known) continue;
      covers.push(further);
      notices.push(`forget: also covering ${shown(target)}, where ${shown(from)} leads`);
    }
    places.push({
      directory,
      base: missing,
      rules: compileRules(rules, { ignoreCase }),
      reached: elsewhere.map(({ target }) => target),
    });
  }
  const workspaceRules = places[0]!.rules;
  const guard = compileRules(own, { ignoreCase });
  const roots = joined(places).map(({ directory, members }): Root => {
    const groups: RuleGroup[] = members.map(({ base, rules }) => ({ base, rules }));
    return {
      directory,
      mountpoint: directory,
      rules: joinRules(own.length > 0 ? [...groups, { base: '', rules: guard }] : groups),
      fixed: settings.configFiles
        .filter((file) => isWithin(file, directory))
        .map((file) => posix.relative(directory, file)),
      missing: [...new Set(members.flatMap(({ missing }) => missing))],
      reached: new Set(members.flatMap(({ reached }) => reached)),
    };
  });
  const home = roots.findIndex(({ directory }) => isWithin(workspace, directory));
  roots.unshift(...roots.splice(home, 1));
  placeWorkspace(roots[0]!, settings, mountpoint);
  return { roots, workspaceRules, notices };
}

function placeWorkspace(root: Root, { workspace }: WindowSettings, mountpoint: string): void {
  if (mountpoint === workspace) return;
  if (root.directory !== workspace) {
    throw new Failure(
      `${displayName(root.directory)} is covered too and holds the workspace: mount it in place, without a mount point`,
    );
  }
  root.mountpoint = mountpoint;
}

interface Joined {
  directory: string;
  members: { base: string; rules: Rules; missing: string[]; reached: string[] }[];
}

const shown = (path: string) => displayName(tilde(path));

/** Places that lie in another's directory become groups of its root. */
function joined(places: readonly Place[]): Joined[] {
  const roots: Joined[] = [];
  const shortestFirst = [...places].sort((a, b) => a.directory.length - b.directory.length);
  for (const { directory, base, rules, reached } of shortestFirst) {
    let root = roots.find((one) => isWithin(directory, one.directory));
    if (!root) {
      root = { directory, members: [] };
      roots.push(root);
    }
    const above = posix.relative(root.directory, directory);
    const missing = base.split('/').map((_, i, names) => posix.join(above, ...names.slice(0, i + 1)));
    root.members.push({
      base: posix.join(above, base).replace(/^\.$/, ''),
      rules,
      missing: base === '' ? [] : missing,
      reached,
    });
  }
  return roots;
}

function madeOf(cover: Cover): Cover | undefined {
  const own = [cover.directory, cover.otherwise].find((path) => path !== undefined && isOwn(path));
  return own === undefined ? undefined : { ...cover, directory: own };
}

/** Makes the directory where it is missing. False for another user's, and where it cannot be: nobody here writes to it. */
function isOwn(directory: string): boolean {
  const path = Buffer.from(directory, 'latin1');
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const { uid } = lstatSync(path);
    return uid === process.geteuid!();
  } catch (error) {
    if (OUT_OF_REACH.has((error as NodeJS.ErrnoException).code!)) return false;
    throw error;
  }
}

/** The cover's real directory, as far as it exists, and the rest of its path. */
function nearestDirectory(cover: Cover): { directory: string; missing: string } {
  const name = displayName(cover.directory);
  let missing = '';
  let at = posix.normalize(cover.directory);
  for (let links = 0; ; ) {
    const real = realPathOf(at);
    if (real !== undefined) {
      const directory = statSync(Buffer.from(real, 'latin1')).isDirectory();
      if (!directory) throw new Failure(`${cover.source}: ${name} is no directory`);
      const refusal = refuseWorkspace(real);
      if (refusal) throw new Failure(`${cover.source}: ${name} cannot be covered: ${refusal}`);
      return { directory: real, missing };
    }
    const target = linkAt(at);
    if (target !== undefined) {
      if (++links > MOST_LINKS) throw new Failure(`${cover.source}: ${name}: its links go round in a circle`);
      at = posix.resolve(posix.dirname(at), target);
      continue;
    }
    missing = posix.join(posix.basename(at), missing).replace(/\/$/, '');
    at = posix.dirname(at);
  }
}

interface Further extends Cover {
  /** Where the link says it leads, and the link. */
  target: string;
  from: string;
}

/**
 * A protected path that is a symlink (`memory -> ~/shared-memory`, dotfiles): writes go where it leads. Found when the
 * window opens, for rules that name one path; the overlay guards the others as they are met
 * (overlay/protected-links.ts). Returns the cover's rules, with those for targets inside it, and covers for the others.
 */
function followLinks(
  { rules, source }: Cover,
  top: string,
  ignoreCase: boolean,
  inPlace: boolean,
): { rules: RuleLine[]; elsewhere: Further[] } {
  const more: RuleLine[] = [];
  const elsewhere: Further[] = [];
  const all = compileRules(rules, { ignoreCase });
  for (const line of rules) {
    const path = bytesOf(line.pattern.replace(/^\//, '').replace(/\/(\*\*)?$/, ''));
    if (line.exempt || path === '' || GLOB.test(path) || !line.pattern.replace(/\/$/, '').includes('/'))
      continue;
    const from = `${top}/${path}`;
    const real = targetOf(from);
    if (real === undefined || real === from || !all.protects(path)) continue;
    const directory =
      statSync(Buffer.from(real, 'latin1'), { throwIfNoEntry: false })?.isDirectory() ?? false;
    if (isWithin(real, top)) {
      more.push({
        ...exactly(real.slice(top.length + 1), directory),
        source: `${line.source} (by a symlink)`,
      });
      continue;
    }
    if (!inPlace) {
      throw new Failure(
        `${displayName(path)} leads to ${displayName(real)}, outside the workspace, where its writes would be real: ` +
          `mount the workspace in place, or make it real with --exempt '${displayName(path)}'`,
      );
    }
    elsewhere.push({
      directory: directory ? real : posix.dirname(real),
      rules: [
        directory
          ? { pattern: '/**', exempt: false, source: line.source }
          : { ...exactly(posix.basename(real), false), source: line.source },
      ],
      source: `${source}: ${displayName(path)}, a symlink`,
      target: posix.resolve(posix.dirname(from), linkAt(from) ?? real),
      from,
    });
  }
  return { rules: [...rules, ...more], elsewhere };
}

/** A rule for one path and no other. */
function exactly(path: string, directory: boolean): Pick<RuleLine, 'pattern' | 'exempt'> {
  const text = Buffer.from(path.replace(/[*?[\]{}()!\\#]/g, '\\$&'), 'latin1').toString('utf8');
  return { pattern: `/${text}${directory ? '/' : ''}`, exempt: false };
}

/** A dangling link's target is where a write through it would make a file. */
function targetOf(path: string): string | undefined {
  const real = realPathOf(path);
  if (real !== undefined) return real;
  const target = linkAt(path);
  return target === undefined ? undefined : posix.resolve(posix.dirname(path), target);
}

/** Undefined where nothing is there. */
function realPathOf(path: string): string | undefined {
  try {
    return realpathSync.native(Buffer.from(path, 'latin1'), 'buffer').toString('latin1');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new Failure(`${displayName(path)} cannot be looked at (${code})`);
  }
}

/** Undefined for what is no link. */
function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(Buffer.from(path, 'latin1'), 'buffer').toString('latin1');
  } catch {
    return undefined; // nothing there, or below something that is not there
  }
}
