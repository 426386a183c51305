/** What a configuration may hold. Loaded only when there is a configuration file: it brings zod with it. */
import * as z from 'zod/mini';
import type { Config } from './config.ts';
import { Failure } from './failure.ts';
import { parseSize } from './size.ts';

const globs = z.array(z.string().check(z.minLength(1)));

const text = z.string().check(z.minLength(1));
const texts = z.array(text);
const noted = { source: z.optional(text), date: z.optional(text) };

const place = z
  .strictObject({
    directory: z.optional(text),
    file: z.optional(text),
    rules: z.optional(globs),
    make: z.optional(z.boolean()),
    otherwise: z.optional(text),
    ...noted,
  })
  .check(z.refine((one) => (one.directory === undefined) !== (one.file === undefined)))
  .check(z.refine((one) => one.make === undefined || one.directory !== undefined))
  .check(z.refine((one) => one.otherwise === undefined || one.make === true))
  .check(z.refine((one) => (one.rules === undefined) === (one.directory === undefined)));

const preset = z.strictObject({
  name: z.string().check(
    z.regex(/^[A-Za-z0-9][A-Za-z0-9-]*$/),
    z.refine((name) => name !== 'none'),
  ),
  title: text,
  programs: texts,
  packages: z.optional(texts),
  places: z.array(place),
  workspace: z.optional(z.strictObject({ rules: globs, ...noted })),
  parts: z.optional(
    z.record(
      z.string().check(z.regex(/^[A-Za-z0-9][A-Za-z0-9-]*$/)),
      z.strictObject({ title: text, without: z.optional(text), places: z.array(place) }),
    ),
  ),
  real: z.optional(texts),
  notes: z.optional(texts),
});

const schema = z.strictObject({
  protect: z.optional(globs),
  exempt: z.optional(globs),
  defaults: z.optional(z.boolean()),
  ignoreCase: z.optional(z.boolean()),
  upperSize: z.optional(z.union([z.number(), z.string()])),
  hide: z.optional(z.boolean()),
  readonly: z.optional(z.boolean()),
  quiet: z.optional(z.boolean()),
  roots: z.optional(
    z.array(
      z.strictObject({
        directory: z.string().check(z.regex(/^(?:~?\/|~$)/)),
        protect: z.optional(globs),
        exempt: z.optional(globs),
      }),
    ),
  ),
  presets: z.optional(z.array(preset)),
  parts: z.optional(z.record(z.string(), texts)),
});

const allowed: Record<keyof Config, string> = {
  protect: 'a list of globs, each a quoted string',
  exempt: 'a list of globs, each a quoted string',
  defaults: 'true or false',
  ignoreCase: 'true or false',
  upperSize: 'a number of bytes or a size such as "512M"',
  hide: 'true or false',
  readonly: 'true or false',
  quiet: 'true or false',
  roots: 'a list of {directory, protect, exempt}, the directory absolute or beginning with ~/',
  presets: 'a list of presets; docs/presets.md has their shape',
  parts: 'a map from presets to lists of their parts, such as {"claude": ["config"]}',
};
const keys = Object.keys(allowed).join(', ');

/** Throws a Failure of one line that names the file, the key and what is allowed there. */
export function validateConfig(value: unknown, file: string): Config {
  // A file of comments only.
  if (value === null) return {};
  const parsed = schema.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    if (issue.code === 'unrecognized_keys' && issue.path.length > 0) {
      throw new Failure(`${file}: ${keyPath([...issue.path, issue.keys[0]!])} is not known there`);
    }
    if (issue.code === 'unrecognized_keys') {
      throw new Failure(`${file}: ${JSON.stringify(issue.keys[0])} is not a key; allowed are ${keys}`);
    }
    const [key] = issue.path;
    if (key === undefined) throw new Failure(`${file}: must be a map with the keys ${keys}`);
    throw new Failure(
      `${file}: ${keyPath(issue.path)} is wrong; ${String(key)} must be ${allowed[key as keyof Config]}`,
    );
  }
  const { upperSize, ...rest } = parsed.data;
  if (upperSize === undefined) return rest;
  return { ...rest, upperSize: parseSize(String(upperSize), `${file}: upperSize`) };
}

/** `presets[0].places[1].rules`, as people write it. */
function keyPath(path: readonly PropertyKey[]): string {
  return path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .slice(1);
}
