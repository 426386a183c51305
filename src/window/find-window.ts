/** Which window a person means who does not say: the one they are in, the one that covers where they are, or the only one. */
import { realpathSync } from 'node:fs';
import { posix } from 'node:path';
import { bytesOf, displayName } from '../sys/bytes.ts';
import { listWindows, request, type WindowStatus } from './control.ts';
import { Failure } from './failure.ts';
import type { ListedPath } from './looking-methods.ts';
import { isWithin } from './mountinfo.ts';
import { isId } from './window-id.ts';

/** The window's id. Throws a Failure of one line where it is not plain. */
export async function findWindow(named: string | undefined, cwd: string): Promise<WindowStatus> {
  const silent: string[] = [];
  const windows = await listWindows((id) => silent.push(id));
  // Who is in a window means that one, also where it has no socket, and never a stranger's.
  const id = named ?? process.env.FORGET_WINDOW;
  if (id !== undefined && id !== '') return byId(windows, silent, id);
  // Names in a status are made readable; so is this one.
  const place = displayName(realPath(cwd));
  const depths = new Map(windows.map((window) => [window, depthOf(window, place)]));
  const deepest = Math.max(1, ...depths.values());
  const nearest = windows.filter((window) => depths.get(window) === deepest);
  const candidates = nearest.length > 0 ? nearest : windows;
  if (candidates.length === 1) return candidates[0]!;
  if (candidates.length === 0) {
    throw new Failure(
      silent.length > 0
        ? `window ${silent[0]} does not answer; it is stopped or very busy`
        : 'no window is open',
    );
  }
  const list = candidates.map(({ id, kind, workspace }) => `${id} (${kind} of ${workspace})`).join(', ');
  throw new Failure(`several windows are open; name one with --window: ${list}`);
}

/** The length of the place of it that holds a directory, or 0. */
function depthOf({ mountpoint, workspace, roots }: WindowStatus, directory: string): number {
  const tops = [mountpoint, workspace, ...roots].filter((top) => isWithin(directory, top));
  return Math.max(0, ...tops.map((top) => top.length));
}

function byId(windows: readonly WindowStatus[], silent: readonly string[], id: string): WindowStatus {
  const found = windows.find((window) => window.id === id);
  if (found) return found;
  if (!isId(id))
    throw new Failure(`"${displayName(id)}" is not the id of a window; forget status lists them`);
  if (silent.includes(id)) throw new Failure(`window ${id} does not answer; it is stopped or very busy`);
  throw new Failure(`no window ${id}; forget status lists those there are`);
}

function realPath(cwd: string): string {
  try {
    return realpathSync.native(Buffer.from(cwd, 'latin1'), 'buffer').toString('latin1');
  } catch {
    return cwd;
  }
}

/** All that it holds, or what is at or below one of the paths (byte strings, from the working directory or its workspace). */
export async function heldIn(
  window: WindowStatus,
  paths: readonly string[],
  cwd: string,
): Promise<ListedPath[]> {
  const all: ListedPath[] = [];
  await request(window.id, 'list', {}, { onPart: (part) => all.push(...(part as ListedPath[])) });
  all.sort((a, b) => (a.seenAt < b.seenAt ? -1 : 1));
  if (paths.length === 0) return all;
  const tops = paths.flatMap((path) => placesOf(path, window, realPath(cwd)));
  return all.filter(({ seenAt, realPath: real }) =>
    tops.some((top) => isWithin(seenAt, top) || isWithin(real, top)),
  );
}

function placesOf(path: string, { mountpoint, workspace }: WindowStatus, cwd: string): string[] {
  const fromCwd = posix.resolve(cwd, path);
  if (
    path.startsWith('/') ||
    isWithin(displayName(cwd), mountpoint) ||
    isWithin(displayName(cwd), workspace)
  ) {
    return [fromCwd];
  }
  return [fromCwd, posix.resolve(bytesOf(mountpoint), path)];
}
