// Bundles the entry points as CommonJS, one file each: a short `forget exec` would otherwise spend its time on
// loading many small ES modules (docs/decisions.md has the figures). What few commands need (YAML, schemas) stays
// apart. koffi is a native addon.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { build } from 'esbuild';

const root = new URL('..', import.meta.url).pathname;
/** Files of their own, loaded late. */
const apart = [
  'cli/main',
  'cli/completion-script',
  'cli/manual-page',
  'window/config-schema',
  'window/config-yaml',
];

rmSync(`${root}dist`, { recursive: true, force: true });
await build({
  absWorkingDir: root,
  entryPoints: {
    forget: 'src/cli/start.ts',
    daemon: 'src/window/daemon.ts',
    'make-upper': 'src/window/make-upper.ts',
    ...Object.fromEntries(apart.map((path) => [basename(path), `src/${path}.ts`])),
  },
  outdir: 'dist',
  outExtension: { '.js': '.cjs' },
  bundle: true,
  minifySyntax: true,
  minifyWhitespace: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20.19',
  external: ['koffi', 'fuse-native'],
  // import() of a file beside this one would go through the ES module loader, which takes 10 ms to get going.
  supported: { 'dynamic-import': false },
  define: { 'import.meta.url': '__fileUrl' },
  banner: { js: "const __fileUrl = require('node:url').pathToFileURL(__filename).href;" },
  plugins: [
    {
      name: 'apart',
      setup({ onResolve }) {
        const filter = new RegExp(`/(${apart.map((path) => basename(path)).join('|')})\\.ts$`);
        onResolve({ filter }, ({ path, kind }) =>
          kind !== 'entry-point' ? { path: `./${basename(path, '.ts')}.cjs`, external: true } : undefined,
        );
      },
    },
    {
      // commander wants it for subcommands that are programs of their own; there are none, and it takes 2 ms to load.
      name: 'commander without child_process',
      setup({ onResolve, onLoad }) {
        onResolve({ filter: /^node:child_process$/ }, ({ importer }) =>
          importer.includes('/commander/') ? { path: 'none', namespace: 'nothing' } : undefined,
        );
        onLoad({ filter: /.*/, namespace: 'nothing' }, () => ({
          contents: 'module.exports = {};',
          loader: 'js',
        }));
      },
    },
  ],
});

// What src/sys/bundle.ts loads, compiled by the Node that runs this: all of it, not only what runs at once, since
// nearly all of it does in the first 50 ms of a window. V8 accepts a cache by the flags at its making.
const bundle = await build({ entryPoints: [`${root}src/sys/bundle.ts`], format: 'esm', write: false });
const { compileBundle } = await import(
  `data:text/javascript,${encodeURIComponent(bundle.outputFiles[0].text)}`
);
const main = `${root}dist/main.cjs`;
setFlagsFromString('--no-lazy');
const compiled = compileBundle(main);
setFlagsFromString('--lazy');
writeFileSync(`${main}.cache`, compiled.createCachedData());

mkdirSync(`${root}man`, { recursive: true });
writeFileSync(
  `${root}man/forget.1`,
  execFileSync(process.execPath, [`${root}dist/forget.cjs`, 'manual-page']),
);
