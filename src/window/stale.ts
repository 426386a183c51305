/**
 * Forget mounts whose server is gone, as a `kill -9` of another program's doing may leave them: found in the mount
 * table, and asked by a child process, since a mount that hangs would hang whoever asks.
 */
import { MNT_DETACH, MNT_FORCE, UMOUNT_NOFOLLOW } from '../sys/constants.ts';
import { isForgetMount, readMountinfo } from './mountinfo.ts';
import { runTool } from './tool.ts';

export interface ForgetMount {
  /** Byte string. */
  mountpoint: string;
  state: 'alive' | 'dead' | 'silent';
}

const answerWithin = 1500;

/**
 * Every forget mount that this process's namespace shows, the topmost first where several share a place. `known` are
 * places of which the control socket has told the state: those are not touched.
 */
export async function findForgetMounts(
  known: ReadonlyMap<string, ForgetMount['state']> = new Map(),
): Promise<ForgetMount[]> {
  const mounts = readMountinfo().filter(isForgetMount).reverse();
  return Promise.all(
    mounts.map(async ({ mountpoint }) => ({
      mountpoint,
      state: known.get(mountpoint) ?? (await stateOf(mountpoint)),
    })),
  );
}

async function stateOf(mountpoint: string): Promise<ForgetMount['state']> {
  // Through standard input, since a child's arguments from Node are UTF-8 and a mount point need not be.
  const end = await runTool(['xargs', '-0', 'stat', '--file-system', '--format=%T', '--'], {
    input: mountpoint,
    timeoutMs: answerWithin,
  });
  if (end.code === null) return 'silent';
  // Anything else, a refusal to this user for one, is an answer: somebody serves it.
  return end.stderr.includes('Transport endpoint is not connected') ? 'dead' : 'alive';
}

/** Ends what is left of its connection, and detaches the mount. Returns undefined, or why it is still there. */
export async function clearMount(mountpoint: string): Promise<string | undefined> {
  const [{ umount2, errno }, { cstring }, { EPERM, errnoName }] = await Promise.all([
    import('../sys/libc.ts'),
    import('../sys/bytes.ts'),
    import('../sys/errno.ts'),
  ]);
  if (umount2(cstring(mountpoint), MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW) === 0) return undefined;
  const failure = errno();
  if (failure !== EPERM) return errnoName(failure);
  const end = await runTool(['xargs', '-0', 'fusermount3', '-u', '-z', '--'], {
    input: mountpoint,
    timeoutMs: answerWithin,
  });
  return end.code === 0
    ? undefined
    : end.stderr.trim() || 'fusermount3 is not installed, and this user may not unmount';
}
