/**
 * A source tree as people have them: directories a few levels deep, some ten files in each, sizes between 100 bytes and
 * 100 KB with a median of 2 KB, text made of words and punctuation. The same seed gives the same names and bytes.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface TreeShape {
  files: number;
  /** Median size of a file in bytes. Default 2,000. */
  medianSize?: number;
  /** Default 100,000. */
  largest?: number;
  seed?: number;
}

/** What a search looks for: one file in a hundred has it. */
export const NEEDLE = 'needleInTheTree';
/** All files are older than git's index, which would otherwise have them read again at each `git status`. */
const MTIME = new Date('2026-01-02T03:04:05Z');
const FILES_PER_DIRECTORY = 10;
const MAX_DEPTH = 5;
const SMALLEST = 100;
const LARGEST = 100_000;
const endings = ['ts', 'ts', 'ts', 'js', 'py', 'css', 'json', 'md'];
const syllables =
  'ac ber cor den er fil gra hash in jo kit log mem net or pat query run sys tok un val web ex y zip';

/** Numbers in [0, 1), always the same for a seed (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Makes the tree in `root`, which must not exist. Returns the files' paths, relative to it. */
export function makeSourceTree(root: string, shape: TreeShape): string[] {
  const random = randomNumbers(shape.seed ?? 1);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const parts = syllables.split(' ');
  const word = () => Array.from({ length: 1 + Math.floor(random() * 3) }, () => pick(parts)).join('');
  // One pool of text for all files: to make each byte anew would take longer than to write it.
  const largest = shape.largest ?? LARGEST;
  const pool = sourceText(word, random, 4 * largest);

  const directories = [''];
  mkdirSync(root);
  while (directories.length < shape.files / FILES_PER_DIRECTORY) {
    const parent = pick(directories);
    if (parent.split('/').length > MAX_DEPTH) continue;
    const path = `${parent}${word()}-${directories.length}/`;
    mkdirSync(join(root, path));
    directories.push(path);
  }
  const paths: string[] = [];
  for (let i = 0; i < shape.files; i++) {
    const path = `${directories[i % directories.length]}${word()}-${i}.${pick(endings)}`;
    const size = Math.round((shape.medianSize ?? 2000) * Math.exp(1.2 * gaussian(random)));
    const length = Math.min(Math.max(size, SMALLEST), largest);
    const start = Math.floor(random() * (pool.length - length));
    const needle = i % 100 === 0 ? `// ${NEEDLE}\n` : '';
    writeFileSync(join(root, path), `// ${i}\n${needle}${pool.slice(start, start + length)}\n`);
    utimesSync(join(root, path), MTIME, MTIME);
    paths.push(path);
  }
  return paths;
}

function sourceText(word: () => string, random: () => number, length: number): string {
  let text = '';
  while (text.length < length) {
    const indent = '  '.repeat(Math.floor(random() * 4));
    text += `${indent}const ${word()} = ${word()}.${word()}(${word()}, '${word()} ${word()}');\n`;
  }
  return text;
}

function gaussian(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** Makes the tree a git repository with all of it committed. `as`: words that come before git, and its environment. */
export function commitAll(root: string, as: { argv: readonly string[]; env: NodeJS.ProcessEnv }): void {
  const git = (...args: string[]) => {
    const [program, ...rest] = [...as.argv, 'git', '-C', root, ...gitSettings, ...args];
    execFileSync(program!, rest, { env: as.env });
  };
  git('init', '-q', '-b', 'main');
  git('add', '-A');
  git('commit', '-q', '-m', 'Everything');
  git('status', '--short');
}

// No work in the background, whose end nobody waits for.
const gitSettings = [
  '-c',
  'gc.auto=0',
  '-c',
  'maintenance.auto=false',
  '-c',
  'user.name=Ada',
  '-c',
  'user.email=a@b',
];
