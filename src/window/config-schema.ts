/** What a configuration may hold. Loaded only when there is a configuration file: it brings zod with it. */
import * as z from 'zod/mini';
import type { Config } from './config.ts';
import { Failure } from './failure.ts';
import { parseSize } from './size.ts';

const globs = z.array(z.string().check(z.minLength(1)));

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
};
const keys = Object.keys(allowed).join(', ');

/** Throws a Failure of one line that names the file, the key and what is allowed there. */
export function validateConfig(value: unknown, file: string): Config {
  // A file of comments only.
  if (value === null) return {};
  const parsed = schema.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    if (issue.code === 'unrecognized_keys') {
      throw new Failure(`${file}: ${JSON.stringify(issue.keys[0])} is not a key; allowed are ${keys}`);
    }
    const [key, index] = issue.path;
    if (key === undefined) throw new Failure(`${file}: must be a map with the keys ${keys}`);
    const place = index === undefined ? String(key) : `${String(key)}[${String(index)}]`;
    throw new Failure(`${file}: ${place} is wrong; ${String(key)} must be ${allowed[key as keyof Config]}`);
  }
  const { upperSize, ...rest } = parsed.data;
  if (upperSize === undefined) return rest;
  return { ...rest, upperSize: parseSize(String(upperSize), `${file}: upperSize`) };
}
