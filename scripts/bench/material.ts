/** What the workloads work on, made once a run below one directory: trees, a large file, a project with its npm cache. */
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { commitAll, makeSourceTree, type TreeShape } from './source-tree.ts';
import { asOrdinary, isRoot, ORDINARY } from './targets.ts';

export const SMALL_FILES = 2600;
export const LARGE_FILES = 50_000;
export const STREAM_BYTES = 256 << 20;
export const STREAM_FILE = 'large.bin';
/** Where the workloads write, in the root of a tree. */
export const OUT = 'bench-out';

const OBJECT = /^[0-9a-f]{2}\/[0-9a-f]{38}$/;

export type TreeName = 'small' | 'large' | 'stream';

export interface LowerTree {
  path: string;
  files: string[];
  /** git's own, one a file: nobody reads them ahead. */
  objects: string[];
}

export interface Material {
  /** Lowers. `large` is there only where it was wanted. */
  trees: Partial<Record<TreeName, LowerTree>>;
  scratch: string;
  /** A source tree outside every mount, without a repository. */
  source: string;
  project: string;
  npmCache: string;
  env: NodeJS.ProcessEnv;
}

const recipe = fileURLToPath(new URL('npm-project', import.meta.url));

/** Who owns what the workloads work on: a stranger's permissions are looked at more closely, which costs requests. */
export type Owner = 'root' | 'ordinary';

/** Makes all below `base`, which must not exist, and gives it to `owner`. */
export function makeMaterial(
  base: string,
  owner: Owner,
  want: { large: boolean; npm: boolean },
  say: (line: string) => void,
): Material {
  mkdirSync(base);
  const at = (name: string) => join(base, name);
  for (const name of ['home', 'scratch']) mkdirSync(at(name));
  const env = environment(at('home'));
  say(`trees of ${SMALL_FILES}${want.large ? ` and ${LARGE_FILES}` : ''} files of ${owner} in ${base}`);
  const trees: Material['trees'] = { small: repository(at('small'), { files: SMALL_FILES }, owner, env) };
  if (want.large) {
    trees.large = repository(at('large'), { files: LARGE_FILES, medianSize: 800, seed: 2 }, owner, env);
  }
  trees.stream = stream(at('stream'));
  makeSourceTree(at('source'), { files: SMALL_FILES, seed: 3 });
  cpSync(recipe, at('project'), { recursive: true });
  if (want.npm) fillNpmCache(at('project'), at('npm-cache'), say);
  if (isRoot && owner === 'ordinary') {
    const rest = ['home', 'scratch', 'stream', 'source', 'project', ...(want.npm ? ['npm-cache'] : [])].map(
      at,
    );
    execFileSync('chown', [`${ORDINARY}:${ORDINARY}`, base]);
    execFileSync('chown', ['-R', `${ORDINARY}:${ORDINARY}`, ...rest]);
  }
  const { scratch, source, project } = {
    scratch: at('scratch'),
    source: at('source'),
    project: at('project'),
  };
  return { trees, scratch, source, project, npmCache: at('npm-cache'), env };
}

function repository(path: string, shape: TreeShape, owner: Owner, env: NodeJS.ProcessEnv): LowerTree {
  const files = makeSourceTree(path, shape);
  // Before git looks at them, since it reads again what has changed its owner.
  const given = isRoot && owner === 'ordinary';
  if (given) execFileSync('chown', ['-R', `${ORDINARY}:${ORDINARY}`, path]);
  commitAll(path, { argv: given ? asOrdinary : [], env });
  appendFileSync(join(path, '.git/info/exclude'), `/${OUT}\n`);
  copyFileSync(join(path, '.git/index'), `${path}.index`);
  const objects = readdirSync(join(path, '.git/objects'), { recursive: true, encoding: 'utf8' })
    .filter((name) => OBJECT.test(name))
    .map((name) => join('.git/objects', name));
  return { path, files, objects };
}

/** One file of random bytes, so that no layer can be clever about them; on the disk, so that its cache can be dropped. */
function stream(path: string): LowerTree {
  mkdirSync(path);
  const size = ['bs=1M', `count=${STREAM_BYTES >> 20}`, 'conv=fsync'];
  execFileSync('dd', ['if=/dev/urandom', `of=${join(path, STREAM_FILE)}`, ...size], { stdio: 'ignore' });
  return { path, files: [STREAM_FILE], objects: [] };
}

/** Puts a lower back to what it was: what was written is gone, and git's index is the first one. */
export function restore(path: string): void {
  rmSync(join(path, OUT), { recursive: true, force: true });
  const first = `${path}.index`;
  if (!existsSync(first)) return;
  const index = join(path, '.git/index');
  copyFileSync(first, index); // in place: a new file would be another user's
  const { atime, mtime } = statSync(first);
  utimesSync(index, atime, mtime);
}

/** Drops a file's pages from the page cache: posix_fadvise(DONTNEED), which dd has an option for. */
export function dropFromCache(path: string): void {
  execFileSync('dd', [`if=${path}`, 'iflag=nocache', 'count=0'], { stdio: 'ignore' });
}

/** Brings a file into the page cache of the filesystem it is on. */
export function readOnce(path: string): void {
  execFileSync('cat', [path], { stdio: ['ignore', 'ignore', 'inherit'] });
}

function fillNpmCache(project: string, cache: string, say: (line: string) => void): void {
  say('an npm cache with the packages that npm ci installs (from the registry)');
  execFileSync('npm', npmCi(cache, { offline: false }), {
    cwd: project,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  rmSync(join(project, 'node_modules'), { recursive: true, force: true });
}

/** Arguments of `npm` that install what the lockfile says, and do nothing else. */
export function npmCi(cache: string, { offline }: { offline: boolean }): string[] {
  const quiet = ['--no-audit', '--no-fund', '--ignore-scripts', '--no-update-notifier', '--logs-max=0'];
  return ['ci', ...(offline ? ['--offline'] : []), '--cache', cache, ...quiet];
}

function environment(home: string): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: home, LANG: 'C.UTF-8' };
}
