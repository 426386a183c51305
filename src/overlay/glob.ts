/**
 * One gitignore line, parsed into segments that match names (byte strings) one directory level at a time.
 *
 * A pattern is `Step`s to walk along a path: a Segment takes one name, GLOBSTAR takes any number of them. How far
 * a directory has come is a bit mask (bit i: the first i steps are behind us), so one mechanism answers whether a
 * name matches and whether anything below a directory still could.
 *
 * micromatch is given only what it and gitignore agree on: letters, digits and stars. Everything else (`?`,
 * classes, escapes, characters special to micromatch alone) stands in as a private-use character, which is
 * replaced in the regular expression that comes back. So extglobs, quotes or `\d` cannot mean something here that
 * they do not mean to git.
 */
import micromatch from 'micromatch';
import { bytesOf } from '../sys/bytes.ts';
import { CHARACTER, classOf, escapeRegExp, GlobError } from './glob-class.ts';

export { escapeRegExp, GlobError };

export const GLOBSTAR = '**';
export type Step = Segment | typeof GLOBSTAR;

export interface Segment {
  matches(name: string): boolean;
  /** The one name this matches, when it has no wildcard. */
  literal: string | undefined;
  /** A byte string that occurs in every name this matches; '' when there is none. */
  chunk: string;
}

export interface Glob {
  /** The last step is always a Segment. */
  steps: readonly Step[];
  /** Ended in `/` or `/**`: protects by directory, has no siblings. */
  directory: boolean;
}

/** Masks are 32-bit integers. */
const MAX_STEPS = 30;
const MAX_ALTERNATIVES = 256;
const MICROMATCH = {
  dot: true,
  nobrace: true,
  noextglob: true,
  nonegate: true,
  fastpaths: false,
  strictSlashes: true,
} as const;

/** Names as they are compared under `ignoreCase`. The `i` flag would fold bytes, and tear UTF-8: É is c3 89, é c3 a9. */
export function foldCase(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the range is ASCII
  if (/^[\x00-\x7f]*$/.test(name)) return name.toLowerCase();
  const bytes = Buffer.from(name, 'latin1');
  const text = bytes.toString('utf8');
  if (Buffer.from(text, 'utf8').equals(bytes)) return bytesOf(text.toLowerCase());
  return name.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/**
 * The globs of one pattern (ordinary text, without a leading `!`): several if it has a `{a,b}` list, which
 * gitignore lacks but people write, and which would otherwise silently protect nothing.
 * Throws GlobError.
 */
export function parseGlobs(pattern: string, ignoreCase: boolean): Glob[] {
  if (pattern.includes('\0')) throw new GlobError('a name cannot hold a NUL byte: remove it');
  const folded = ignoreCase ? pattern.toLowerCase() : pattern;
  return expandLists(folded).map((text) => parseGlob(text, ignoreCase));
}

/** The mask of the root, or of a directory after `mask` went through it by `name`. */
export function startMask(glob: Glob): number {
  return pastGlobstars(glob.steps, 1);
}

export function nextMask(glob: Glob, mask: number, name: string): number {
  const { steps } = glob;
  let next = 0;
  // The last step is not taken: a name that matches it is the rule's business, not a way further down.
  for (let i = 0; i < steps.length - 1; i++) {
    if ((mask & (1 << i)) === 0) continue;
    const step = steps[i]!;
    if (step === GLOBSTAR) next |= 1 << i;
    else if (step.matches(name)) next |= 1 << (i + 1);
  }
  return pastGlobstars(steps, next);
}

/** Whether a name in the directory with this mask is judged by the glob's last segment. */
export function isArmed(glob: Glob, mask: number): boolean {
  return (mask & (1 << (glob.steps.length - 1))) !== 0;
}

export function lastSegment(glob: Glob): Segment {
  return glob.steps[glob.steps.length - 1] as Segment;
}

function pastGlobstars(steps: readonly Step[], mask: number): number {
  let out = mask;
  for (let i = 0; i < steps.length; i++) {
    if ((out & (1 << i)) !== 0 && steps[i] === GLOBSTAR) out |= 1 << (i + 1);
  }
  return out;
}

function parseGlob(text: string, ignoreCase: boolean): Glob {
  const { parts, directory } = splitPattern(text, ignoreCase);
  const slash = parts.length > 1;
  const steps: Step[] = [];
  for (const part of parts) {
    const first = part[0];
    if (part.length === 0 || (part.length === 1 && first?.byte === '.')) continue;
    if (part.length === 2 && part.every((t) => t.byte === '.')) {
      throw new GlobError('`..` leads out of the root: write the path relative to the root');
    }
    if (part.length > 1 && part.every((t) => t.star)) {
      if (steps.at(-1) !== GLOBSTAR) steps.push(GLOBSTAR);
    } else steps.push(segmentOf(part));
  }
  if (steps.length === 0) {
    throw new GlobError('it names no path: write a name, or `*` for everything');
  }
  if (steps.at(-1) === GLOBSTAR) {
    // `X/**` is `X/`; what is left of `**` alone is everything.
    steps.pop();
    return { steps: steps.length > 0 ? limited(steps) : [EVERYTHING], directory: true };
  }
  return { steps: limited(slash ? steps : [GLOBSTAR, ...steps]), directory };
}

function limited(steps: Step[]): Step[] {
  if (steps.length > MAX_STEPS)
    throw new GlobError(`it has more than ${MAX_STEPS} parts: protect a directory`);
  return steps;
}

const EVERYTHING: Segment = { matches: () => true, literal: undefined, chunk: '' };

/** One element of a segment: a literal byte, a star, or the source of a regular expression for one character. */
interface Token {
  byte?: string;
  star?: true;
  source?: string;
}

function segmentOf(tokens: readonly Token[]): Segment {
  const runs = [''];
  for (const token of tokens) {
    if (token.byte === undefined) runs.push('');
    else runs[runs.length - 1] += token.byte;
  }
  const chunk = runs.reduce((longest, run) => (run.length > longest.length ? run : longest));
  if (runs.length === 1) return { matches: (name) => name === chunk, literal: chunk, chunk };

  const standIns: string[] = [];
  const masked = tokens.map((token, i) => {
    if (token.star) return tokens[i - 1]?.star ? '' : '*';
    if (token.byte !== undefined && /[A-Za-z0-9]/.test(token.byte)) return token.byte;
    standIns.push(token.source ?? escapeRegExp(token.byte!));
    return String.fromCharCode(0xe000 + standIns.length - 1);
  });
  const source = (micromatch.makeRe(masked.join(''), MICROMATCH) as RegExp).source.replace(
    /[\ue000-\uf8ff]/g,
    (c) => standIns[c.charCodeAt(0) - 0xe000]!,
  );
  // `s`: without it a newline in a name matches no star.
  const matcher = new RegExp(source, 's');
  return { matches: (name) => matcher.test(name), literal: undefined, chunk };
}

/** The segments between slashes. `slash` in gitignore's sense (not a trailing one) shows as more than one part. */
function splitPattern(text: string, ignoreCase: boolean): { parts: Token[][]; directory: boolean } {
  const parts: Token[][] = [[]];
  for (let i = 0; i < text.length; ) {
    const char = String.fromCodePoint(text.codePointAt(i)!);
    const part = parts[parts.length - 1]!;
    i += char.length;
    if (char === '/') parts.push([]);
    else if (char === '*') part.push({ star: true });
    else if (char === '?') part.push({ source: CHARACTER });
    else if (char === '[') {
      const { source, end } = classOf(text, i, ignoreCase);
      part.push({ source });
      i = end;
    } else {
      let literal = char;
      if (char === '\\') {
        if (i >= text.length)
          throw new GlobError('it ends in a lone backslash: write `\\\\` for the character');
        literal = String.fromCodePoint(text.codePointAt(i)!);
        i += literal.length;
      }
      if (literal === '/') parts.push([]);
      else for (const byte of bytesOf(literal)) part.push({ byte });
    }
  }
  let directory = false;
  while (parts.length > 1 && parts[parts.length - 1]!.length === 0) {
    parts.pop();
    directory = true;
  }
  return { parts, directory };
}

/** `{a,b}` lists written out, nested ones too. Braces without a comma are the characters themselves, as in git. */
function expandLists(text: string): string[] {
  const done: string[] = [];
  const open = [text];
  while (open.length > 0) {
    const current = open.pop()!;
    const list = firstList(current);
    if (list === undefined) done.push(current);
    else for (const item of list.items) open.push(list.before + item + list.after);
    if (done.length + open.length > MAX_ALTERNATIVES) {
      throw new GlobError(`its braces make more than ${MAX_ALTERNATIVES} patterns: use a wildcard`);
    }
  }
  return done;
}

/** The first outermost list with a comma; also the place where constructs that only look like gitignore are refused. */
function firstList(text: string): { before: string; items: string[]; after: string } | undefined {
  const starts: { at: number; commas: number[] }[] = [];
  const groups: { pipe: boolean }[] = [];
  let found: { at: number; commas: number[]; end: number } | undefined;
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (char === '\\') i++;
    else if (char === '[') i = classOf(text, i + 1, false).end - 1;
    else if (char === '(') groups.push({ pipe: false });
    else if (char === '|' && groups.length > 0) groups[groups.length - 1]!.pipe = true;
    else if (char === ')' && groups.pop()?.pipe) {
      throw new GlobError('gitignore has no `(a|b)`: write one pattern for each, or `\\(` for the character');
    } else if (char === '{') starts.push({ at: i, commas: [] });
    else if (char === ',' && starts.length > 0) starts[starts.length - 1]!.commas.push(i);
    else if (char === '}' && starts.length > 0) {
      const start = starts.pop()!;
      if (/^[^,{}]+\.\.[^,{}]+$/.test(text.slice(start.at + 1, i))) {
        throw new GlobError('gitignore has no `{a..b}`: write `[a-b]`, or `\\{` for the character');
      }
      if (start.commas.length > 0 && (found === undefined || start.at < found.at))
        found = { ...start, end: i };
    }
  }
  if (found === undefined) return undefined;
  const edges = [found.at, ...found.commas, found.end];
  return {
    before: text.slice(0, found.at),
    items: edges.slice(1).map((edge, i) => text.slice(edges[i]! + 1, edge)),
    after: text.slice(found.end + 1),
  };
}
