/** What `forget presets` shows: presets as they would cover here and now. */
import { displayName } from '../../sys/bytes.ts';
import { tilde } from '../shown-path.ts';
import { choice, presetNamed } from './choose.ts';
import { coversOf } from './covers.ts';
import type { Surroundings } from './path.ts';
import type { Place, Preset } from './preset.ts';
import { allPresets, surroundings } from './select.ts';

/** Names readable. The shape of `forget presets --json`. */
export interface ShownPreset {
  name: string;
  title: string;
  programs: string[];
  packages: string[];
  /** Whether it is one of the person's own. */
  own: boolean;
  /** Absolute directories, with rules in gitignore syntax relative to each. */
  covers: { directory: string; rules: string[] }[];
  /** Rules that the workspace gets. */
  workspace: string[];
  parts: { name: string; title: string; chosen: boolean }[];
  real: string[];
  notes: string[];
  /** Where it stands, each with the date when somebody looked last. */
  sources: { source: string; date: string | undefined }[];
}

export interface ShowRequest {
  /** `NAME[+PART]...`; undefined for all. */
  name: string | undefined;
  own: readonly Preset[];
  parts: Readonly<Record<string, readonly string[]>>;
  cwd: string;
}

/** Throws a Failure for a name that is not known. */
export function showPresets({ name, own, parts, cwd }: ShowRequest): ShownPreset[] {
  const presets = allPresets(own);
  const around = surroundings(cwd);
  const [base = '', ...typed] = name?.split('+') ?? [];
  const wanted = name === undefined ? presets : [presetNamed(base, presets)];
  return wanted.map((preset) => show(preset, typed, own.includes(preset), parts, around));
}

function show(
  preset: Preset,
  typed: readonly string[],
  own: boolean,
  always: Readonly<Record<string, readonly string[]>>,
  around: Surroundings,
): ShownPreset {
  const chosen = choice(preset, typed, always);
  const { covers, workspaceRules, notes } = coversOf(chosen, around);
  const parts = Object.entries(preset.parts ?? {});
  const places: Pick<Place, 'source' | 'date'>[] = [
    ...preset.places,
    ...(preset.workspace ? [preset.workspace] : []),
    ...parts.flatMap(([, part]) => part.places),
  ];
  const sources = new Map(
    places.flatMap(({ source, date }) => (source === undefined ? [] : [[source, date]])),
  );
  return {
    name: preset.name,
    title: preset.title,
    programs: [...preset.programs],
    packages: [...(preset.packages ?? [])],
    own,
    covers: covers.map(({ directory, rules }) => ({
      directory: displayName(directory),
      rules: rules.map(({ pattern, exempt }) => `${exempt ? '!' : ''}${pattern}`),
    })),
    workspace: workspaceRules.map(({ pattern, exempt }) => `${exempt ? '!' : ''}${pattern}`),
    parts: parts.map(([name, { title }]) => ({ name, title, chosen: chosen.parts.includes(name) })),
    real: [...(preset.real ?? [])],
    notes: [...notes, ...(preset.notes ?? [])],
    sources: [...sources].map(([source, date]) => ({ source, date })),
  };
}

/** One line for a list. */
export function summary(preset: ShownPreset): string {
  const places = preset.covers.map(({ directory }) => tilde(directory));
  if (preset.workspace.length > 0) places.push('the workspace');
  const own = preset.own ? ' (your own)' : '';
  return `${preset.name.padEnd(10)} ${preset.title}${own}: ${places.join(', ')}`;
}

/** All of it, for reading. */
export function description(preset: ShownPreset): string {
  const list = (title: string, lines: readonly string[]): string[] =>
    lines.length === 0 ? [] : ['', `${title}:`, ...lines.map((line) => `  ${line}`)];
  const programs = [...preset.programs, ...preset.packages.map((name) => `npx ${name}`)].join(', ');
  return [
    `${preset.name}: ${preset.title}${preset.own ? ' (your own)' : ''}, recognised as ${programs || 'nothing; name it with --agent'}`,
    ...preset.covers.flatMap(({ directory, rules }) =>
      list(`Forgotten in ${directory}, but for what has a "!"`, rules),
    ),
    ...list('Forgotten in the workspace, but for what has a "!"', preset.workspace),
    ...list('Real on purpose', preset.real),
    ...list(
      'To choose',
      preset.parts.map(
        ({ name, title, chosen }) => `--agent ${preset.name}+${name}${chosen ? ' (chosen)' : ''}: ${title}`,
      ),
    ),
    ...list('To know', preset.notes),
    ...list(
      'From',
      preset.sources.map(({ source, date }) => (date === undefined ? source : `${source}; ${date}`)),
    ),
  ].join('\n');
}
