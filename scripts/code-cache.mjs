// node code-cache.mjs BUNDLE CACHE REPORT exec ...: runs forget with the arguments after the first three, in this process,
// and writes V8's compilation of all that was called to CACHE when it has written its report to REPORT, the last thing that
// it does (scripts/build.mjs).
import fs from 'node:fs';
import v8 from 'node:v8';
import { compileBundle, runBundle } from './compile-bundle.mjs';

const [bundle, cache, report] = process.argv.splice(2, 3);
const { writeFileSync } = fs;
// V8 accepts a cache by the flags at its making; a window sets some for itself.
v8.setFlagsFromString = () => {};
const script = compileBundle(bundle);
fs.writeFileSync = (path, ...rest) => {
  writeFileSync(path, ...rest);
  if (path.toString() === report) writeFileSync(cache, script.createCachedData());
};
runBundle(script, bundle);
