/**
 * Keeping: chosen paths of a window go to the lower, all or none of them. First everything is made beside its place under
 * temporary names, and is on the disk; then each takes its place by a rename, in one go, the originals staying aside; then
 * the originals go. What happens if that is cut off is in keep-journal.ts.
 *
 * The window goes on as before: what was kept stays in the upper and covers the lower, so that the view does not change,
 * and what is written to it afterwards is caught as ever.
 */
import { ENOSPC, errnoName, SysError } from '../sys/errno.ts';
import { KeepError, type KeptPath, keptPath } from './keep-outcome.ts';
import { type Conflict, chooseChanges, planFor } from './keep-plan.ts';
import { Keeping } from './keeping.ts';
import type { Overlay } from './overlay.ts';

/** A root of the window, and which of its paths (byte strings) are to be kept. */
export interface KeepPart {
  overlay: Overlay;
  wanted: (path: string) => boolean;
}

export interface KeepOptions {
  /** Over what was changed outside. */
  force: boolean;
  /** Only say what would be done. */
  dryRun: boolean;
  /** Whoever asked is gone: nothing is kept, unless it is done already. */
  signal?: AbortSignal;
}

export interface KeepOutcome {
  kept: KeptPath[];
  /** Not empty: nothing was kept. */
  conflicts: Conflict[];
}

/** Throws KeepError with nothing kept. */
export async function keep(parts: readonly KeepPart[], options: KeepOptions): Promise<KeepOutcome> {
  const plans = parts.map(({ overlay, wanted }) => {
    const { all, chosen } = chooseChanges(overlay, wanted);
    return { overlay, chosen, ...planFor(overlay, all, chosen) };
  });
  const kept = plans.flatMap(({ overlay, chosen }) => chosen.map((change) => keptPath(overlay, change)));
  const conflicts = plans.flatMap((plan) => plan.conflicts);
  if (options.dryRun) return { kept, conflicts };
  if (conflicts.length > 0 && !options.force) return { kept: [], conflicts };
  const impossible = plans.flatMap((plan) => plan.impossible);
  if (impossible.length > 0) return { kept: [], conflicts: impossible };
  const keepings = plans
    .filter(({ steps }) => steps.length > 0)
    .map(({ overlay, steps, chosen }) => new Keeping(overlay, steps, chosen, options.signal));
  await keepAll(keepings);
  return { kept, conflicts: [] };
}

/** In all roots or in none. */
async function keepAll(keepings: readonly Keeping[]): Promise<void> {
  const begun: Keeping[] = [];
  try {
    for (const keeping of keepings) {
      begun.push(keeping);
      await keeping.prepare();
    }
    for (const keeping of keepings) keeping.commit();
    for (const keeping of keepings) await keeping.seal();
  } catch (error) {
    const left = begun.map((keeping) => keeping.takeBack()).find((failed) => failed !== 0);
    if (left) {
      const why = `${(error as Error).message}; and what was begun could not be taken back (${errnoName(left)})`;
      throw new KeepError(`${why}: forget doctor --fix tries again`);
    }
    throw explained(error);
  }
  for (const keeping of keepings) keeping.finish();
}

function explained(error: unknown): unknown {
  if (!(error instanceof SysError)) return error;
  const why = error.errno === ENOSPC ? `${error.message} (the disk is full)` : error.message;
  return new KeepError(`${why}; nothing was kept`);
}
