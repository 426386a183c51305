/**
 * Which paths are protected: gitignore lines, evaluated relative to the root. Paths are byte strings.
 *
 * Where this is not git:
 * - A pattern protects the name it matches and everything below, whatever type stands there. A trailing slash does
 *   not look at the type, because a rule must give one answer before and after a directory is deleted and a file
 *   made in its place. `X/` and `X/**` are *directory rules*; every other pattern is a *file rule* and protects
 *   its name's siblings in the same directory too (siblings.ts).
 * - An exemption reaches into protected directories, and to the siblings of the file it exempts.
 * - The default `!.git/` is a guard, not a line: inside `.git` only the rules that name `.git` protect, wherever
 *   they stand, so that `--protect '*.md'` cannot tear a repository's refs. It ends where a directory above `.git`
 *   is protected: `memory/.git/` is memory.
 * - SQLite's `-wal -shm -journal` have the class of a database with a database's extension, and it theirs.
 * - `{a,b}` is a list; `(a|b)`, extglobs with `|` and `{1..3}` are refused, since they would silently match nothing.
 */
import { GlobError, parseGlobs } from './glob.ts';
import { type Rule, Verdicts } from './verdicts.ts';

export interface RuleLine {
  /** Ordinary text, as typed; a leading `!` exempts, whatever `exempt` says. */
  pattern: string;
  exempt: boolean;
  /** Where it came from, for messages: 'default', '--protect', '.forgetrc'. */
  source: string;
}

const GIT_GUARD: RuleLine = { pattern: '.git/', exempt: true, source: 'default' };

export const DEFAULT_RULES: readonly RuleLine[] = [
  { pattern: '/memory/', exempt: false, source: 'default' },
  { pattern: '*.jsonl', exempt: false, source: 'default' },
  { pattern: 'DELIVERABLES.md', exempt: false, source: 'default' },
  { pattern: '/MEMORY.md', exempt: false, source: 'default' },
  GIT_GUARD,
];

/** A pattern that cannot be a rule. The message names it, its source, and what to write instead. */
export class RuleError extends Error {
  readonly pattern: string;
  readonly source: string;

  constructor(line: RuleLine, advice: string) {
    super(`${line.source}: the pattern ${JSON.stringify(line.pattern)} cannot be used: ${advice}.`);
    this.name = 'RuleError';
    this.pattern = line.pattern;
    this.source = line.source;
  }
}

/** All paths are byte strings relative to the root, without a leading or trailing slash. Nothing here throws. */
export interface Rules {
  /**
   * Whether a write to `path` must not reach the lower; '' is the root and false. Measured with the default rules
   * (Node 20, 2 cores): 0.05-0.15 us for an ordinary path, 0.3 us below `/memory/`, 1 us for `logs/x.jsonl`, and
   * 15-20 us for `x.jsonl.<pid>.<uuid>.tmp`, whose decorations come off one by one.
   */
  protects(path: string): boolean;
  /** Whether a *file* made at `path` is to be held: a temporary name in the directory of an anchored file rule. */
  holds(path: string): boolean;
  /**
   * Whether some descendant of a directory could have another verdict at `to` than at `from`. May say true where
   * none has, never false where one could.
   */
  moveMayChangeClass(from: string, to: string): boolean;
}

/**
 * Without `siblings` a rule is for the names it matches, and not for what is derived from them, but for SQLite's side files.
 *
 * Throws RuleError for the first line that cannot be a rule. Comments and blank lines of files are skipped.
 */
export function compileRules(
  lines: readonly RuleLine[],
  options: { ignoreCase?: boolean; siblings?: boolean } = {},
): Rules {
  const ignoreCase = options.ignoreCase ?? false;
  const guard = lines.some(isGitGuard);
  const rules: Rule[] = [];
  lines.forEach((line, order) => {
    const normal = isGitGuard(line) ? undefined : normalise(line);
    if (normal === undefined) return;
    const namesGit = (ignoreCase ? normal.text.toLowerCase() : normal.text).includes('.git');
    try {
      for (const glob of parseGlobs(normal.text, ignoreCase)) {
        rules.push({ order, protect: !normal.exempt, glob, namesGit });
      }
    } catch (error) {
      if (error instanceof GlobError) throw new RuleError(line, error.message);
      throw error;
    }
  });
  return new Verdicts(rules, guard, ignoreCase, options.siblings ?? true);
}

function isGitGuard(line: RuleLine): boolean {
  return line.source === GIT_GUARD.source && line.exempt && line.pattern === GIT_GUARD.pattern;
}

function normalise(line: RuleLine): { text: string; exempt: boolean } | undefined {
  const typed = line.source.startsWith('--');
  // A file with CRLF ends must not make patterns that match nothing.
  let text = line.pattern.replace(/\r$/, '');
  text = text.replace(/(\\*) +$/, (spaces, slashes: string) =>
    slashes.length % 2 === 1 ? spaces.slice(0, slashes.length + 1) : slashes,
  );
  if (text === '') {
    if (typed) throw new RuleError(line, 'it is empty: write a path or a glob');
    return undefined;
  }
  if (text.startsWith('#')) {
    if (typed) throw new RuleError(line, 'it would be a comment: write `\\#` for a name that starts with #');
    return undefined;
  }
  const exempt = line.exempt || text.startsWith('!');
  if (text.startsWith('!')) text = text.slice(1);
  if (/^~(?:\/|$)/.test(text)) {
    throw new RuleError(line, '`~` is not expanded: write a path relative to the root, such as /memory/');
  }
  const absolute = /^\/(?:home|root|Users)\/[^/]/.exec(text);
  if (absolute) {
    throw new RuleError(
      line,
      'it looks like an absolute path, and a leading slash means the root of the window: ' +
        'write the path relative to that, such as /memory/',
    );
  }
  return { text, exempt };
}
