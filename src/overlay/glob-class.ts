/**
 * `?` and `[...]` of a pattern as regular expressions over byte strings. git's own matcher is bytewise, so its `?`
 * misses é; here a wildcard takes a character of UTF-8, and a byte that is none.
 */
import { bytesOf } from '../sys/bytes.ts';

/** What is wrong with a pattern and what to write instead; the caller knows where the pattern came from. */
export class GlobError extends Error {}

const MAX_CLASS = 1024;

/** One character of UTF-8, or one byte that is not: `?` in `é?` is a character, and takes a broken byte too. */
export const CHARACTER =
  '(?:[\\xc2-\\xdf][\\x80-\\xbf]|[\\xe0-\\xef][\\x80-\\xbf]{2}|[\\xf0-\\xf4][\\x80-\\xbf]{3}|[^/])';

export function escapeRegExp(text: string): string {
  return text.replace(/[^A-Za-z0-9]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
}

const POSIX_CLASSES: Record<string, string> = {
  alnum: 'A-Za-z0-9',
  alpha: 'A-Za-z',
  blank: ' \\t',
  cntrl: '\\x00-\\x1f\\x7f',
  digit: '0-9',
  graph: '\\x21-\\x7e',
  lower: 'a-z',
  print: '\\x20-\\x7e',
  punct: '!-\\x2f:-@\\x5b-`{-~',
  space: '\\x09-\\x0d ',
  upper: 'A-Z',
  xdigit: 'A-Fa-f0-9',
};

/** The class after a `[` at `start - 1`, by git's rules (`!` or `^` negates, a first `]` is a member, never `/`). */
export function classOf(text: string, start: number, ignoreCase: boolean): { source: string; end: number } {
  const unbalanced = new GlobError('its `[` is never closed: write `\\[` for the character');
  let i = start;
  const negated = text[i] === '!' || text[i] === '^';
  if (negated) i++;
  let ascii = '';
  const wide: string[] = [];
  const take = (): number => {
    if (text[i] === '\\') i++;
    const point = text.codePointAt(i);
    if (point === undefined) throw unbalanced;
    i += point > 0xffff ? 2 : 1;
    return point;
  };
  for (let first = true; first || text[i] !== ']'; first = false) {
    if (i >= text.length) throw unbalanced;
    const posix = /^\[:([a-z]+):\]/.exec(text.slice(i, i + 12));
    if (posix) {
      const name = ignoreCase && (posix[1] === 'upper' || posix[1] === 'lower') ? 'alpha' : posix[1]!;
      if (POSIX_CLASSES[name] === undefined) throw new GlobError(`it names an unknown class [:${name}:]`);
      ascii += POSIX_CLASSES[name];
      i += posix[0].length;
      continue;
    }
    const low = take();
    let high = low;
    if (text[i] === '-' && i + 1 < text.length && text[i + 1] !== ']') {
      i++;
      high = take();
    }
    if (high < low) throw new GlobError('a range in its `[...]` runs backwards: write the lower end first');
    if (low < 0x80) ascii += `\\u{${low.toString(16)}}-\\u{${Math.min(high, 0x7f).toString(16)}}`;
    if (high - low > MAX_CLASS) throw new GlobError('a range in its `[...]` is too wide: write `?`');
    for (let point = Math.max(low, 0x80); point <= high; point++) {
      wide.push(escapeRegExp(bytesOf(String.fromCodePoint(point))));
    }
  }
  const members = [...wide];
  if (ascii !== '') {
    members.push(`[${ascii.replace(/\\u\{([0-9a-f]+)\}/g, (_, hex) => `\\x${hex.padStart(2, '0')}`)}]`);
  }
  const member = `(?!/)(?:${members.join('|')})`;
  return { source: negated ? `(?:(?!${member})${CHARACTER})` : `(?:${member})`, end: i + 1 };
}
