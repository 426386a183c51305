/** `--agent NAME[+PART]...` and its errors, which say what there is. */
import { Failure } from '../failure.ts';
import type { Choice } from './covers.ts';
import type { Preset } from './preset.ts';

/**
 * The preset and the parts that `text` names; `always` are parts that the person's configuration adds. Throws a Failure that
 * lists what is known.
 */
export function choose(
  text: string,
  presets: readonly Preset[],
  always: Readonly<Record<string, readonly string[]>> = {},
): Choice {
  const [name = '', ...parts] = text.split('+');
  return choice(presetNamed(name, presets), parts, always);
}

/** With the parts that the person's configuration adds to the preset. Throws a Failure for one that it does not have. */
export function choice(
  preset: Preset,
  parts: readonly string[],
  always: Readonly<Record<string, readonly string[]>>,
): Choice {
  const all = [...new Set([...(always[preset.name] ?? []), ...parts])];
  const known = Object.keys(preset.parts ?? {});
  for (const part of all) {
    if (known.includes(part)) continue;
    const has = known.length > 0 ? `it has ${known.join(', ')}` : 'it has none';
    throw new Failure(`preset ${preset.name} has no part "${part}"${didYouMean(part, known)}; ${has}`);
  }
  return { preset, parts: all };
}

/** Throws a Failure that lists what is known. */
export function presetNamed(name: string, presets: readonly Preset[]): Preset {
  const found = presets.find((preset) => preset.name === name);
  if (found) return found;
  const names = presets.map((preset) => preset.name);
  // By its program or its title somebody may well ask for it.
  const meant = presets.find(
    ({ programs, title }) => programs.includes(name) || title.toLowerCase() === name.toLowerCase(),
  );
  const hint = meant ? ` (did you mean ${meant.name}?)` : didYouMean(name, names);
  throw new Failure(`no preset "${name}"${hint}; known are ${names.join(', ')}`);
}

function didYouMean(word: string, known: readonly string[]): string {
  const [nearest] = known
    .map((candidate) => ({ candidate, steps: distance(word, candidate) }))
    .filter(
      ({ candidate, steps }) => steps <= Math.max(1, candidate.length / 3) || candidate.startsWith(word),
    )
    .sort((a, b) => a.steps - b.steps);
  return nearest && word !== '' ? ` (did you mean ${nearest.candidate}?)` : '';
}

/** Levenshtein's. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + same));
    }
    row = next;
  }
  return row[b.length]!;
}
