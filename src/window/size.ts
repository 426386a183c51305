/** Sizes as people write them, in powers of 1024: `64K`, `10M`, `2G`, or plain bytes. */
import { Failure } from './failure.ts';

const units = ['', 'K', 'M', 'G', 'T'];

/** A tmpfs of size 0 is one without a limit, so nothing below a page is taken for a limit. */
const smallest = 4096;

/** Bytes. Throws a Failure that names `source` (an option or a config key). */
export function parseSize(text: string, source: string): number {
  const match = /^(\d{1,15})([KMGT]?)$/i.exec(text);
  const bytes = match ? Number(match[1]) * 1024 ** units.indexOf(match[2]!.toUpperCase()) : Number.NaN;
  if (!Number.isSafeInteger(bytes)) {
    throw new Failure(
      `${source}: "${text}" is not a size; write bytes or a number with K, M, G or T, such as 512M`,
    );
  }
  if (bytes < smallest) throw new Failure(`${source}: "${text}" is too small; the least is 4K`);
  return bytes;
}

/** `1536` gives `"1.5K"`, `0` gives `"0"`. */
export function formatSize(bytes: number): string {
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit > 0 && value < 10 ? value.toFixed(1).replace(/\.0$/, '') : String(Math.round(value));
  return `${digits}${units[unit]}`;
}
