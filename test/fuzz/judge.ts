/**
 * The lower after a window: its protected part is what it was, to the inode number; its unprotected part is what the
 * plain directory has, but for what DESIGN 3 leaves there (originals of what was caught) or keeps away (what was caught).
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isProtectedByDefault } from '../harness/protected.ts';
import { equalityDifferences, identityDifferences, part, snapshot, type Tree } from '../harness/tree.ts';
import type { Mode, Outcome } from './fuzz.ts';

const ASIDE = /\.before-forget-\d+$/;

function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1).replace(ASIDE, '');
}

/** A directory that went from the view stays in the lower while something protected or an original is in it. */
function keepsSomething(path: string, lower: Tree, isOriginal: (path: string) => boolean): boolean {
  const below = [...lower.keys()].filter((one) => one.startsWith(`${path}/`));
  return below.some((one) => isProtectedByDefault(one) || isOriginal(one));
}

function leakedSecrets(top: string, lower: Tree, secrets: readonly string[]): string[] {
  const wrong: string[] = [];
  if (secrets.length === 0) return wrong;
  const wanted = new Set(secrets);
  for (const [path, entry] of lower) {
    if (entry.type !== 'file' || entry.content === 'unreadable') continue;
    const text = readFileSync(Buffer.from(join(top, path), 'latin1'), 'latin1');
    const leaked = new Set(text.match(/<\d{7}>/g)?.filter((token) => wanted.has(token)));
    if (leaked.size > 0)
      wrong.push(`${JSON.stringify(path)} in the lower holds what was caught: ${[...leaked].join(' ')}`);
  }
  return wrong;
}

export function judgeLower(
  before: Tree,
  plainTop: string,
  lowerTop: string,
  mode: Mode,
  outcome: Outcome,
): string[] {
  const lower = snapshot(lowerTop);
  const plain = snapshot(plainTop);
  if (mode === 'protected') {
    // Nothing below may have changed, not even a directory's time. The top is not protected itself.
    const below = (path: string) => path !== '';
    return identityDifferences(part(before, below), part(lower, below)).map(
      (line) => `the lower changed: ${line}`,
    );
  }
  const protectedPart = identityDifferences(
    part(before, isProtectedByDefault),
    part(lower, isProtectedByDefault),
  );
  const caught = new Set(outcome.caught);
  const originals = new Set(outcome.originals.map(baseName));
  const isOriginal = (path: string) => originals.has(baseName(path));
  const excused = (path: string) =>
    isProtectedByDefault(path) ||
    caught.has(path) ||
    (!plain.has(path) && (isOriginal(path) || keepsSomething(path, lower, isOriginal)));
  const wanted = (path: string) => !excused(path);
  const unprotectedPart = equalityDifferences(
    part(plain, wanted),
    part(lower, wanted),
    (_, field) => field === 'nlink' && mode === 'mixed', // further names of it may be among the originals
  );
  return [
    ...protectedPart.map((line) => `the protected part of the lower changed: ${line}`),
    ...unprotectedPart.map((line) => `the unprotected part, plain -> lower: ${line}`),
    ...leakedSecrets(lowerTop, lower, outcome.secrets),
  ];
}
