/**
 * What a window is to be, from the defaults, the configuration files and the command line. Rules stand in this
 * order, and the last match wins: defaults, presets, the person's configuration, the workspace's, the command line as
 * typed.
 *
 * A workspace's configuration may protect more. What would weaken the window there is left out, and said: the
 * window is then stricter than its author asked for, never laxer than the person who runs it did.
 */
import { homedir, totalmem } from 'node:os';
import { posix } from 'node:path';
import type { RuleLine } from '../overlay/rules.ts';
import { bytesOf } from '../sys/bytes.ts';
import { type Config, configFilesOf, type LoadedConfig, loadConfigs } from './config.ts';
import type { Cover } from './cover.ts';
import { Failure } from './failure.ts';
import { absolutePath, resolveWorkspace } from './workspace.ts';

/** Who serves the mount: forget's own engine on the kernel's device, or libfuse 2.9. */
export type DriverName = 'kernel' | 'fuse-native';

/** `leak`: something escaped. `protected-write`: the window caught anything at all. */
export type FailOn = 'leak' | 'protected-write';

export interface WindowSettings {
  /** Byte string: absolute real path. */
  workspace: string;
  rules: RuleLine[];
  /** Besides the workspace. */
  covers: Cover[];
  ignoreCase: boolean;
  /** Bytes. */
  upperSize: number;
  hide: boolean;
  readonly: boolean;
  keepCaps: boolean;
  driver: DriverName;
  /** Byte string, absolute. */
  report: string | undefined;
  /** What makes the exit code of `forget exec` 3. */
  failOn: ReadonlySet<FailOn>;
  quiet: boolean;
  verbose: boolean;
  /** Byte strings, absolute: configuration files, read-only inside the window. */
  configFiles: string[];
}

/** What the command line gave; undefined where it gave nothing. Paths are byte strings. */
export interface SettingsOptions {
  workspace?: string | undefined;
  /** In command-line order, patterns as ordinary text. */
  rules: readonly RuleLine[];
  /** Directories to cover wholly. */
  roots?: readonly string[] | undefined;
  /** Presets by name, or `none`; where it is not given, the command's own. */
  agents?: readonly string[] | undefined;
  /** The command that will run, byte strings. */
  argv?: readonly string[] | undefined;
  /** False leaves out the default rules. */
  defaults?: boolean | undefined;
  /** A file to read in place of all configuration, or false for none. */
  config?: string | false | undefined;
  report?: string | undefined;
  failOn?: readonly FailOn[] | undefined;
  upperSize?: number | undefined;
  quiet?: boolean | undefined;
  hide?: boolean | undefined;
  readonly?: boolean | undefined;
  keepCaps?: boolean | undefined;
  driver?: DriverName | undefined;
  verbose?: boolean | undefined;
}

export interface BuiltSettings {
  settings: WindowSettings;
  /** Lines that the person must see, `--quiet` or not. */
  notices: string[];
  /** Lines that say what is covered, for those who did not say `--quiet`. */
  covering: string[];
}

const defaultUpperSize = 1024 ** 3;

/** Throws a Failure of one line for anything that cannot be. */
export async function buildSettings(options: SettingsOptions, cwd: string): Promise<BuiltSettings> {
  const workspace = resolveWorkspace(options.workspace ?? cwd, cwd);
  const configs = await loadConfigs(workspace, cwd, options.config);
  const personal = configs.personal?.config ?? {};
  const shared = configs.workspace?.config ?? {};
  const ignoreCase = personal.ignoreCase ?? false;
  const { selectPresets } = await import('./presets/select.ts');
  const selected = selectPresets({
    agents: options.agents,
    argv: options.argv,
    own: personal.presets ?? [],
    parts: personal.parts ?? {},
    cwd,
  });
  const rules: RuleLine[] = [];
  if (options.defaults ?? personal.defaults ?? true) {
    const { DEFAULT_RULES } = await import('../overlay/rules.ts');
    rules.push(...DEFAULT_RULES);
  }
  rules.push(...selected.workspaceRules);
  if (configs.personal) rules.push(...rulesOf(configs.personal));
  if (configs.workspace) rules.push(...(await workspaceRules(workspace, configs.workspace, ignoreCase)));
  rules.push(...options.rules.map((rule) => ruleLine(rule.pattern, rule.exempt, rule.source)));
  return {
    settings: {
      workspace,
      rules,
      covers: [
        ...selected.covers,
        ...(personal.roots ?? []).map((root) => coverOf(root, configs.personal!.name)),
        ...(options.roots ?? []).map((directory) => wholeCover(absolutePath(directory, cwd), '--root')),
      ],
      ignoreCase,
      upperSize:
        options.upperSize ?? personal.upperSize ?? Math.min(defaultUpperSize, Math.floor(memory() / 4)),
      hide: options.hide ?? Boolean(personal.hide || shared.hide),
      readonly: options.readonly ?? Boolean(personal.readonly || shared.readonly),
      keepCaps: options.keepCaps ?? false,
      driver: options.driver ?? 'kernel',
      report: options.report === undefined ? undefined : absolutePath(options.report, cwd),
      failOn: new Set(options.failOn),
      quiet: options.quiet ?? personal.quiet ?? false,
      verbose: options.verbose ?? false,
      configFiles: configFilesOf(workspace, configs),
    },
    notices: configs.workspace ? weakenings(configs.workspace) : [],
    covering: selected.lines,
  };
}

/** RAM in bytes, or what this process's cgroup may have of it. */
function memory(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(totalmem(), constrained) : totalmem();
}

function rulesOf({ config, name }: LoadedConfig): RuleLine[] {
  return [
    ...(config.protect ?? []).map((pattern) => ruleLine(pattern, false, name)),
    ...(config.exempt ?? []).map((pattern) => ruleLine(pattern, true, name)),
  ];
}

function wholeCover(directory: string, source: string): Cover {
  return { directory, rules: [{ pattern: '/**', exempt: false, source }], source };
}

function coverOf({ directory, protect, exempt }: NonNullable<Config['roots']>[number], name: string): Cover {
  const path = bytesOf(directory.replace(/^~(?=\/|$)/, homedir()));
  const rules = [
    ...(protect ?? ['/**']).map((pattern) => ruleLine(pattern, false, name)),
    ...(exempt ?? []).map((pattern) => ruleLine(pattern, true, name)),
  ];
  return { directory: path, rules, source: name };
}

/** As in a .gitignore, `!` before a pattern exempts what it matches; `\!` begins a name. */
function ruleLine(pattern: string, exempt: boolean, source: string): RuleLine {
  if (!pattern.startsWith('!')) return { pattern, exempt, source };
  if (exempt) throw new Failure(`${source}: "${pattern}" exempts twice; leave out the "!"`);
  return { pattern: pattern.slice(1), exempt: true, source };
}

async function workspaceRules(
  workspace: string,
  loaded: LoadedConfig,
  ignoreCase: boolean,
): Promise<RuleLine[]> {
  const patterns = (loaded.config.protect ?? []).filter((pattern) => !pattern.startsWith('!'));
  const home = posix.dirname(loaded.path);
  if (home === workspace) return patterns.map((pattern) => ruleLine(pattern, false, loaded.name));
  const below = posix.relative(home, workspace);
  const { reanchor } = await import('./reanchor.ts');
  return patterns
    .flatMap((pattern) => reanchor(pattern, below, { ignoreCase }))
    .map((pattern) => ruleLine(pattern, false, loaded.name));
}

function weakenings({ config, name }: LoadedConfig): string[] {
  const quoted = (patterns: string[]) => patterns.map((pattern) => `"${pattern}"`).join(', ');
  const ignored: string[] = [];
  const negated = (config.protect ?? []).filter((pattern) => pattern.startsWith('!'));
  if (negated.length > 0) ignored.push(`protect ${quoted(negated)}`);
  if (config.exempt?.length) ignored.push(`exempt ${quoted(config.exempt)}`);
  if (config.defaults === false) ignored.push('defaults: false');
  if (config.ignoreCase) ignored.push('ignoreCase: true');
  if (config.upperSize !== undefined) ignored.push(`upperSize: ${config.upperSize}`);
  if (config.quiet) ignored.push('quiet: true');
  if (config.roots?.length) ignored.push('roots');
  if (config.presets) ignored.push('presets');
  if (config.parts) ignored.push('parts');
  return ignored.map(
    (what) =>
      `${name}: ignored ${what}: a workspace's configuration may only protect more; use an option, or your own configuration`,
  );
}
