/**
 * Rules of a configuration that stands above the workspace (at the root of its repository) speak of paths
 * relative to that place. This says what they mean within the workspace.
 */
import micromatch from 'micromatch';
import { foldCase, GlobError, lastSegment, parseGlobs } from '../overlay/glob.ts';

/** All below the workspace. */
const everything = '/**';

/**
 * The patterns, relative to the workspace, that match there what `pattern` matches; none when it speaks of other
 * places only. `below` is the workspace's path from the configuration's directory: a byte string, not empty.
 */
export function reanchor(pattern: string, below: string, options: { ignoreCase: boolean }): string[] {
  const above = below.split('/');
  const matches = (name: string, glob: string) =>
    parseGlobs(glob, options.ignoreCase).some((one) =>
      lastSegment(one).matches(options.ignoreCase ? foldCase(name) : name),
    );
  const body = pattern.replace(/\/+$/, '');
  const tail = pattern.slice(body.length);
  try {
    // gitignore: a slash before the end ties a pattern to its place; without one it matches a name at any depth.
    if (!body.includes('/')) {
      return above.some((name) => matches(name, body)) ? [pattern, everything] : [pattern];
    }
    const found = micromatch
      .braces(body, { expand: true })
      .flatMap((one) => remainders(one.replace(/^\//, '').split('/'), above, matches));
    return [...new Set(found)].map((rest) => (rest === everything ? rest : rest + tail));
  } catch (error) {
    // Left as it is: compiling the rules names the pattern and what is wrong with it.
    if (error instanceof GlobError) return [pattern];
    throw error;
  }
}

function remainders(
  globs: string[],
  above: string[],
  matches: (name: string, glob: string) => boolean,
): string[] {
  const [glob, ...rest] = globs;
  // The pattern has matched the workspace, or a directory that holds it.
  if (glob === undefined) return [everything];
  const [name, ...deeper] = above;
  if (name === undefined) return [`/${globs.join('/')}`];
  if (glob === '**') {
    if (rest.length === 0) return [everything];
    return [...remainders(rest, above, matches), ...remainders(globs, deeper, matches)];
  }
  return matches(name, glob) ? remainders(rest, deeper, matches) : [];
}
