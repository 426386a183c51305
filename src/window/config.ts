/**
 * Configuration files: data only, never code, because the author of a workspace is not the person who runs forget
 * in it, as root perhaps. For the same reason a workspace's file is opened without following a link, without
 * waiting for a fifo, and only up to a size.
 *
 * The search goes from the workspace up to the root of its git repository, and the nearest directory with a file
 * wins: whoever starts an agent in a part of a repository must not lose what the repository protects. It goes no
 * further: what lies above belongs to nobody in particular (/tmp, /home). The search is done here, not by a
 * library: those read a path as UTF-8, follow links, and read whatever they find to its end.
 *
 * yaml and zod are loaded only once a file has been found; without one the search costs a few lstat calls.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from 'node:fs';
import { posix } from 'node:path';
import { bytesOf, displayName } from '../sys/bytes.ts';
import { Failure } from './failure.ts';
import type { Preset } from './presets/preset.ts';
import { absolutePath } from './workspace.ts';

export interface Config {
  protect?: string[] | undefined;
  exempt?: string[] | undefined;
  defaults?: boolean | undefined;
  ignoreCase?: boolean | undefined;
  /** Bytes. */
  upperSize?: number | undefined;
  hide?: boolean | undefined;
  readonly?: boolean | undefined;
  quiet?: boolean | undefined;
  /** Other directories to cover: absolute, or from the home with `~/`. Without `protect` all of one is protected. */
  roots?: { directory: string; protect?: string[] | undefined; exempt?: string[] | undefined }[] | undefined;
  /** The person's own, tried before those that come with forget. */
  presets?: Preset[] | undefined;
  /** Parts that are always chosen, by preset. */
  parts?: Record<string, string[]> | undefined;
}

export interface LoadedConfig {
  config: Config;
  /** Byte string, absolute. */
  path: string;
  /** As messages and rules name it: `.forgetrc`, `package.json#forget`, or the whole path when outside the workspace. */
  name: string;
}

export interface Configs {
  /** The person's own, or the file that `--config` names: may do anything. */
  personal: LoadedConfig | undefined;
  /** The workspace's: may protect more. */
  workspace: LoadedConfig | undefined;
}

const workspaceNames = ['.forgetrc', 'forget.config.json', 'package.json'];
const personalNames = ['config.json', 'config.yaml'];
const longest = 1024 * 1024;

/**
 * `file` is a path named by the person, read in place of all others; false means none at all. `workspace` is a
 * real path. Throws a Failure for a file that cannot be read or is not valid.
 */
export async function loadConfigs(
  workspace: string,
  cwd: string,
  file: string | false | undefined,
): Promise<Configs> {
  if (file === false) return { personal: undefined, workspace: undefined };
  if (file !== undefined) {
    const path = absolutePath(file, cwd);
    const name = displayName(file);
    const loaded = await load(path, name, { follow: true });
    if (!loaded) throw new Failure(`${name}: no such configuration file`);
    return { personal: loaded, workspace: undefined };
  }
  return { personal: await loadPersonal(), workspace: await searchWorkspace(workspace) };
}

/** The person's own, where there is one. Throws a Failure as `loadConfigs` does. */
export async function loadPersonal(): Promise<LoadedConfig | undefined> {
  const own = personalDirectory();
  return own === undefined ? undefined : loadFrom(own, personalNames, displayName, { follow: true });
}

/**
 * The files, absolute, from which this window's rules come or could come. A package.json counts only when it holds
 * rules: an agent that runs `npm install` has to write it.
 */
export function configFilesOf(workspace: string, configs: Configs): string[] {
  const files = new Set(workspaceNames.slice(0, 2).map((name) => `${workspace}/${name}`));
  for (const loaded of [configs.personal, configs.workspace]) {
    if (loaded) files.add(posix.normalize(loaded.path));
  }
  return [...files];
}

async function searchWorkspace(workspace: string): Promise<LoadedConfig | undefined> {
  const root = gitRoot(workspace) ?? workspace;
  for (let dir = workspace; ; dir = posix.dirname(dir)) {
    const name = (path: string) => displayName(dir === workspace ? posix.basename(path) : path);
    const loaded = await loadFrom(dir, workspaceNames, name, { follow: false });
    if (loaded || dir === root) return loaded;
  }
}

/** The nearest directory with a `.git` that belongs to root, to this user or to the workspace's owner. */
function gitRoot(workspace: string): string | undefined {
  const trusted = new Set([0, process.getuid!(), lstat(workspace)?.uid]);
  for (let dir = workspace; dir !== '/'; dir = posix.dirname(dir)) {
    const git = lstat(posix.join(dir, '.git'));
    if (git) return trusted.has(git.uid) ? dir : undefined;
  }
  return undefined;
}

/** `$XDG_CONFIG_HOME/forget`; a relative value is to be ignored (XDG base directory specification). */
function personalDirectory(): string | undefined {
  const { XDG_CONFIG_HOME: xdg, HOME: home } = process.env;
  if (xdg?.startsWith('/')) return posix.join(bytesOf(xdg), 'forget');
  return home?.startsWith('/') ? posix.join(bytesOf(home), '.config/forget') : undefined;
}

async function loadFrom(
  dir: string,
  names: readonly string[],
  display: (path: string) => string,
  options: { follow: boolean },
): Promise<LoadedConfig | undefined> {
  let found: LoadedConfig | undefined;
  for (const file of names) {
    const path = posix.join(dir, file);
    const loaded = await load(path, display(path), options);
    if (!loaded) continue;
    if (found) throw new Failure(`two configurations, ${found.name} and ${loaded.name}: keep one of them`);
    found = loaded;
  }
  return found;
}

async function load(
  path: string,
  name: string,
  options: { follow: boolean },
): Promise<LoadedConfig | undefined> {
  const isPackage = posix.basename(path) === 'package.json';
  const text = readBounded(path, name, { ...options, optional: isPackage });
  if (text === undefined) return undefined;
  if (!isPackage) return { config: await parse(text, name, path.endsWith('.json')), path, name };
  // Most package.json have no such key, and must cost nothing.
  if (!text.includes('"forget"')) return undefined;
  const value: unknown = Object(parseJson(text, name)).forget;
  if (value === undefined) return undefined;
  const { validateConfig } = await import('./config-schema.ts');
  return { config: validateConfig(value, `${name}#forget`), path, name: `${name}#forget` };
}

async function parse(text: string, name: string, json: boolean): Promise<Config> {
  const value = json ? parseJson(text, name) : (await import('./config-yaml.ts')).parseYaml(text, name);
  const { validateConfig } = await import('./config-schema.ts');
  return validateConfig(value, name);
}

function parseJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Failure(`${name}: is not JSON: ${(error as Error).message.split('\n')[0]}`);
  }
}

/** The file's text; undefined when there is none, or when it is `optional` and not an ordinary file. */
function readBounded(
  path: string,
  name: string,
  kind: { follow: boolean; optional: boolean },
): string | undefined {
  const entry = lstat(path);
  if (!entry) return undefined;
  if (entry.isSymbolicLink() && !kind.follow) {
    if (kind.optional) return undefined;
    throw new Failure(`${name}: is a symbolic link; put the file itself there, or name it with --config`);
  }
  let fd: number;
  try {
    const follow = kind.follow ? 0 : constants.O_NOFOLLOW;
    fd = openSync(Buffer.from(path, 'latin1'), constants.O_RDONLY | constants.O_NONBLOCK | follow);
  } catch (error) {
    throw new Failure(`${name}: cannot be opened (${(error as NodeJS.ErrnoException).code})`);
  }
  try {
    if (!fstatSync(fd).isFile()) {
      if (kind.optional) return undefined;
      throw new Failure(`${name}: is not an ordinary file`);
    }
    return decode(readUpTo(fd, longest, name), name);
  } finally {
    closeSync(fd);
  }
}

function readUpTo(fd: number, most: number, name: string): Buffer {
  const buffer = Buffer.allocUnsafe(most + 1);
  let length = 0;
  for (;;) {
    const count = readSync(fd, buffer, length, buffer.length - length, null);
    if (count === 0) return buffer.subarray(0, length);
    length += count;
    if (length > most)
      throw new Failure(`${name}: is larger than ${most / 1024 / 1024} MiB; that is no configuration`);
  }
}

function decode(bytes: Buffer, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Failure(`${name}: is not UTF-8`);
  }
}

function lstat(path: string) {
  try {
    return lstatSync(Buffer.from(path, 'latin1'), { throwIfNoEntry: false });
  } catch (error) {
    // Search permission missing above the workspace, or a personal directory that is another user's.
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'EACCES' || code === 'ENAMETOOLONG') return undefined;
    throw error;
  }
}
