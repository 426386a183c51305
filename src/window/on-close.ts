/** `forget exec --on-close`: what becomes of what the window holds, when its command has ended and all is still there. */
import { closeSync, openSync } from 'node:fs';
import { heldLine } from './held-lines.ts';
import { keepIn, type LookedAt, listed } from './looking.ts';
import type { ListedPath, LookingMethods } from './looking-methods.ts';
import { say } from './say.ts';

export type OnClose = 'ask' | 'discard' | 'keep';

const MOST_SHOWN = 20;
const QUESTION = 'forget: keep? Enter: discard all; a: keep all; or globs of what to keep: ';

/** Ctrl-C (`hurry`) discards. Returns whether something was to be kept and could not be. */
export async function atClose(
  window: LookedAt,
  onClose: Exclude<OnClose, 'discard'>,
  hurry: AbortSignal,
): Promise<boolean> {
  const held = await listed(window);
  if (held.length === 0) return false;
  if (onClose === 'keep') return !(await tryToKeep(window, ['*'], hurry));
  say([`forget: the window holds ${held.length} path${held.length === 1 ? '' : 's'}:`, ...linesOf(held)]);
  for (;;) {
    const globs = globsIn(await ask(QUESTION, hurry));
    if (globs.length === 0) return false;
    if (await tryToKeep(window, globs, hurry)) return false;
  }
}

function linesOf(held: readonly ListedPath[]): string[] {
  const shown = held.slice(0, MOST_SHOWN).map((one) => `  ${heldLine(one)}`);
  return held.length > shown.length ? [...shown, `  and ${held.length - shown.length} more`] : shown;
}

/** None: discard. */
function globsIn(answer: string | undefined): string[] {
  const words = (answer ?? '').split(/\s+/).filter(Boolean);
  if (words.length !== 1) return words;
  if (/^(d|discard|n|no)$/i.test(words[0]!)) return [];
  return /^(a|all|y|yes)$/i.test(words[0]!) ? ['*'] : words;
}

async function tryToKeep(window: LookedAt, globs: readonly string[], signal: AbortSignal): Promise<boolean> {
  try {
    const { kept, conflicts } = await keepIn(window, globs, { force: false, dryRun: false, signal });
    say(conflictLines(conflicts));
    return kept.length > 0;
  } catch (error) {
    say([`forget: ${(error as Error).message}`]);
    return false;
  }
}

/** Why nothing was kept; none where all was. */
export function conflictLines(conflicts: LookingMethods['keep']['result']['conflicts']): string[] {
  if (conflicts.length === 0) return [];
  return [
    'forget: nothing was kept, since the workspace has changed meanwhile:',
    ...conflicts.map(({ path, why }) => `  ${path}  ${why}`),
  ];
}

/** One line from the terminal; undefined at its end, or when `hurry` is aborted. */
async function ask(question: string, hurry: AbortSignal): Promise<string | undefined> {
  if (hurry.aborted) return undefined;
  const [{ ReadStream }, { createInterface }] = await Promise.all([
    import('node:tty'),
    import('node:readline'),
  ]);
  const fd = openSync('/dev/tty', 'r+');
  const input = new ReadStream(fd);
  const lines = createInterface({ input, terminal: false });
  try {
    const { writeSync } = await import('node:fs');
    writeSync(2, question);
    return await new Promise((resolve) => {
      lines.once('line', resolve);
      lines.once('close', () => resolve(undefined));
      hurry.addEventListener('abort', () => resolve(undefined), { once: true });
    });
  } finally {
    lines.close();
    input.destroy();
    if (hurry.aborted) say(['']);
  }
}

/** Can the person be asked? */
export function canAsk(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r+'));
    return true;
  } catch {
    return false;
  }
}
