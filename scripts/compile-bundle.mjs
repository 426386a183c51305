// src/sys/bundle.ts for scripts that Node runs as they are.
import { build } from 'esbuild';

const source = new URL('../src/sys/bundle.ts', import.meta.url).pathname;
const bundle = await build({ entryPoints: [source], format: 'esm', write: false });
const { compileBundle, runBundle } = await import(
  `data:text/javascript,${encodeURIComponent(bundle.outputFiles[0].text)}`
);

export { compileBundle, runBundle };
