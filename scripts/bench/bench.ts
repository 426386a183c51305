/**
 * `npm run bench`: forget beside a bare directory and other overlays, everything in turn within one run. A full run
 * (some 30 minutes, as root) writes docs/performance.md and its chart; one with fewer rounds, targets or workloads
 * prints the table alone.
 */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openDevFuse } from '../../test/harness/dev-fuse.ts';
import { chart } from './chart.ts';
import { freshDisk } from './disk.ts';
import { describeMachine } from './machine.ts';
import { makeMaterial, type Owner } from './material.ts';
import { measure } from './measure.ts';
import { installPackages } from './packages.ts';
import { page, type Results, summary } from './page.ts';
import { isRoot, targets, unmountAll } from './targets.ts';
import { START, workloads } from './workloads.ts';

const USAGE = `npm run bench -- [options]
  --only a,b         these targets alone: ${targets.map(({ name }) => name).join(', ')}
  --workloads a,b    these workloads alone (a part of a name is enough): ${[...workloads.map(({ id }) => id), START].join(', ')}
  --rounds N         default 5
  --quick            one round, without the tree of 50,000 files
  --directory DIR    where the trees are made, on the filesystem that is there; default: on one of the run's own, made
                     in a file in /var/tmp (as root; else in /var/tmp itself)
  --json FILE        write the figures there
  --from FILE        measure nothing: make the page and the chart from figures of --json`;

const docs = fileURLToPath(new URL('../../docs', import.meta.url));
const TOOLS = ['git', 'ripgrep', 'util-linux'];
const say = (line: string): void => void process.stderr.write(`${line}\n`);

function options() {
  return parseArgs({
    options: {
      only: { type: 'string' },
      workloads: { type: 'string' },
      rounds: { type: 'string' },
      quick: { type: 'boolean', default: false },
      directory: { type: 'string' },
      json: { type: 'string' },
      from: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  }).values;
}

type Options = ReturnType<typeof options>;

async function main(): Promise<number> {
  const given = options();
  if (given.help) {
    console.log(USAGE);
    return 0;
  }
  if (given.from !== undefined) {
    writePage(JSON.parse(readFileSync(given.from, 'utf8')) as Results);
    return 0;
  }
  const results = await run(given);
  if (given.json !== undefined) writeFileSync(given.json, JSON.stringify(results));
  console.log(summary(results));
  const whole =
    !given.quick && [given.only, given.workloads, given.rounds].every((value) => value === undefined);
  if (whole && results.targets.length > 1) writePage(results);
  return results.failures.some(({ target }) => target.startsWith('forget')) ? 1 : 0;
}

async function run(given: Options): Promise<Results> {
  const chosen = targets.filter(({ name }) => !given.only || given.only.split(',').includes(name));
  const parts = given.workloads?.split(',');
  const ids = [...workloads.map(({ id }) => id), START].filter(
    (id) => (!parts || parts.some((part) => id.includes(part))) && !(given.quick && id.endsWith('-50k')),
  );
  const peers = chosen.map((target) => target.package).filter((name) => name !== undefined);
  const absent = installPackages([...TOOLS, ...peers], say);
  const here = chosen.filter((target) => {
    const why = target.package && absent.includes(target.package) ? 'not installed' : target.unavailable();
    if (why) say(`left out: ${target.name}: ${why}`);
    return !why;
  });
  await openDevFuse();
  const directory = given.directory ?? '/var/tmp';
  mkdirSync(directory, { recursive: true });
  const base = realpathSync(mkdtempSync(join(directory, 'forget-bench-')));
  chmodSync(base, 0o755);
  const disk = given.directory === undefined ? freshDisk(base, say) : undefined;
  const trees = disk?.path ?? base;
  const cleanUp = () => {
    unmountAll();
    disk?.remove();
    rmSync(base, { recursive: true, force: true });
  };
  const interrupted = () => {
    cleanUp();
    process.exit(130);
  };
  process.on('SIGINT', interrupted).on('SIGTERM', interrupted);
  try {
    const machine = describeMachine(trees, [...TOOLS, ...peers]);
    const want = { large: ids.some((id) => id.endsWith('-50k')), npm: ids.includes('npm-ci') };
    const make = (owner: Owner) => makeMaterial(join(trees, owner), owner, want, say);
    const ordinary = make('ordinary');
    const material = { ordinary, root: isRoot ? make('root') : ordinary };
    const rounds = given.quick ? 1 : Number(given.rounds ?? 5);
    const begun = Date.now();
    const measured = await measure({ targets: here, workloads: new Set(ids), rounds, material, say });
    say(`measured in ${Math.round((Date.now() - begun) / 1000)} s`);
    return {
      ...measured,
      machine,
      rounds,
      targets: here.map(({ name, sort, about }) => ({ name, sort, about })),
    };
  } finally {
    cleanUp();
  }
}

function writePage(results: Results): void {
  writeFileSync(join(docs, 'performance.md'), page(results));
  writeFileSync(join(docs, 'performance.svg'), chart(results));
  say('written: docs/performance.md and docs/performance.svg');
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 2;
}
