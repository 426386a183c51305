import { setTimeout as delay } from 'node:timers/promises';

const PATIENCE_MS = 10_000;

/** Resolves when `holds` does; throws when it has not within ten seconds. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  for (let waited = 0; waited < PATIENCE_MS; waited += 20) {
    if (holds()) return;
    await delay(20);
  }
  throw new Error(`not within ten seconds: ${what}`);
}
