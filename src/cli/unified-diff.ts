/** The difference of two versions of a file as unified hunks. */
import { structuredPatch } from 'diff';

/** For two files that have nothing in common the time grows with the square of their lines. */
const WITHIN_MS = 5000;
/** As git: a NUL among the first bytes makes a file binary. */
const LOOKED_AT = 8000;
const CONTEXT = 3;

export function isBinary(bytes: Buffer): boolean {
  return bytes.subarray(0, LOOKED_AT).includes(0);
}

/**
 * Lines of hunks, without their newlines, as byte strings; none for equal content. Undefined where it takes too long.
 */
export function hunkLines(before: Buffer, after: Buffer): string[] | undefined {
  if (before.equals(after)) return [];
  const patch = structuredPatch('', '', before.toString('latin1'), after.toString('latin1'), '', '', {
    context: CONTEXT,
    timeout: WITHIN_MS,
  });
  return patch?.hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines }) => [
    `@@ -${range(oldStart, oldLines)} +${range(newStart, newLines)} @@`,
    ...lines,
  ]);
}

/** An empty range stands after the line before it. */
function range(start: number, lines: number): string {
  if (lines === 1) return `${start}`;
  return `${lines === 0 ? start - 1 : start},${lines}`;
}
