/**
 * Which agent a command line starts. By names alone, and nothing clever: what is started through other programs is named with
 * `--agent`. It must cost a start of forget nothing that can be measured.
 */
import { posix } from 'node:path';
import type { Preset } from './preset.ts';

export interface Recognised {
  preset: Preset;
  /** Variables that the command line itself sets: `env NAME=value prog`. */
  env: ReadonlyMap<string, string>;
}

/** They run a package's program by its name. */
const PACKAGE_RUNNERS = new Set(['npx', 'bunx', 'pnpx']);
/** They run a script. */
const INTERPRETERS = new Set(['node', 'nodejs', 'bun', 'deno']);

/** `argv` are byte strings, as typed. The first preset that fits, in the order given. */
export function recognise(argv: readonly string[], presets: readonly Preset[]): Recognised | undefined {
  const env = new Map<string, string>();
  let words = argv;
  while (posix.basename(words[0] ?? '') === 'env') words = afterEnv(words, env);
  const { programs, packages } = candidates(words);
  const preset = presets.find(
    (one) =>
      programs.some((name) => one.programs.includes(name)) ||
      packages.some((name) => one.packages?.includes(name)),
  );
  return preset && { preset, env };
}

/** The command of `env`, with the options that take no other words; NAME=value go into `env`. */
function afterEnv(words: readonly string[], env: Map<string, string>): readonly string[] {
  let at = 1;
  for (; at < words.length; at++) {
    const word = words[at]!;
    const equals = word.indexOf('=');
    if (word === '-u') at++;
    else if (word.startsWith('-')) continue;
    else if (equals > 0) env.set(word.slice(0, equals), word.slice(equals + 1));
    else break;
  }
  return words.slice(at);
}

/** By which names the program that `words` start may be known. */
function candidates(words: readonly string[]): { programs: string[]; packages: string[] } {
  const program = words[0] ?? '';
  const name = posix.basename(program);
  const programs = [name];
  const packages = packageOf(program);
  const first = words.find((word, at) => at > 0 && !word.startsWith('-'));
  if (first === undefined) return { programs, packages };
  // With a version after the name: @openai/codex@1.2.3.
  if (PACKAGE_RUNNERS.has(name)) packages.push(first.replace(/(?<=.)@[^/]*$/, ''));
  if (INTERPRETERS.has(name)) {
    programs.push(posix.basename(first));
    packages.push(...packageOf(first));
  }
  return { programs, packages };
}

/** The package that a file belongs to, as npm installs them. */
function packageOf(path: string): string[] {
  const [, owner] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//s.exec(path) ?? [];
  return owner === undefined ? [] : [owner];
}
