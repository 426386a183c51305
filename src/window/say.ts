/**
 * Lines for the person, on stderr. Not by `process.stderr`: touching it makes the descriptor non-blocking, and the
 * command shares it, whose own writes would then fail with EAGAIN.
 */
import { writeSync } from 'node:fs';

const RETRY_MS = 20;

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
    // Nobody reads it, and nobody misses the line.
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return bytes.length - at;
    // Somebody else made it non-blocking, and it is full.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
    return 0;
  }
}
