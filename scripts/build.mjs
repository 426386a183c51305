// Bundles the entry points: one file each, since loading many small ES modules is what a short
// `forget exec` would otherwise spend its time on. koffi stays outside: it is a native addon.
import { rmSync } from 'node:fs';
import { build } from 'esbuild';

const root = new URL('..', import.meta.url).pathname;
rmSync(`${root}dist`, { recursive: true, force: true });
await build({
  absWorkingDir: root,
  entryPoints: {
    forget: 'src/cli/main.ts',
    'fuse-worker': 'src/window/fuse-worker.ts',
  },
  outdir: 'dist',
  outExtension: { '.js': '.mjs' },
  bundle: true,
  splitting: true,
  minifySyntax: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  external: ['koffi'],
  sourcemap: true,
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
  },
});
