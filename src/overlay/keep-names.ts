/** The names that a keep gives to what it makes in the lower for a moment (keep-journal.ts). */

/** In the root. */
export const JOURNAL = '.forget-keep.json';
/** Its next stage, until that is whole. */
export const NEXT_JOURNAL = '.forget-keep.json.new';
/** What every temporary name begins with. */
export const TEMPORARY = '.forget-keep-';
