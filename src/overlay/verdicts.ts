/**
 * Verdicts on paths, made level by level: the state of a directory (the last rule that matched it or an ancestor,
 * and how far each pattern has come) and a name in it give the verdict, and the state below. Rules are immutable,
 * so the states of directories are kept without expiry.
 */
import {
  escapeRegExp,
  foldCase,
  GLOBSTAR,
  type Glob,
  isArmed,
  lastSegment,
  nextMask,
  startMask,
} from './glob.ts';
import { isHeldName } from './held-names.ts';
import type { Rules } from './rules.ts';
import {
  bareNames,
  DATABASE_EXTENSION,
  databaseOf,
  isDatabaseName,
  SIDE_SUFFIXES,
  STEM_ENDINGS,
  stemOf,
} from './siblings.ts';

export interface Rule {
  /** Position among the lines: the greatest that matches wins. Alternatives of one line share it. */
  order: number;
  protect: boolean;
  glob: Glob;
  /** Its text names `.git`, so the guard does not stop it. */
  namesGit: boolean;
}

interface PlacedRule extends Rule {
  /** For a name written out, the names that replace its extension: `MEMORY.tmp` for `MEMORY.md`. */
  stemNames: readonly string[];
}

interface State {
  /** Decides for everything here unless a later rule matches below. */
  winner: Rule | undefined;
  /** Inside a `.git` that no protected directory holds. */
  guarded: boolean;
  /** For each rule, how far its pattern has come (glob.ts). */
  masks: readonly number[];
}

/** Directories whose states are kept: names come directory by directory. */
const KEPT_STATES = 4096;

export class Verdicts implements Rules {
  /** Last line first. */
  private readonly rules: readonly PlacedRule[];
  private readonly guard: boolean;
  private readonly ignoreCase: boolean;
  private readonly siblings: boolean;
  /** A path in which this finds nothing has no name that a protecting rule could match. */
  private readonly possible: RegExp;
  /** No file rule that names its directory is about a file further down: counted in slashes, -1 where there is none. */
  private readonly anchoredDepth: number;
  private readonly lastProtection: number;
  private readonly lastExemption: number;
  private readonly root: State;
  private readonly states = new Map<string, State>();

  /** `rules` in the order of their lines; `guard` turns the default `!.git/` on. */
  constructor(rules: readonly Rule[], guard: boolean, ignoreCase: boolean, siblings = true) {
    this.siblings = siblings;
    this.rules = rules.map((rule) => ({ ...rule, stemNames: stemNamesOf(rule.glob) })).reverse();
    this.guard = guard;
    this.ignoreCase = ignoreCase;
    this.possible = possibleIn(this.rules.filter((rule) => rule.protect));
    this.anchoredDepth = Math.max(-1, ...this.rules.filter(isAnchoredFile).map(({ glob }) => depthOf(glob)));
    this.lastProtection = orderOf(this.rules.find((rule) => rule.protect));
    this.lastExemption = orderOf(this.rules.find((rule) => !rule.protect));
    this.root = { winner: undefined, guarded: false, masks: this.rules.map((rule) => startMask(rule.glob)) };
  }

  protects(path: string): boolean {
    const folded = this.ignoreCase ? foldCase(path) : path;
    if (folded === '' || !this.possible.test(folded)) return false;
    const slash = folded.lastIndexOf('/');
    const directory = slash === -1 ? this.root : this.stateOf(folded.slice(0, slash));
    return this.winnerAt(directory, folded.slice(slash + 1))?.protect ?? false;
  }

  holds(path: string): boolean {
    if (isDeeper(path, this.anchoredDepth)) return false;
    const slash = path.lastIndexOf('/');
    // Not folded: random characters are recognised by their capitals.
    if (!isHeldName(path.slice(slash + 1))) return false;
    const parent = slash === -1 ? '' : path.slice(0, slash);
    return (
      this.hasAnchoredFile(this.stateOf(this.ignoreCase ? foldCase(parent) : parent)) && !this.protects(path)
    );
  }

  moveMayChangeClass(from: string, to: string): boolean {
    const here = this.stateOf(this.ignoreCase ? foldCase(from) : from);
    const there = this.stateOf(this.ignoreCase ? foldCase(to) : to);
    if ((here.winner?.protect ?? false) !== (there.winner?.protect ?? false)) return true;
    if (this.isSettled(here.winner) && this.isSettled(there.winner)) return false;
    if (here.guarded !== there.guarded || orderOf(here.winner) !== orderOf(there.winner)) return true;
    return this.rules.some((rule, i) => later(here.winner, rule) && here.masks[i] !== there.masks[i]);
  }

  private stateOf(directory: string): State {
    if (directory === '') return this.root;
    const kept = this.states.get(directory);
    if (kept !== undefined) return kept;
    const slash = directory.lastIndexOf('/');
    const parent = slash === -1 ? this.root : this.stateOf(directory.slice(0, slash));
    const name = directory.slice(slash + 1);
    const state = {
      winner: this.winnerAt(parent, name),
      guarded: this.isGuarded(parent, name),
      masks: this.rules.map((rule, i) => nextMask(rule.glob, parent.masks[i]!, name)),
    };
    if (this.states.size >= KEPT_STATES) this.states.clear();
    this.states.set(directory, state);
    return state;
  }

  private winnerAt(directory: State, name: string): Rule | undefined {
    const { winner } = directory;
    if (this.isSettled(winner)) return winner;
    const own = this.judge(directory, name, this.isGuarded(directory, name));
    return later(winner, own) ? own : winner;
  }

  private isGuarded(directory: State, name: string): boolean {
    return directory.guarded || (this.guard && name === '.git' && !directory.winner?.protect);
  }

  /** No later rule has the other class, so what this rule decides stands for all below too. */
  private isSettled(winner: Rule | undefined): boolean {
    return orderOf(winner) >= (winner?.protect ? this.lastExemption : this.lastProtection);
  }

  /** The last rule that matches the name itself or what it may be derived from; ancestors are not asked. */
  private judge(directory: State, name: string, guarded: boolean): Rule | undefined {
    const database = databaseOf(name);
    if (database !== undefined) return this.judge(directory, database, guarded);
    const last = (asked: string, asSibling: boolean) =>
      this.rules.find((_, i) => this.matches(i, directory, asked, asSibling, guarded));

    let found = last(name, false);
    if (found !== undefined && this.isSettled(found)) return found;
    if (isDatabaseName(name)) {
      for (const suffix of SIDE_SUFFIXES) {
        const side = last(name + suffix, false);
        if (side?.protect && later(found, side)) found = side;
      }
    }
    if (found !== undefined && this.isSettled(found)) return found;
    if (!this.siblings) return found;
    if (
      !this.rules.some((rule, i) => mayHaveSibling(rule, name) && isArmed(rule.glob, directory.masks[i]!))
    ) {
      return found;
    }
    for (const bare of bareNames(name)) {
      const next = last(bare, true);
      if (!later(found, next)) continue;
      // `/notes.bak` then `!/notes`: the exemption is not about the file that another rule names.
      if (found?.protect && !next?.protect && !this.lineMatches(found.order, directory, bare, guarded))
        continue;
      found = next;
      if (this.isSettled(found)) break;
    }
    return found;
  }

  private lineMatches(order: number, directory: State, name: string, guarded: boolean): boolean {
    return this.rules.some(
      (rule, i) => rule.order === order && this.matches(i, directory, name, true, guarded),
    );
  }

  private matches(i: number, directory: State, name: string, asSibling: boolean, guarded: boolean): boolean {
    const rule = this.rules[i]!;
    if (asSibling && rule.glob.directory) return false;
    if (guarded && rule.protect && !rule.namesGit) return false;
    if (!isArmed(rule.glob, directory.masks[i]!)) return false;
    return lastSegment(rule.glob).matches(name) || (this.siblings && rule.stemNames.includes(name));
  }

  /** Whether a file rule that names its directory has it here, and protects something in it. */
  private hasAnchoredFile(directory: State): boolean {
    return this.rules.some((rule, i) => {
      if (!isAnchoredFile(rule)) return false;
      if (!isArmed(rule.glob, directory.masks[i]!) || (directory.guarded && !rule.namesGit)) return false;
      const { literal } = lastSegment(rule.glob);
      return literal === undefined || this.winnerAt(directory, literal)?.protect === true;
    });
  }
}

function orderOf(rule: Rule | undefined): number {
  return rule?.order ?? -1;
}

function later(current: Rule | undefined, next: Rule | undefined): boolean {
  return next !== undefined && next.order > orderOf(current);
}

/** Siblings contain the name they are derived from (siblings.ts), and so its fixed part. */
function mayHaveSibling(rule: PlacedRule, name: string): boolean {
  if (rule.glob.directory) return false;
  return name.includes(lastSegment(rule.glob).chunk) || rule.stemNames.some((stem) => name.includes(stem));
}

/** A file rule that protects, and names its directory. */
function isAnchoredFile({ protect, glob }: Rule): boolean {
  return protect && !glob.directory && !isAnyDepth(glob);
}

/** How many slashes a path has that the pattern matches, at the most. */
function depthOf({ steps }: Glob): number {
  return steps.includes(GLOBSTAR) ? Number.POSITIVE_INFINITY : steps.length - 1;
}

/** Whether a path has more slashes than that. */
function isDeeper(path: string, depth: number): boolean {
  let slashes = 0;
  for (let at = path.indexOf('/'); at >= 0; at = path.indexOf('/', at + 1)) slashes++;
  return slashes > depth;
}

/** A pattern without a slash: its directory says nothing. */
function isAnyDepth(glob: Glob): boolean {
  return glob.steps.length === 2 && glob.steps[0] === GLOBSTAR;
}

function stemNamesOf(glob: Glob): string[] {
  const stem = glob.directory ? undefined : stemOf(lastSegment(glob).literal ?? '');
  return stem === undefined ? [] : STEM_ENDINGS.map((ending) => stem + ending);
}

/**
 * For the same reason a path without the longest fixed part of any pattern's last
 * segment is unprotected: one regular expression answers for almost every path of a workspace.
 */
function possibleIn(rules: readonly PlacedRule[]): RegExp {
  const parts = new Set<string>();
  for (const { glob, stemNames } of rules) {
    const { chunk, literal } = lastSegment(glob);
    if (glob.directory && glob.steps.length === 1 && literal !== undefined) {
      parts.add(`^${escapeRegExp(literal)}(?:/|$)`);
      continue;
    }
    parts.add(escapeRegExp(chunk));
    for (const name of stemNames) parts.add(escapeRegExp(name));
    // `state.db-*` protects state.db, in which the chunk does not occur.
    if (chunk.includes('-') || SIDE_SUFFIXES.some((suffix) => suffix.includes(chunk))) {
      parts.add(DATABASE_EXTENSION);
    }
  }
  return parts.size === 0 ? /$^/ : new RegExp([...parts].join('|'), 'is');
}
