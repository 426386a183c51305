/**
 * Judges a bare trial and one inside a window. Which paths are protected is said here once more, and not asked of
 * forget's own rules: a rule that matches nothing must not make its test pass.
 */
import { LAST_WORDS } from './task.ts';
import type { Trial } from './trial.ts';
import { type Entry, SESSION } from './workspace.ts';

const PROTECTED = /^(memory|MEMORY\.md|DELIVERABLES\.md)(\/|$)|\.jsonl$/;

export const isProtected = (path: string): boolean => PROTECTED.test(path);

/** What the agent writes; a bare run that left one of these alone would prove nothing. */
const WRITES = [SESSION, 'memory/notes.md', 'memory/learned.md', 'DELIVERABLES.md', 'src/greeting.js'];

/** One sentence for each thing that is not as promised; empty when all is well. */
export function brokenPromises(bare: Trial, window: Trial): string[] {
  const bareChanges = new Set(bare.changed);
  return [
    ...brokenRun('bare', bare),
    ...brokenRun('under forget', window),
    ...WRITES.filter((path) => !bareChanges.has(path)).map(
      (path) => `bare: ${path} was not written, so this run proves nothing about it`,
    ),
    ...window.changed
      .filter(isProtected)
      .map((path) => `under forget: ${path} is protected, and changed on disk`),
    ...unprotectedDifferences(bare, window),
    ...(bare.head === window.head
      ? []
      : [`the last commit is ${bare.head} bare, ${window.head} under forget`]),
  ];
}

function brokenRun(name: string, { result, uncommitted }: Trial): string[] {
  const ended = result.signal ? `by ${result.signal}` : `with exit code ${result.code}`;
  const said = result.stdout.trim();
  return [
    ...(result.code === 0 ? [] : [`${name}: the agent ended ${ended}`]),
    ...(said === LAST_WORDS ? [] : [`${name}: the agent said "${said}" instead of "${LAST_WORDS}"`]),
    ...(uncommitted === '' ? [] : [`${name}: git status is not clean: ${uncommitted}`]),
  ];
}

/** Times and inode numbers differ between any two runs; kind, bytes and permissions must not. */
function unprotectedDifferences(bare: Trial, window: Trial): string[] {
  const shown = (entry: Entry | undefined): string =>
    entry ? `${entry.kind} of ${entry.size} bytes, ${entry.permissions}` : 'absent';
  const comparable = (entry: Entry | undefined): string => `${entry?.content} ${shown(entry)}`;
  const paths = new Set([...bare.after.keys(), ...window.after.keys()]);
  return [...paths]
    .filter((path) => !isProtected(path))
    .filter((path) => comparable(bare.after.get(path)) !== comparable(window.after.get(path)))
    .map(
      (path) =>
        `${path} is not what the bare run left: ${shown(window.after.get(path))}, and bare ${shown(bare.after.get(path))}`,
    );
}
