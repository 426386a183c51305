/** Fewer operations with the same kind of difference: ddmin over the sequence, within a number of runs. */
import { type Finding, type Operation, runSequence, type Sequence } from './fuzz.ts';

const MAX_RUNS = 200;

/** What a difference is about, without the values: a shrunk sequence must still show that. */
function kind(finding: Finding): string | undefined {
  return finding.wrong[0]?.split(/[\n:]/, 1)[0]?.replace(/".*"|'.*'|\d+/g, '');
}

export interface Shrunk {
  sequence: Sequence;
  finding: Finding;
}

export async function shrink(sequence: Sequence, finding: Finding, runs = MAX_RUNS): Promise<Shrunk> {
  const wanted = kind(finding);
  let best: Shrunk = {
    sequence: { ...sequence, operations: sequence.operations.slice(0, finding.performed) },
    finding,
  };
  let left = runs;
  const attempt = async (operations: readonly Operation[]): Promise<boolean> => {
    left--;
    const smaller = { ...sequence, operations };
    // A run that could not be made is another matter than the one that is looked for.
    const found = await runSequence(smaller).catch(() => undefined);
    if (!found || kind(found) !== wanted) return false;
    best = { sequence: { ...smaller, operations: operations.slice(0, found.performed) }, finding: found };
    return true;
  };
  for (
    let size = Math.ceil(best.sequence.operations.length / 2);
    size >= 1 && left > 0;
    size = size === 1 ? 0 : Math.ceil(size / 2)
  ) {
    for (let at = best.sequence.operations.length - size; at > -size && left > 0; at -= size) {
      const from = Math.max(0, at);
      const { operations } = best.sequence;
      await attempt([...operations.slice(0, from), ...operations.slice(from + size)]);
    }
  }
  return best;
}
