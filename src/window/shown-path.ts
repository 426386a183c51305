/** How the paths of a window's roots are shown to people. */
import { homedir } from 'node:os';
import { posix } from 'node:path';
import { bytesOf, displayName } from '../sys/bytes.ts';
import { isWithin } from './mountinfo.ts';

/**
 * For paths relative to `directory`: relative to the workspace where they lie in it, absolute where they do not, with
 * `~/` for the home. Byte strings in, text out.
 */
export function shownFrom(directory: string, workspace: string): (path: string) => string {
  if (directory === workspace) return displayName;
  const home = bytesOf(homedir());
  return (path) => {
    const absolute = posix.join(directory, path);
    if (absolute !== workspace && isWithin(absolute, workspace)) {
      return displayName(absolute.slice(workspace.length + 1));
    }
    return displayName(tilde(absolute, home));
  };
}

/** An absolute path with `~` for the home, where that is no surprise. */
export function tilde(path: string, home = bytesOf(homedir())): string {
  return home !== '/' && isWithin(path, home) ? `~${path.slice(home.length)}` : path;
}
