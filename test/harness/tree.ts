/**
 * What a directory tree holds, as data, and how two of them differ. Names are byte strings (latin1).
 * Two questions are asked of trees: is it *the same tree as before* (identity: inode numbers and times too), and
 * is it *equal to another copy* (content, names, modes, owners, links).
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export interface TreeEntry {
  path: string;
  type: 'file' | 'directory' | 'symlink' | 'fifo' | 'socket' | 'character' | 'block';
  mode: number;
  uid: number;
  gid: number;
  size: number;
  nlink: number;
  ino: string;
  /** Nanoseconds since 1970, as decimal text. */
  mtime: string;
  ctime: string;
  rdev: number;
  blocks: number;
  xattrs: Record<string, string>;
  /** SHA-256 of a regular file's bytes. */
  content: string;
  target: string;
}

export type Tree = Map<string, TreeEntry>;

export const snapshotProgram = fileURLToPath(new URL('./snapshot.py', import.meta.url));

/**
 * The command that prints a whole tree for `parseSnapshot`: for a tree that only a window's command sees. An ordinary user
 * takes the program by `readableFor`.
 */
export function snapshotCommand(top: string): string[] {
  return ['python3', snapshotProgram, top];
}

export function parseSnapshot(text: string): Tree {
  const entries = JSON.parse(text) as TreeEntry[];
  return new Map(entries.map((entry) => [entry.path, entry]));
}

/** Reads a whole tree; '' is its top. */
export function snapshot(top: string): Tree {
  const [python, ...rest] = snapshotCommand(top);
  return parseSnapshot(execFileSync(python!, rest, { encoding: 'latin1', maxBuffer: 1 << 28 }));
}

/** The part of a tree whose paths satisfy `wanted`. */
export function part(tree: Tree, wanted: (path: string) => boolean): Tree {
  return new Map([...tree].filter(([path]) => wanted(path)));
}

type Field = Exclude<keyof TreeEntry, 'path'>;

const EQUALITY: Field[] = [
  'type',
  'mode',
  'uid',
  'gid',
  'size',
  'content',
  'target',
  'rdev',
  'xattrs',
  'nlink',
];
const IDENTITY: Field[] = [...EQUALITY, 'ino', 'mtime', 'ctime'];

// A directory's size and link count are the filesystem's own affair, and change with unprotected neighbours.
function comparable(field: Field, entry: TreeEntry): boolean {
  return entry.type !== 'directory' || (field !== 'size' && field !== 'nlink');
}

function shown(value: TreeEntry[Field]): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function differ(
  before: Tree,
  after: Tree,
  fields: readonly Field[],
  ignore: (path: string, field: Field) => boolean,
) {
  const lines: string[] = [];
  for (const path of [...new Set([...before.keys(), ...after.keys()])].sort()) {
    const a = before.get(path);
    const b = after.get(path);
    const name = JSON.stringify(path);
    if (a === undefined) lines.push(`${name}: only in the second (${b!.type}, ${b!.size} bytes)`);
    else if (b === undefined) lines.push(`${name}: only in the first (${a.type}, ${a.size} bytes)`);
    else {
      for (const field of fields) {
        if (!comparable(field, a) || ignore(path, field)) continue;
        const [left, right] = [shown(a[field]), shown(b[field])];
        if (left !== right) lines.push(`${name}: ${field} ${left} -> ${right}`);
      }
    }
  }
  return lines;
}

/** Differences between one tree at two times; none when it was not touched. */
export function identityDifferences(before: Tree, after: Tree): string[] {
  return differ(before, after, IDENTITY, () => false);
}

/**
 * Differences between two copies: everything but inode numbers, times and disk blocks; the sets of names that are
 * links to one file are compared as sets.
 */
export function equalityDifferences(
  first: Tree,
  second: Tree,
  ignore: (path: string, field: Field) => boolean = () => false,
): string[] {
  const lines = differ(first, second, EQUALITY, ignore);
  const [a, b] = [linkSets(first), linkSets(second)];
  for (const set of a) if (!b.has(set)) lines.push(`links only in the first: ${set}`);
  for (const set of b) if (!a.has(set)) lines.push(`links only in the second: ${set}`);
  return lines;
}

function linkSets(tree: Tree): Set<string> {
  const byInode = new Map<string, string[]>();
  for (const [path, entry] of tree) {
    if (entry.type === 'directory' || entry.nlink < 2) continue;
    byInode.set(entry.ino, [...(byInode.get(entry.ino) ?? []), path]);
  }
  return new Set(
    [...byInode.values()].filter((paths) => paths.length > 1).map((paths) => JSON.stringify(paths.sort())),
  );
}
