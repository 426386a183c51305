/**
 * Node's own memory, kept near what is in use. Main thread only; nothing here is loaded before it is needed.
 */
/**
 * Keeps the young generation at its first size: objects here live as short as a request or as long as the kernel knows a
 * file, and 1 MB sorts them as well as 16. With 100,000 known files: 128 MB resident instead of 149.
 */
export function keepYoungGenerationSmall(): void {
  const v8 = process.getBuiltinModule('node:v8');
  v8.setFlagsFromString('--semi-space-growth-factor=1');
}

let collector: (() => void) | undefined;

/** Collects all garbage now and gives the memory back: V8 does so by itself only as new objects come. */
export function collectGarbage(): void {
  if (!collector) {
    const v8 = process.getBuiltinModule('node:v8');
    const vm = process.getBuiltinModule('node:vm');
    v8.setFlagsFromString('--expose-gc');
    collector = vm.runInNewContext('gc') as () => void;
  }
  collector();
}
