/**
 * A mount that everybody sees outlives its server: after a `kill -9` it stands there dead (ENOTCONN). The guardian is
 * a small shell that waits for the end of a pipe which only the server holds open, and then takes the mount away.
 */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';

/**
 * By the device's number: another mount may stand at the same place by then. The connection is ended first: a thread of
 * the dead server may be writing a notification for a directory in which somebody waits for an answer, and while it
 * does it keeps the device open.
 */
const SCRIPT = `read -r _ <&3
device=$1 mountpoint=$2
shift 2
grep -q "^[0-9]* [0-9]* $device " /proc/self/mountinfo || exit
abort=/sys/fs/fuse/connections/\${device#*:}/abort
[ -w "$abort" ] && echo 1 >"$abort"
printf %b "$mountpoint" | xargs -0 "$@"`;

/**
 * `mountpoint` is a byte string, `device` the `major:minor` of the mount, `detach` the command that takes it away.
 * The guardian has a session of its own, and ends when `dismiss` is called.
 */
export function startGuardian(
  mountpoint: string,
  device: string,
  detach: readonly string[],
): { dismiss(): void } {
  const escaped = mountpoint.replace(
    /[^A-Za-z0-9/._-]/g,
    (c) => `\\0${c.charCodeAt(0).toString(8).padStart(3, '0')}`,
  );
  const child: ChildProcess = spawn(
    '/bin/sh',
    ['-c', SCRIPT, 'forget-guardian', device, escaped, ...detach],
    {
      cwd: '/',
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    },
  );
  child.unref();
  const pipe = child.stdio[3] as Socket;
  pipe.unref();
  return {
    dismiss: () => {
      child.kill('SIGKILL');
      pipe.destroy();
    },
  };
}
