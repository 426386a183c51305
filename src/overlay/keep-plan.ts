/**
 * What a keep is to do: which changes of the window its globs choose, what of the lower stands against it, and the steps
 * (keep-journal.ts) that bring them there. Nothing is changed here.
 */
import { randomBytes } from 'node:crypto';
import { S_IFDIR, S_IFMT } from '../sys/constants.ts';
import { close, pread } from '../sys/libc.ts';
import { type Base, isOlderThan, isUnchanged } from './bases.ts';
import { type Change, changesOf, inView, lowerEntryAt, openUpperSide } from './changes.ts';
import type { Step } from './keep-journal.ts';
import { TEMPORARY } from './keep-names.ts';
import { splitPath } from './lower-path.ts';
import { Node, Whiteout } from './node.ts';
import type { Overlay } from './overlay.ts';
import { databaseOf, isDatabaseName, SIDE_SUFFIXES } from './siblings.ts';

/** Something to be made below a step's temporary name. */
export interface Making {
  /** Below the temporary name; '' for that itself. */
  below: string;
  /** Where the view has it. */
  path: string;
  node: Node;
}

export interface PlannedStep extends Step {
  /** Parents before what is in them. */
  makings: Making[];
  /** The change that it stands for; for a directory that is made only to hold something, none. */
  change: Change | null;
}

export interface Conflict {
  path: string;
  why: string;
}

export interface Plan {
  steps: PlannedStep[];
  conflicts: Conflict[];
  /** What cannot be done at all. */
  impossible: Conflict[];
}

/** All changes, and those of a path that `wanted` says yes to, databases with all of their files. */
export function chooseChanges(
  o: Overlay,
  wanted: (path: string) => boolean,
): { all: Change[]; chosen: Change[] } {
  const all = changesOf(o);
  const byPath = new Map(all.map((change) => [change.path, change]));
  const chosen = new Set(all.filter(({ path }) => wanted(path)));
  for (const change of [...chosen]) for (const side of databaseFiles(o, change, byPath)) chosen.add(side);
  // A file in the place of a directory takes all that is in that away.
  for (const { path, type, lower } of [...chosen]) {
    if (type === S_IFDIR || !lower || (lower.mode & S_IFMT) !== S_IFDIR) continue;
    for (const change of all) if (change.path.startsWith(`${path}/`)) chosen.add(change);
  }
  return { all, chosen: all.filter((change) => chosen.has(change)) };
}

/** The files that SQLite keeps beside a database, and the database itself: a part alone would be a torn one. */
function databaseFiles(o: Overlay, { path }: Change, all: ReadonlyMap<string, Change>): Change[] {
  const base = databaseBeside(o, path, all);
  if (base === undefined) return [];
  return ['', ...SIDE_SUFFIXES]
    .map((suffix) => all.get(base + suffix))
    .filter((change) => change !== undefined);
}

function databaseBeside(o: Overlay, path: string, all: ReadonlyMap<string, Change>): string | undefined {
  const [directory, name] = splitPath(path);
  const at = (base: string) => (directory === '' ? base : `${directory}/${base}`);
  const known = databaseOf(name) ?? (isDatabaseName(name) ? name : undefined);
  if (known !== undefined) return at(known);
  const suffix = SIDE_SUFFIXES.find((one) => name.endsWith(one)) ?? '';
  const base = path.slice(0, path.length - suffix.length);
  const change = all.get(base);
  return change && isDatabase(o, change) ? base : undefined;
}

const MAGIC = Buffer.from('SQLite format 3\0');
const head = Buffer.alloc(MAGIC.length);

function isDatabase(o: Overlay, change: Change): boolean {
  if (!change.node?.isRegular) return false;
  const fd = openUpperSide(o, change);
  if (fd < 0) return false;
  const n = pread(fd, head, head.length, 0);
  close(fd);
  return n === MAGIC.length && head.equals(MAGIC);
}

/** The steps for what was chosen, and what speaks against them. */
export function planFor(o: Overlay, all: readonly Change[], chosen: readonly Change[]): Plan {
  const conflicts: Conflict[] = [];
  const against = (path: string, why: string) => conflicts.push({ path: o.ledger.shown(path), why });
  const paths = new Set(chosen.map(({ path }) => path));
  const undeleted = undeletedIn(all, chosen);
  for (const change of chosen) {
    const why = conflictOf(o, change.path, change.lower);
    if (why) against(change.path, why);
    if (change.kind === 'deleted' && change.type === S_IFDIR) {
      const left = undeleted.get(change.path);
      if (left !== undefined) against(change.path, `holds ${o.ledger.shown(left)}, which was not chosen`);
    }
  }
  for (const side of strangeSides(o, chosen, paths)) against(side, 'was made outside, beside a database');
  const impossible: Conflict[] = [];
  const steps = stepsFor(o, chosen, against, (path, why) =>
    impossible.push({ path: o.ledger.shown(path), why }),
  );
  return { steps, conflicts: [...conflicts, ...impossible], impossible };
}

/** Why the lower is not what the window covered at this path, or undefined. `now` is what it has there. */
function conflictOf(o: Overlay, path: string, now: Change['lower']): string | undefined {
  const { base, since } = coveredAt(o, path);
  if (base) {
    if (!now) return 'was deleted outside';
    return isUnchanged(now, base) ? undefined : 'was changed outside';
  }
  if (!now) return undefined;
  if (since !== undefined) return isOlderThan(now, since) ? undefined : 'was changed outside';
  return 'was made outside';
}

/**
 * What the window covered at a path: an entry of the lower, or all that stood there at a time (ms) where a directory
 * above it was taken away as a whole, or nothing.
 */
function coveredAt(o: Overlay, path: string): { base?: Base | undefined; since?: number } {
  let dir = o.root;
  let since: number | undefined;
  const names = path.split('/');
  for (const [i, name] of names.entries()) {
    const base = dir.bases?.get(name);
    const kid = dir.kid(name);
    if (i === names.length - 1 && kid) return base ? { base } : { ...(since !== undefined && { since }) };
    if (!(kid instanceof Node) || !kid.isDirectory) return { since: base?.at ?? since ?? 0 };
    if (kid.inUpper && !kid.hasLower) since = base?.at ?? since;
    dir = kid;
  }
  return {};
}

/** For each directory that a deletion which was not chosen is in, that deletion's path. */
function undeletedIn(all: readonly Change[], chosen: readonly Change[]): Map<string, string> {
  const left = new Map<string, string>();
  const paths = new Set(chosen);
  for (const change of all) {
    if (change.kind !== 'deleted' || paths.has(change)) continue;
    for (let [above] = splitPath(change.path); above !== ''; [above] = splitPath(above)) {
      if (left.has(above)) break;
      left.set(above, change.path);
    }
  }
  return left;
}

/** Side files that the lower has of a chosen database, and the window knows nothing of. */
function strangeSides(o: Overlay, chosen: readonly Change[], paths: ReadonlySet<string>): string[] {
  return chosen
    .filter((change) => change.node?.isRegular && isDatabase(o, change))
    .flatMap(({ path }) => SIDE_SUFFIXES.map((suffix) => path + suffix))
    .filter((side) => !paths.has(side) && lowerEntryAt(o, side) !== null && !isCovered(o, side));
}

function isCovered(o: Overlay, path: string): boolean {
  const found = inView(o, path);
  return found instanceof Whiteout || (found instanceof Node && found.inUpper);
}

function stepsFor(
  o: Overlay,
  chosen: readonly Change[],
  against: (path: string, why: string) => void,
  bars: (path: string, why: string) => void,
): PlannedStep[] {
  const id = randomBytes(4).toString('hex');
  const steps: PlannedStep[] = [];
  /** Directories that the lower does not have yet: in which step they are made, and where below its temporary name. */
  const made = new Map<string, { step: PlannedStep; below: string }>();
  const add = (kind: Step['kind'], path: string, change: Change | null): PlannedStep => {
    const [directory, name] = splitPath(path);
    const temporary = `${TEMPORARY}${id}-${steps.length}`;
    const step: PlannedStep = { kind, directory, name, temporary, ino: 0, makings: [], change };
    steps.push(step);
    return step;
  };
  /** Where a directory of the view will be made; undefined where the lower has it. */
  const makeDirectory = (
    path: string,
    change: Change | null,
  ): { step: PlannedStep; below: string } | undefined => {
    const known = made.get(path);
    if (known || path === '') return known;
    const lower = lowerEntryAt(o, path);
    if (lower && (lower.mode & S_IFMT) === S_IFDIR) return undefined;
    const node = inView(o, path);
    if (!(node instanceof Node) || !node.inUpper) {
      bars(path, 'was deleted outside, and the window has no copy of the directory');
      return undefined;
    }
    if (!change) {
      const why = conflictOf(o, path, lower);
      if (why) against(path, why);
    }
    return make(path, node, lower ? 'swap' : 'put', change);
  };
  const make = (path: string, node: Node, kind: 'put' | 'swap', change: Change | null) => {
    const [directory, name] = splitPath(path);
    const above = makeDirectory(directory, null);
    const step = above?.step ?? add(kind, path, change);
    const below = above ? (above.below === '' ? name : `${above.below}/${name}`) : '';
    step.makings.push({ below, path, node });
    const place = { step, below };
    if (node.isDirectory) made.set(path, place);
    return place;
  };
  const whole = new Set(
    chosen.filter(({ kind, type }) => kind === 'deleted' && type === S_IFDIR).map(({ path }) => path),
  );
  const replaced = chosen
    .filter(({ node, lower }) => node && !node.isDirectory && lower && (lower.mode & S_IFMT) === S_IFDIR)
    .map(({ path }) => path);
  for (const path of replaced) whole.add(path);
  const goesWithDirectory = (path: string) => {
    for (let [above] = splitPath(path); above !== ''; [above] = splitPath(above))
      if (whole.has(above)) return true;
    return false;
  };
  for (const change of chosen) {
    const { path, node, lower } = change;
    if (!node) {
      if (!goesWithDirectory(path)) add('remove', path, change);
    } else if (!node.isDirectory) make(path, node, lower ? 'swap' : 'put', change);
    else if (lower && (lower.mode & S_IFMT) === S_IFDIR) {
      const step = add('attributes', path, change);
      step.before = { mode: lower.mode, uid: lower.uid, gid: lower.gid };
      step.makings.push({ below: '', path, node });
    } else makeDirectory(path, change);
  }
  return steps;
}
