/** From what a person asked for, or what the command line shows, to what a window covers. */
import { homedir } from 'node:os';
import type { RuleLine } from '../../overlay/rules.ts';
import { rawEnvironment } from '../../sys/argv.ts';
import { bytesOf, displayName } from '../../sys/bytes.ts';
import type { Cover } from '../cover.ts';
import { Failure } from '../failure.ts';
import { tilde } from '../shown-path.ts';
import { choice, choose } from './choose.ts';
import { type Choice, coversOf } from './covers.ts';
import { KNOWN_PRESETS } from './known.ts';
import type { Surroundings } from './path.ts';
import type { Preset } from './preset.ts';
import { recognise } from './recognise.ts';

export interface Request {
  /** As typed after `--agent`; undefined where it was not given. */
  agents: readonly string[] | undefined;
  /** The command that will run, byte strings; undefined for a mount. */
  argv: readonly string[] | undefined;
  /** The person's own presets. One with the name of a known preset stands in its place. */
  own: readonly Preset[];
  /** Parts that the person's configuration adds, by preset. */
  parts: Readonly<Record<string, readonly string[]>>;
  cwd: string;
}

export interface Selection {
  covers: Cover[];
  workspaceRules: RuleLine[];
  /** For the person at the start: what is covered, and what follows from it. */
  lines: string[];
}

export function allPresets(own: readonly Preset[]): Preset[] {
  const names = new Set(own.map(({ name }) => name));
  return [...own, ...KNOWN_PRESETS.filter(({ name }) => !names.has(name))];
}

/** Throws a Failure for a preset or a part that is not known. */
export function selectPresets({ agents, argv, own, parts, cwd }: Request): Selection {
  const presets = allPresets(own);
  for (const name of Object.keys(parts)) {
    // A misspelt one would silently be none.
    if (!presets.some((preset) => preset.name === name)) choose(name, presets);
  }
  const found = argv && recognise(argv, presets);
  const choices: Choice[] = [];
  if (agents === undefined) {
    if (found) choices.push(choice(found.preset, [], parts));
  } else if (!agents.includes('none')) {
    choices.push(...agents.map((text) => choose(text, presets, parts)));
  } else if (agents.length > 1) {
    throw new Failure('--agent none stands alone: leave out the others, or the none');
  }
  const selection: Selection = { covers: [], workspaceRules: [], lines: [] };
  if (choices.length === 0) return selection;
  const around = surroundings(cwd, found?.env);
  for (const one of choices) {
    const { covers, workspaceRules, notes } = coversOf(one, around);
    selection.covers.push(...covers);
    selection.workspaceRules.push(...workspaceRules);
    const places = covers.map(({ directory }) => displayName(tilde(directory, around.home)));
    if (workspaceRules.length > 0) places.push('the workspace');
    selection.lines.push(
      `covering ${one.preset.title}: ${places.join(', ')}; "forget presets ${one.preset.name}" says what is forgotten there and what stays`,
      ...notes,
    );
  }
  return selection;
}

/** Where forget was started, with what the command line itself sets. */
export function surroundings(cwd: string, set: ReadonlyMap<string, string> = new Map()): Surroundings {
  const env = new Map(
    rawEnvironment().map((entry) => {
      const equals = entry.indexOf('=');
      return [entry.slice(0, equals), entry.slice(equals + 1)];
    }),
  );
  // A variable of shells, which they do not export.
  env.set('UID', String(process.getuid!()));
  for (const [name, value] of set) env.set(name, value);
  return { env, home: env.get('HOME') || bytesOf(homedir()), cwd };
}
