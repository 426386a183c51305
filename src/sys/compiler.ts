/** When V8 optimizes the code of this process. Main thread only; nothing here is loaded before it is needed. */

/** Node 20's. From 12 on (Node 22) there is a compiler more in between, Maglev, and no such budget. */
const MEASURED_V8 = 11;

/**
 * For a server of short requests: optimizes after an eighth of the work that V8 waits for, and puts less of other functions
 * into one, which makes each compilation shorter (docs/decisions.md, "The first thousands of requests").
 */
export function optimizeEarlier(): void {
  if (Number.parseInt(process.versions.v8, 10) !== MEASURED_V8) return;
  const v8 = process.getBuiltinModule('node:v8');
  v8.setFlagsFromString('--interrupt-budget=8000');
  v8.setFlagsFromString('--max-inlined-bytecode-size-cumulative=200');
}
