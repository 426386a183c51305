/** What a look at the close gives, for the report (docs/report.md). No content, and no hash or object id of it. */
import type { Program } from '../../overlay/ledger.ts';

export type EscapeKind =
  /** Protected text stands in an unprotected file that was written in the window. */
  | 'text'
  /** The same in an object that the window brought into a git repository. */
  | 'git'
  /** A protected symlink that was made in the window leads to where writes are real. */
  | 'symlink'
  /** A protected file of the lower is open for writing, by a descriptor that does not go through the window. */
  | 'descriptor'
  /** A protected file of the lower that the window has its own version of was changed by another way meanwhile. */
  | 'changed'
  /** The lower can be written by another path. That it was is not known: no reason for `--fail-on leak`. */
  | 'mount';

export interface Escape {
  kind: EscapeKind;
  /** Where: a file, the repository's directory, the symlink, the mount point. Made readable. */
  path: string;
  /** In words, where the path alone does not tell. */
  what?: string;
  /** The protected file that it is of. */
  protected?: string;
  /** Words that both have, in the same order, and how much that is of what is new in the protected file. */
  words?: number;
  percent?: number;
  program?: Program;
}

export interface EscapeSearch {
  escapes: Escape[];
  /** What was looked through, and in what time. */
  searched: { files: number; bytes: number; milliseconds: number };
  /** What was not, and why. */
  unsearched: { why: string; count: number }[];
}

/** Nothing was caught: nothing can have escaped. */
export const NOT_SEARCHED: EscapeSearch = {
  escapes: [],
  searched: { files: 0, bytes: 0, milliseconds: 0 },
  unsearched: [],
};

export function isLeak({ kind }: Escape): boolean {
  return kind !== 'mount';
}

/** One line for the person. */
export function describeEscape(found: Escape): string {
  const { kind, path, what, words, percent, program } = found;
  const of = found.protected;
  const by = program ? `  (${program.command} ${program.pid})` : '';
  switch (kind) {
    case 'text':
    case 'git': {
      const where = what === undefined ? path : `${path}: ${what}`;
      return `forget: escaped: ${where} has ${words} words of ${of}, ${percent} % of what is new there${by}`;
    }
    case 'symlink':
      return `forget: escaped: ${path} leads to ${what}, where writes are real${by}`;
    case 'descriptor':
      return `forget: escaped: ${path} was open for writing, past the window${by}`;
    case 'changed':
      return `forget: escaped: the real ${path} was changed meanwhile, not through the window`;
    case 'mount':
      return `forget: the same files can be written past the window at ${path}`;
  }
}
