/** Small processes of forget's own beside the command: the guardian, and who reads ahead. */
import { rawEnvironment } from '../sys/argv.ts';
import { spawnProcess } from '../sys/spawn.ts';
import type { Launcher } from './command.ts';

const SYSTEM_PATH = '/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin';

/**
 * Starts setpriv with these arguments: in a session of its own, outside the mount, with the system's programs, and with no
 * descriptor but `channel`. Returns the pid, which the caller reaps. Throws SysError.
 */
export function spawnAttendant(
  { setpriv }: Launcher,
  args: readonly string[],
  channel?: { from: number; to: number },
): number {
  return spawnProcess({
    path: setpriv,
    argv: [setpriv, ...args],
    environment: [...rawEnvironment().filter((line) => !line.startsWith('PATH=')), `PATH=${SYSTEM_PATH}`],
    cwd: '/',
    descriptors: [],
    ...(channel && { renumbered: channel }),
    keepIgnored: new Set(),
    blockedSignals: [],
    ownSession: true,
  });
}
