/**
 * What a `kill -9` of the server leaves to be done by another process. A mount that everybody sees stays there dead
 * (ENOTCONN), and must be taken away. And a connection need not end with its server: a thread of it that writes a
 * notification for a directory in which somebody waits for an answer waits for that one, both unkillable, and keeps the
 * device open (seen with edits from outside and inside in one directory, at about one `kill -9` in ten).
 *
 * The guardian is a small shell that waits for the end of the server, and then ends the connection and takes the mount
 * away. It has no descriptor of the device, and a session of its own. It learns of the end by the signal that the
 * kernel sends when the server's main thread is gone; the end of a pipe, which comes only with the last thread, is for
 * an end before that was asked for.
 */
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { socketpair } from '../sys/descriptor-passing.ts';
import { close } from '../sys/libc.ts';
import { kill } from '../sys/spawn.ts';
import { childrenOf } from './ancestry.ts';
import { spawnAttendant } from './attendant.ts';
import type { Launcher } from './command.ts';

export const GUARDIAN_PIPE = 3;
/** Of 50 ms and the time that looking takes. */
const END_ROUNDS = 100;
const NAME = 'forget-guardian';
/** In place of a device's number. */
const UNKNOWN = '-';

/**
 * Mounts are told by the device's number: another may stand at the same place by then. Where the window has a mount
 * namespace to itself, all who are left in it are ended before the mounts go: a process that had left the command's session
 * would find the bare directories there, and write on. They get errors from the end of the server until then. A server that
 * lives, and was only cleared by force, ends its command itself: of that the signal may speak, but not the pipe.
 *
 * For a mount that everybody sees it says by an empty line through the pipe that it is ready; the server then mounts, and tells
 * the devices by a line. Where it ends before that, a mount that is dead is taken for its own.
 */
const SCRIPT = `exec </dev/null >/dev/null 2>&1
end() {
  rounds=0
  while [ $rounds -lt ${END_ROUNDS} ]; do
    rounds=$((rounds + 1))
    found=
    for process in /proc/[0-9]*; do
      pid=\${process#/proc/}
      [ "$pid" = $$ ] && continue
      [ "$process/ns/mnt" -ef /proc/self/ns/mnt ] || continue
      kill -KILL "$pid" && found=1
    done
    [ "$found" ] || break
    sleep 0.05
  done
}
clear() {
  trap '' USR1
  for mount in $mounts; do
    device=\${mount%%,*}
    abort=/sys/fs/fuse/connections/\${device#*:}/abort
    [ -w "$abort" ] && echo 1 >"$abort"
  done
  [ "$own" = own ] && { [ "$over" ] || ! grep -q '^State:[[:space:]]*[^ZX[:space:]]' /proc/$PPID/status; } && end
  for mount in $mounts; do
    device=\${mount%%,*} mountpoint=\${mount#*,}
    if [ "$device" = ${UNKNOWN} ]; then
      printf %b "$mountpoint" | xargs -0 sh -c 'for place; do :; done; [ -e "$place" ] || exec "$@"' sh "$@"
    elif grep -q "^[0-9]* [0-9]* $device " /proc/self/mountinfo; then
      printf %b "$mountpoint" | xargs -0 "$@"
    fi
  done
  exit
}
own=$1 mounts=$2 over=
shift 2
trap 'clear "$@"' USR1
[ "$own" = shared ] && echo >&${GUARDIAN_PIPE}
while read -r list <&${GUARDIAN_PIPE}; do mounts=$list; done
over=1
clear "$@"`;

export interface GuardedMount {
  /** Byte string. */
  mountpoint: string;
  /** `major:minor`; undefined before it is mounted. */
  device: string | undefined;
}

/** The shell's arguments: text, since Node's own are; the script makes bytes of it. */
export function guardianArguments(
  { shell }: Launcher,
  mounts: readonly GuardedMount[],
  detach: readonly string[],
  namespace: 'own' | 'shared',
): string[] {
  return ['--pdeathsig', 'USR1', shell, '-c', SCRIPT, NAME, namespace, guardianList(mounts), ...detach];
}

/** Mounts as the script has them, in one line. */
export function guardianList(mounts: readonly GuardedMount[]): string {
  const words = mounts.map(({ mountpoint, device }) => {
    const escaped = mountpoint.replace(
      /[^A-Za-z0-9/._-]/g,
      (c) => `\\0${c.charCodeAt(0).toString(8).padStart(3, '0')}`,
    );
    return `${device ?? UNKNOWN},${escaped}`;
  });
  return words.join(' ');
}

/**
 * For a window whose mount goes with its namespace, started where Node's child_process may not be used
 * (supervision.ts): the caller reaps the process. Throws SysError.
 */
export function startWindowGuardian(
  launcher: Launcher,
  mounts: readonly GuardedMount[],
  detach: readonly string[],
): { pid: number; dismiss(): void } {
  const [near, far] = socketpair();
  try {
    const args = guardianArguments(launcher, mounts, detach, 'own');
    const pid = spawnAttendant(launcher, args, { from: far, to: GUARDIAN_PIPE });
    return {
      pid,
      dismiss: () => {
        kill(pid, constants.signals.SIGKILL);
        close(near);
      },
    };
  } catch (error) {
    close(near);
    throw error;
  } finally {
    close(far);
  }
}

export interface Guardian {
  pid: number;
  /** Byte string: the first of the window's. */
  mountpoint: string;
}

/** The guardian of the window that this process serves, whatever state it is in itself. */
export function guardianOf(server: number): Guardian | undefined {
  for (const pid of childrenOf(server)) {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0');
    const at = words.indexOf(NAME);
    const escaped = words[at + 2]?.split(' ')[0]?.replace(/^[^,]*,/, '');
    if (at < 0 || escaped === undefined) continue;
    const mountpoint = escaped.replace(/\\0([0-7]{3})/g, (_, digits: string) =>
      String.fromCharCode(Number.parseInt(digits, 8)),
    );
    return { pid, mountpoint };
  }
  return undefined;
}

/** Has the guardian end the connection, and take the mount away: whoever waits for an answer gets an error. */
export function clearThrough(guardian: Guardian): boolean {
  return kill(guardian.pid, constants.signals.SIGUSR1) === 0;
}
