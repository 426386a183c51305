/**
 * The rules of one root that covers several places: a home of an agent below the workspace, or the workspace below a
 * directory that is covered for a file in it. Each group speaks of paths relative to its own base, and what any of them
 * protects is protected.
 */
import type { Rules } from './rules.ts';

export interface RuleGroup {
  /** Relative to the root; '' is the root itself. */
  base: string;
  rules: Rules;
}

export function joinRules(groups: readonly RuleGroup[]): Rules {
  const [first] = groups;
  return groups.length === 1 && first!.base === '' ? first!.rules : new RuleGroups(groups);
}

class RuleGroups implements Rules {
  private readonly groups: readonly RuleGroup[];

  constructor(groups: readonly RuleGroup[]) {
    this.groups = groups;
  }

  protects(path: string): boolean {
    return this.groups.some(({ base, rules }) => {
      const inner = within(path, base);
      return inner !== undefined && rules.protects(inner);
    });
  }

  holds(path: string): boolean {
    if (this.protects(path)) return false;
    return this.groups.some(({ base, rules }) => {
      const inner = within(path, base);
      return inner !== undefined && inner !== '' && rules.holds(inner);
    });
  }

  moveMayChangeClass(from: string, to: string): boolean {
    return this.groups.some(({ base, rules }) => {
      const here = within(from, base);
      const there = within(to, base);
      // What is moved holds the base, or comes to.
      if (base !== '' && (within(base, from) !== undefined || within(base, to) !== undefined)) return true;
      if (here === undefined && there === undefined) return false;
      return here === undefined || there === undefined || rules.moveMayChangeClass(here, there);
    });
  }
}

/** `path` relative to `base`, or undefined for one that is not the base or below it. */
function within(path: string, base: string): string | undefined {
  if (base === '') return path;
  if (!path.startsWith(base)) return undefined;
  if (path.length === base.length) return '';
  return path[base.length] === '/' ? path.slice(base.length + 1) : undefined;
}
