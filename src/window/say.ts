/**
 * Lines for the person, on stderr. Not by `process.stderr`: touching it makes the descriptor non-blocking, and the
 * command shares it, whose own writes would then fail with EAGAIN.
 */
import { writeSync } from 'node:fs';

/** Each becomes one line; the caller has made names readable. */
export function say(lines: readonly string[]): void {
  for (const line of lines) {
    const bytes = Buffer.from(`${line}\n`);
    for (let at = 0; at < bytes.length; ) at += writeSome(bytes, at);
  }
}

function writeSome(bytes: Buffer, at: number): number {
  try {
    return writeSync(2, bytes, at);
  } catch (error) {
    // Somebody else made it non-blocking and it is full; or nobody reads it, and nobody misses the line.
    return (error as NodeJS.ErrnoException).code === 'EAGAIN' ? 0 : bytes.length - at;
  }
}
