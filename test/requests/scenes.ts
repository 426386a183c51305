/**
 * Fixed work on a fixed tree. Each scene has a window of its own; each step's requests are counted by opcode. The steps
 * are such that the kernel asks for the same each time: one thread, files that one READ covers, and no clock in it.
 */
import type { Step } from '../../scripts/bench/session.ts';
import { NEEDLE } from '../../scripts/bench/source-tree.ts';

/** Small files that a step makes. */
export const CREATED = 100;
/** In the workspace, in 30 directories. */
export const TREE_FILES = 300;
/** The tree that is copied: directories, and files in each. */
export const COPIED = { directories: 10, files: 10 };

export interface Scene {
  steps: [title: string, step: Step][];
}

const run = (...argv: string[]): Step => ({ step: 'run', argv });
const status = run('git', 'status', '--short');
const search = (...where: string[]): Step => run('rg', '--threads', '1', '-l', NEEDLE, ...where);
const walk = run('find', '.', '-name', 'no-such-name');

function threeTimes(title: string, step: Step): Scene {
  return {
    steps: [
      [`${title}, first`, step],
      // What was read has its access time asked for once more (fuse_invalidate_atime), and then no more.
      [`${title}, second`, step],
      [`${title}, third`, step],
    ],
  };
}

/** `source` is a directory outside the window, with `COPIED` in it. */
export function scenes(source: string): Scene[] {
  return [
    threeTimes('git status', status),
    threeTimes('rg', search()),
    threeTimes('find', walk),
    { steps: [['tar', run('sh', '-c', 'tar -cf - . | cat >/dev/null')]] },
    writing('unprotected', 'new', source),
    writing('protected', 'memory', source),
  ];
}

function writing(where: string, below: string, source: string): Scene {
  const create = (directory: string): Step => ({ step: 'create', directory, count: CREATED, bytes: 1000 });
  return {
    steps: [
      [`a directory, ${where}`, run('mkdir', '-p', below)],
      [`${CREATED} small files, ${where}`, create(`${below}/files`)],
      [`cp -r into it, ${where}`, run('cp', '-r', source, `${below}/copy`)],
      [`rg of the copy, first, ${where}`, search(below)],
      [`rg of the copy, second, ${where}`, search(below)],
      [`rg of the copy, third, ${where}`, search(below)],
      [`cp -r within it, ${where}`, run('cp', '-r', `${below}/files`, `${below}/again`)],
      [`mv, ${where}`, run('mv', `${below}/again`, `${below}/moved`)],
      [`rm -rf, ${where}`, run('rm', '-rf', `${below}/copy`)],
    ],
  };
}
