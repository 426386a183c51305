// Bundles the entry points as CommonJS, one file each: a short `forget exec` would otherwise spend its time on
// loading many small ES modules (docs/decisions.md has the figures). What few commands need (YAML, schemas) stays
// apart. koffi is a native addon.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { build } from 'esbuild';
import { compileBundle } from './compile-bundle.mjs';

const root = new URL('..', import.meta.url).pathname;
/** Files of their own, loaded late. */
const apart = [
  'cli/main',
  'cli/look-into',
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
  define: { 'import.meta.dirname': '__dirname', 'import.meta.filename': '__filename' },
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

/** What a window is mostly asked for, in both of its parts. */
const WORK = `
for dir in memory source; do
  mkdir $dir && cd $dir && echo text >file && echo more >>file && cat file && ln -s file link && ln file other
  mv file moved && cp moved copy && chmod 600 copy && touch copy && truncate -s 2 copy && rm copy
  mkdir below && rmdir below && ls -lR .. && rm -r ../$dir && cd ..
done`;

/**
 * V8's compilation of what a window calls; undefined where none can be opened (a container without
 * /dev/fuse). V8 reads its 760 KB in two thirds of the time of the 1.4 MB of all functions.
 */
function compiledByUse(bundle) {
  const directory = mkdtempSync(join(tmpdir(), 'forget-build-'));
  const cache = join(directory, 'cache');
  const report = join(directory, 'report');
  const unshare = ['unshare', '--user', '--mount', '--map-current-user', '--keep-caps', '--'];
  const argv = [
    ...(process.getuid() === 0 ? [] : unshare),
    ...[process.execPath, `${root}scripts/code-cache.mjs`, bundle, cache, report],
    // Half a second: what begins later than the first requests does too.
    ...['exec', '--agent', 'none', '--report', report, '--', 'sh', '-c', `${WORK}; sleep 0.5`],
  ];
  try {
    mkdirSync(join(directory, 'workspace'));
    const env = { ...process.env, XDG_CONFIG_HOME: directory };
    const options = {
      cwd: join(directory, 'workspace'),
      env,
      stdio: 'ignore',
      timeout: 20_000,
      killSignal: 'SIGKILL',
    };
    spawnSync(argv[0], argv.slice(1), options);
    return existsSync(cache) ? readFileSync(cache) : undefined;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Of all functions. V8 accepts a cache by the flags at its making. */
function compiledWhole(bundle) {
  setFlagsFromString('--no-lazy');
  const compiled = compileBundle(bundle);
  setFlagsFromString('--lazy');
  return compiled.createCachedData();
}

// What src/sys/bundle.ts loads, compiled by the Node that runs this.
const main = `${root}dist/main.cjs`;
writeFileSync(`${main}.cache`, compiledByUse(main) ?? compiledWhole(main));

mkdirSync(`${root}man`, { recursive: true });
writeFileSync(
  `${root}man/forget.1`,
  execFileSync(process.execPath, [`${root}dist/forget.cjs`, 'manual-page']),
);
