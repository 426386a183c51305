/**
 * Loads a built file with V8's compilation of it, which the build leaves beside it (scripts/build.mjs): 2 ms with every
 * function compiled, where compiling as they are called takes 15 ms of a start. V8 refuses a cache of another version or
 * other flags by itself, and then compiles as usual.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Script } from 'node:vm';

/** A CommonJS file, which is ASCII (esbuild writes no other), as a function of what it needs. */
export function compileBundle(file: string, cachedData?: Buffer): Script {
  const source = `(function (require, __filename, __dirname) { const module = { exports: {} }, exports = module.exports; ${readFileSync(file, 'latin1')}\n})`;
  return new Script(source, { filename: file, cachedData });
}

/** Runs `NAME.cjs` beside the running file. */
export function loadBundle(name: string): void {
  const file = join(import.meta.dirname, `${name}.cjs`);
  runBundle(compileBundle(file, readCache(`${file}.cache`)), file);
}

export function runBundle(compiled: Script, file: string): void {
  compiled.runInThisContext()(createRequire(file), file, dirname(file));
}

function readCache(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch {
    return undefined; // a package built elsewhere may come without
  }
}
