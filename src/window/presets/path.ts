/** Paths of presets, in as much of the shell's notation as they need. All are byte strings. */
import { posix } from 'node:path';
import { displayName } from '../../sys/bytes.ts';
import { Failure } from '../failure.ts';

export interface Surroundings {
  /** Variables as byte strings. */
  env: ReadonlyMap<string, string>;
  /** The person's home directory. */
  home: string;
  /** Where the command starts: what relative values stand on. */
  cwd: string;
}

/**
 * The absolute path that `text` names, or undefined where it takes a variable that is not set. As in the shell's
 * `${NAME:-WORD}`, a variable that is empty counts as not set. A value may begin with `~`: most programs take it so, and a directory
 * named `~` is not what was meant. Throws a Failure, which begins with `source`, for what is not in the notation.
 */
export function expandPath(text: string, around: Surroundings, source: string): string | undefined {
  const words = expand(text, around, source);
  if (words === undefined) return undefined;
  return posix.resolve(around.cwd, fromHome(words, around.home));
}

function expand(text: string, around: Surroundings, source: string): string | undefined {
  let out = '';
  for (let at = 0; at < text.length; ) {
    if (text[at] !== '$') {
      out += text[at++];
      continue;
    }
    const braced = text[at + 1] === '{';
    const name = /^[A-Za-z_][A-Za-z0-9_]*/.exec(text.slice(at + (braced ? 2 : 1)))?.[0];
    if (name === undefined) throw notation(text, source);
    at += name.length + (braced ? 2 : 1);
    let word: string | undefined;
    if (braced) {
      const end = closing(text, at, source);
      const rest = text.slice(at, end);
      if (rest !== '' && !rest.startsWith(':-')) throw notation(text, source);
      if (rest !== '') word = rest.slice(2);
      at = end + 1;
    }
    const value = around.env.get(name) || (word === undefined ? undefined : expand(word, around, source));
    if (value === undefined) return undefined;
    out += fromHome(value, around.home);
  }
  return out;
}

/** Where the brace that was opened before `from` closes. */
function closing(text: string, from: number, source: string): number {
  let depth = 1;
  for (let at = from; at < text.length; at++) {
    if (text[at] === '{') depth++;
    if (text[at] === '}' && --depth === 0) return at;
  }
  throw notation(text, source);
}

function fromHome(path: string, home: string): string {
  return path === '~' || path.startsWith('~/') ? home + path.slice(1) : path;
}

function notation(text: string, source: string): Failure {
  return new Failure(
    `${source}: "${displayName(text)}" is no path of a preset: write ~, $NAME and \${NAME:-WORD}, as in "\${CODEX_HOME:-~/.codex}"`,
  );
}
