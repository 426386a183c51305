/** Which mount is meant, for commands that work on one: `forget open` and `forget close`. */
import { posix } from 'node:path';
import { displayName } from '../sys/bytes.ts';
import { type CloseAnswer, listWindows, request, type WindowStatus } from './control.ts';
import { Failure } from './failure.ts';
import { isWithin } from './mountinfo.ts';
import { isId } from './window-id.ts';
import { resolveMountedPath } from './workspace.ts';

/**
 * `target` is an id, or a byte string that leads to a mounted workspace, to where it is mounted, or into either; without
 * one the current directory is asked. Nothing is asked of the mount itself. Throws a Failure.
 */
export async function findMount(target: string | undefined, cwd: () => string): Promise<WindowStatus> {
  const silent: string[] = [];
  const windows = await listWindows((id) => silent.push(id));
  if (target !== undefined && isId(target)) {
    const window = windows.find(({ id }) => id === target);
    if (window) return refuseExec(window);
    if (silent.includes(target)) throw new Failure(`window ${target} does not answer`);
    throw new Failure(`no window ${target}; "forget status" lists those there are`);
  }
  const mounts = windows.filter(({ kind }) => kind === 'mount');
  const typed = target === undefined ? cwd() : posix.resolve(cwd(), target);
  // As it is typed first: links can only be followed through filesystems that answer.
  const asTyped = closest(mounts, displayName(typed));
  if (asTyped) return asTyped;
  const path = displayName(target === undefined ? typed : resolveMountedPath(typed, '/'));
  const found = closest(mounts, path);
  if (found) return found;
  const exec = closest(windows, path);
  if (exec && target !== undefined) return refuseExec(exec);
  const [only, ...more] = mounts;
  if (target === undefined && only && more.length === 0) return only;
  const hint = silent.length > 0 ? ` (${silent.join(', ')} does not answer)` : '';
  if (target !== undefined) {
    throw new Failure(`${path} is not mounted${hint}; "forget mount ${path}" mounts it first`);
  }
  if (!only) throw new Failure(`no workspace is mounted${hint}; "forget mount WORKSPACE" mounts one first`);
  const places = mounts.map(({ workspace }) => workspace).join(', ');
  throw new Failure(`several workspaces are mounted, and ${path} is in none of them; name one: ${places}`);
}

/** The one whose workspace, or mount, holds the path; the innermost of several. */
function closest(windows: readonly WindowStatus[], path: string): WindowStatus | undefined {
  const holds = ({ workspace, mountpoint, roots }: WindowStatus) =>
    [workspace, mountpoint, ...roots].filter((place) => isWithin(path, place)).map((place) => place.length);
  const depth = (window: WindowStatus) => Math.max(0, ...holds(window));
  return windows.filter((window) => depth(window) > 0).sort((a, b) => depth(b) - depth(a))[0];
}

function refuseExec(window: WindowStatus): WindowStatus {
  if (window.kind === 'mount') return window;
  throw new Failure(
    `window ${window.id} is one of forget exec, which closes when its command ends; windows are opened and closed on "forget mount"`,
  );
}

/** Returns the window's name. Throws a Failure. */
export async function openWindow(mount: WindowStatus, name: string | undefined): Promise<string> {
  return (await request(mount.id, 'open', name === undefined ? {} : { name })).name;
}

/** Throws a Failure. */
export function closeWindow(mount: WindowStatus, name: string | undefined): Promise<CloseAnswer> {
  return request(mount.id, 'close', name === undefined ? {} : { name });
}
