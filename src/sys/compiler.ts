/**
 * When V8 optimizes the code of this process, set for a server of short requests. Main thread only; nothing here is loaded
 * before it is needed. What was measured: docs/decisions.md, "The first thousands of requests".
 */
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** Node 20's. From 12 on (Node 22) there is a compiler more in between, Maglev, and no such budget. */
const MEASURED_V8 = 11;

/**
 * For a burst of requests that may be over soon: the compiler's threads would take from it the processor that somebody waits
 * for, and be done when it is over.
 */
export function optimizeLate(): void {
  setFlags('--interrupt-budget=300000');
}

/**
 * For a server that will see many more: an eighth of the work that V8 waits for, and less of other functions put into one,
 * which makes each compilation shorter.
 */
export function optimizeEarly(): void {
  setFlags('--interrupt-budget=8000', '--max-inlined-bytecode-size-cumulative=200');
}

function setFlags(...flags: string[]): void {
  if (Number.parseInt(process.versions.v8, 10) !== MEASURED_V8) return;
  const v8 = require('node:v8') as typeof import('node:v8');
  for (const flag of flags) v8.setFlagsFromString(flag);
}
