/** From a preset to what a window covers, here and now. Pure: nothing is read from the disk. */
import { posix } from 'node:path';
import type { RuleLine } from '../../overlay/rules.ts';
import { bytesOf } from '../../sys/bytes.ts';
import type { Cover } from '../cover.ts';
import { expandPath, type Surroundings } from './path.ts';
import type { Place, Preset } from './preset.ts';

/** A preset, and the parts of it that were chosen. */
export interface Choice {
  preset: Preset;
  parts: readonly string[];
}

export interface Covering {
  covers: Cover[];
  workspaceRules: RuleLine[];
  /** For the person: what the parts that were not chosen would change. */
  notes: string[];
}

/** Parts that the preset does not have are no part of a Choice (choose.ts). Throws a Failure for a path not in the notation. */
export function coversOf({ preset, parts }: Choice, around: Surroundings): Covering {
  const source = `preset ${preset.name}`;
  const byDirectory = new Map<string, Omit<Cover, 'directory' | 'source'>>();
  const chosen = parts.flatMap((name) => preset.parts?.[name]?.places ?? []);
  for (const place of [...preset.places, ...chosen]) {
    const found = locate(place, around, source);
    if (!found) continue;
    const cover = byDirectory.get(found.directory) ?? {
      make: place.make ?? false,
      otherwise: place.otherwise && expandPath(bytesOf(place.otherwise), around, source),
      rules: [],
    };
    byDirectory.set(found.directory, cover);
    cover.rules.push(...found.rules.map((rule) => ruleLine(rule, source)));
  }
  return {
    covers: [...byDirectory].map(([directory, cover]) => ({ directory, ...cover, source })),
    workspaceRules: (preset.workspace?.rules ?? []).map((rule) => ruleLine(rule, source)),
    notes: Object.entries(preset.parts ?? {}).flatMap(([name, { without }]) =>
      without === undefined || parts.includes(name)
        ? []
        : [`${without}; --agent ${preset.name}+${name} changes that`],
    ),
  };
}

/** A file is a rule in the directory that holds it: a mount over the file itself would make its replacement fail (EBUSY). */
function locate(
  place: Place,
  around: Surroundings,
  source: string,
): { directory: string; rules: string[] } | undefined {
  const path = expandPath(bytesOf((place.directory ?? place.file)!), around, source);
  if (path === undefined) return undefined;
  if (place.directory !== undefined) return { directory: path, rules: place.rules ?? [] };
  const name = Buffer.from(posix.basename(path), 'latin1').toString('utf8');
  return { directory: posix.dirname(path), rules: [`/${name.replace(/[\\*?[\]{}()!|+@ ]/g, '\\$&')}`] };
}

/** As in a .gitignore: `!` exempts. */
function ruleLine(pattern: string, source: string): RuleLine {
  return pattern.startsWith('!')
    ? { pattern: pattern.slice(1), exempt: true, source }
    : { pattern, exempt: false, source };
}
