/** A window's changes as text in git's form, which pagers and `git apply` know. Byte strings throughout. */
import { styleText } from 'node:util';
import type { Side } from '../overlay/look.ts';
import { sizeText } from '../window/held-lines.ts';
import type { ListedPath } from '../window/looking-methods.ts';
import { hunkLines, isBinary } from './unified-diff.ts';

/** Contents of the two versions of a regular file; null where there is none, or it is too large to be compared. */
export interface Versions {
  lower: Buffer | null;
  upper: Buffer | null;
}

export interface FileDiff {
  /** `text`: hunks say how; `binary`, `large`, `slow`: it differs, and is not shown. */
  content: 'same' | 'text' | 'binary' | 'large' | 'slow';
  /** Of the hunks, without newlines. */
  lines: string[];
}

export const LARGE = 4 << 20;

export function compare(
  { lower, upper }: Pick<ListedPath, 'lower' | 'upper'>,
  { lower: before, upper: after }: Versions,
): FileDiff {
  if ([lower, upper].some((side) => side?.type === 'file' && side.size > LARGE)) {
    return { content: 'large', lines: [] };
  }
  const [a, b] = [before ?? targetOf(lower), after ?? targetOf(upper)];
  if (a.equals(b)) return { content: 'same', lines: [] };
  if (isBinary(a) || isBinary(b)) return { content: 'binary', lines: [] };
  const lines = hunkLines(a, b);
  return lines ? { content: 'text', lines } : { content: 'slow', lines: [] };
}

/** A symlink's content is where it leads, as git has it. */
function targetOf(side: Side | null): Buffer {
  return Buffer.from(side?.target ?? '', 'latin1');
}

/** All lines of one path; none where nothing differs that can be told. */
export function diffLines(path: ListedPath, diff: FileDiff): string[] {
  if (isDirectory(path)) return directoryLines(path);
  const { lower, upper, renamedFromPath } = path;
  const before = quote(`a/${renamedFromPath ?? path.path}`);
  const after = quote(`b/${path.path}`);
  const header = headerLines(path);
  if (header.length === 0 && diff.content === 'same') return [];
  const out = [`diff --git ${before} ${after}`, ...header];
  const [from, to] = [lower ? before : '/dev/null', upper ? after : '/dev/null'];
  if (diff.content === 'same') return out;
  if (diff.content === 'text') return [...out, `--- ${from}`, `+++ ${to}`, ...diff.lines];
  const sizes = `${lower ? sizeText(lower.size) : 'nothing'}, ${upper ? sizeText(upper.size) : 'nothing'}`;
  const why = { binary: 'Binary files', large: 'Large files', slow: 'Very different files' }[diff.content];
  return [...out, `${why} ${from} and ${to} differ (${sizes})`];
}

function isDirectory({ lower, upper }: ListedPath): boolean {
  return (upper ?? lower)?.type === 'directory';
}

/** git knows no directories: a line that `git apply` passes over. */
function directoryLines({ kind, path, renamedFromPath, lower, upper }: ListedPath): string[] {
  const name = quote(path);
  if (kind === 'deleted') return [`Directory ${name} deleted`];
  const from = renamedFromPath === undefined ? '' : `, renamed from ${quote(renamedFromPath)}`;
  const mode = (upper!.mode & 0o7777).toString(8);
  if (kind === 'created') return [`Directory ${name} created${from} (mode ${mode})`];
  if (lower!.type !== 'directory') return [`Directory ${name} in place of a ${lower!.type} (mode ${mode})`];
  return [`Directory ${name} mode ${lower!.mode.toString(8)} -> ${mode}`];
}

function headerLines({ kind, path, renamedFromPath, lower, upper }: ListedPath): string[] {
  const out: string[] = [];
  if (kind === 'deleted') out.push(`deleted file mode ${modeOf(lower!)}`);
  else if (!lower && renamedFromPath === undefined) out.push(`new file mode ${modeOf(upper!)}`);
  else if (lower && upper && modeOf(lower) !== modeOf(upper)) {
    out.push(`old mode ${modeOf(lower)}`, `new mode ${modeOf(upper)}`);
  }
  if (renamedFromPath !== undefined) {
    out.push(`rename from ${quote(renamedFromPath)}`, `rename to ${quote(path)}`);
  }
  return out;
}

const TYPE_BITS = { file: 0o100000, directory: 0o040000, symlink: 0o120000, other: 0 } as const;

function modeOf({ type, mode }: Side): string {
  const shown = type === 'symlink' ? 0 : mode;
  return (TYPE_BITS[type] | shown).toString(8).padStart(6, '0');
}

/** As git writes a name that would confuse whoever reads the line. */
function quote(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is quoted here
  if (!/[\x00-\x1f"\\\x7f]/.test(name)) return name;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is quoted here
  const inner = name.replace(/[\x00-\x1f"\\\x7f]/g, (c) => {
    if (c === '"' || c === '\\') return `\\${c}`;
    if (c === '\n') return '\\n';
    if (c === '\t') return '\\t';
    return `\\${c.charCodeAt(0).toString(8).padStart(3, '0')}`;
  });
  return `"${inner}"`;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is shown otherwise
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f]/g;

/** For a terminal: colours, and nothing in a file's content can steer it. */
export function forTerminal(lines: readonly string[], colours: boolean): string[] {
  let inHunk = false;
  return lines.map((line) => {
    if (/^(diff --git|Directory) /.test(line)) inHunk = false;
    else if (line.startsWith('@@ ')) inHunk = true;
    const text = line.replace(CONTROL, (c) => `^${String.fromCharCode(c.charCodeAt(0) ^ 64)}`);
    return colours ? coloured(text, inHunk) : text;
  });
}

function coloured(line: string, inHunk: boolean): string {
  if (!inHunk) return styleText('bold', line, { validateStream: false });
  if (line.startsWith('@@ ')) return styleText('cyan', line, { validateStream: false });
  if (line.startsWith('+')) return styleText('green', line, { validateStream: false });
  return line.startsWith('-') ? styleText('red', line, { validateStream: false }) : line;
}
