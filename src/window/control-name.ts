/**
 * Where a window's control socket is: the abstract name `forget/UID/ID`. Nothing keeps another user from binding such
 * a name, so a connection is handed out only after its listener was found to be the user in the name, or root.
 */
import { EAGAIN, ECONNREFUSED, errnoName } from '../sys/errno.ts';
import { close } from '../sys/libc.ts';
import { peerOf } from '../sys/peer.ts';
import { abstractListeners, connectAbstract } from '../sys/unix-socket.ts';
import { Failure } from './failure.ts';
import { isId } from './window-id.ts';

export interface ControlName {
  uid: number;
  id: string;
}

/** As bind(2) takes it, without the leading NUL. */
export function socketName({ uid, id }: ControlName): string {
  return `forget/${uid}/${id}`;
}

/** The names that somebody has bound: this user's, then, for root, everyone else's. Throws a Failure. */
export function boundNames(): ControlName[] {
  const self = process.geteuid!();
  const names = listeners().flatMap((name) => {
    const [, uid, id] = /^forget\/(0|[1-9]\d*)\/([^/]+)$/.exec(name) ?? [];
    return id !== undefined && isId(id) ? [{ uid: Number(uid), id }] : [];
  });
  const own = names.filter(({ uid }) => uid === self);
  return self === 0 ? [...own, ...names.filter(({ uid }) => uid !== self)] : own;
}

function listeners(): string[] {
  try {
    return abstractListeners();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Failure(
      `windows are found in /proc/net/unix, which cannot be read (${code}): mount /proc whole`,
    );
  }
}

/**
 * A descriptor connected to the window. `gone` where nobody listens any more, `busy` where its queue is full,
 * `foreign` where the listener is somebody else than the name says. Throws a Failure.
 */
export function connectTo(name: ControlName): number | 'gone' | 'busy' | 'foreign' {
  const fd = asUser(name.uid, () => connectAbstract(socketName(name)));
  if (fd === -ECONNREFUSED) return 'gone';
  if (fd === -EAGAIN) return 'busy';
  if (fd < 0) throw new Failure(`connecting to window ${name.id} gave ${errnoName(-fd)}`);
  const peer = peerOf(fd);
  if (typeof peer !== 'number' && (peer.uid === name.uid || peer.uid === 0)) return fd;
  close(fd);
  return 'foreign';
}

/**
 * Root asks as the user whose window it is: in that user's own user namespace root has no mapping, and the window
 * could not tell it from any other stranger.
 */
function asUser<T>(uid: number, action: () => T): T {
  if (process.geteuid!() !== 0 || uid === 0) return action();
  try {
    process.seteuid!(uid);
  } catch {
    // Root without CAP_SETUID, or of a container without that uid: the window will say whether it takes root as such.
    return action();
  }
  try {
    return action();
  } finally {
    process.seteuid!(0);
  }
}
