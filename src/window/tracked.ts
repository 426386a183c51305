/**
 * What git tracks in the workspace. Which of it the rules protect: a `train.jsonl` in a repository is source, and who
 * works on it wants to know before its changes are gone. And in which directories it is, for prefetch.ts.
 *
 * git's index is read here, by its format (Documentation/gitformat-index.txt, versions 2 to 4), and git is not
 * run: it would execute what the repository's own configuration names, perhaps as root.
 */
import { readFileSync, statSync } from 'node:fs';
import { posix } from 'node:path';
import type { Rules } from '../overlay/rules.ts';
import { S_IFMT, S_IFREG } from '../sys/constants.ts';

const HEADER = 12;
/** Bytes of an entry in front of its flags: stat data and the object name (SHA-1). */
const FIXED = 60;
const MODE_AT = 24;
const SIZE_AT = 36;
const EXTENDED = 0x4000;
/** What the kernel reads of a file when its first byte is asked for: four pages. */
const SMALL_BYTES = 16 << 10;

/** Byte strings relative to the workspace. */
export interface Tracked {
  files: number;
  /** All that lead to a tracked file, each after the one that holds it; the workspace itself is "". */
  directories: ReadonlySet<string>;
  /** Unprotected regular files that were not larger than 16 KiB when git last looked, as many as were asked for. */
  small: string[];
  /** Their sizes together. */
  smallBytes: number;
  /** Protected files, as many as were asked for, and how many more there are. */
  paths: string[];
  more: number;
}

export interface TrackedLimits {
  paths: number;
  small: number;
}

/** An index that cannot be read tracks nothing. */
export function trackedIn(workspace: string, rules: Rules, limits: TrackedLimits): Tracked {
  const directories = new Set<string>();
  const small: string[] = [];
  const paths: string[] = [];
  let files = 0;
  let smallBytes = 0;
  let more = 0;
  const repository = repositoryOf(workspace);
  const index = repository && readIndex(repository.gitDir);
  if (!index) return { files, directories, small, smallBytes, paths, more };
  const prefix = repository.top === workspace ? '' : `${posix.relative(repository.top, workspace)}/`;
  let last: string | undefined;
  eachEntry(index, (path, at) => {
    if (!path.startsWith(prefix)) return;
    const relative = path.slice(prefix.length);
    files++;
    const directory = directoryOf(relative);
    if (directory !== last) addWithParents(directories, directory);
    last = directory;
    if (rules.protects(relative)) {
      if (paths.length < limits.paths) paths.push(relative);
      else more++;
    } else if (small.length < limits.small) {
      const size = index.readUInt32BE(at + SIZE_AT);
      if ((index.readUInt32BE(at + MODE_AT) & S_IFMT) !== S_IFREG || size > SMALL_BYTES) return;
      small.push(relative);
      smallBytes += size;
    }
  });
  return { files, directories, small, smallBytes, paths, more };
}

function directoryOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

function addWithParents(directories: Set<string>, directory: string): void {
  if (directories.has(directory)) return;
  if (directory !== '') addWithParents(directories, directoryOf(directory));
  directories.add(directory);
}

function repositoryOf(workspace: string): { top: string; gitDir: string } | undefined {
  for (let top = workspace; ; top = posix.dirname(top)) {
    const git = `${top === '/' ? '' : top}/.git`;
    const stat = statSync(Buffer.from(git, 'latin1'), { throwIfNoEntry: false });
    if (stat?.isDirectory()) return { top, gitDir: git };
    if (stat?.isFile()) {
      const line = /^gitdir: ([^\n]*)/.exec(readFileSync(Buffer.from(git, 'latin1'), 'latin1'));
      return line ? { top, gitDir: posix.resolve(top, line[1]!) } : undefined;
    }
    if (top === '/') return undefined;
  }
}

function readIndex(gitDir: string): Buffer | undefined {
  const path = Buffer.from(`${gitDir}/index`, 'latin1');
  try {
    // A fifo in its place would be waited for.
    if (!statSync(path).isFile()) return undefined;
    const index = readFileSync(path);
    return index.length > HEADER && index.toString('latin1', 0, 4) === 'DIRC' ? index : undefined;
  } catch {
    return undefined; // no commit yet, or not ours to read: there is nothing to say then
  }
}

/** Calls back with each path, and where its entry begins. */
function eachEntry(index: Buffer, visit: (path: string, at: number) => void): void {
  const version = index.readUInt32BE(4);
  const count = index.readUInt32BE(8);
  if (version < 2 || version > 4) return;
  let at = HEADER;
  let previous = '';
  for (let i = 0; i < count && at + FIXED + 2 < index.length; i++) {
    const flags = index.readUInt16BE(at + FIXED);
    let start = at + FIXED + 2 + (version >= 3 && flags & EXTENDED ? 2 : 0);
    let kept = '';
    if (version === 4) {
      const strip = readVarint(index, start);
      start = strip.next;
      kept = previous.slice(0, previous.length - strip.value);
    }
    const end = index.indexOf(0, start);
    if (end < 0) return;
    previous = kept + index.latin1Slice(start, end);
    visit(previous, at);
    // Versions 2 and 3 pad an entry with 1 to 8 NULs to a multiple of 8.
    at = version === 4 ? end + 1 : at + ((end - at + 8) & ~7);
  }
}

/** The offset encoding of pack files, with which version 4 says how much of the previous path to drop. */
function readVarint(bytes: Buffer, start: number): { value: number; next: number } {
  let at = start;
  let byte = bytes[at++]!;
  let value = byte & 127;
  while (byte & 128) {
    byte = bytes[at++]!;
    value = ((value + 1) << 7) | (byte & 127);
  }
  return { value, next: at };
}
