/**
 * A mount that everybody sees outlives its server: after a `kill -9` it stands there dead (ENOTCONN). The guardian is
 * a small shell that waits for the end of a pipe which only the server holds open, and then takes the mount away.
 */
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { statSync } from 'node:fs';

/** By the device's number: another mount may stand at the same place by then. */
const SCRIPT = `read -r _ <&3
grep -q "^[0-9]* [0-9]* $1 " /proc/self/mountinfo && printf %b "$2" | xargs -0 umount -l --`;

/** `mountpoint` is a byte string. The guardian has a session of its own, and ends when `dismiss` is called. */
export function startGuardian(mountpoint: string): { dismiss(): void } {
  const { dev } = statSync(Buffer.from(mountpoint, 'latin1'));
  const device = `${dev >> 8}:${(dev & 0xff) | ((dev >> 12) & ~0xff)}`;
  const escaped = mountpoint.replace(
    /[^A-Za-z0-9/._-]/g,
    (c) => `\\0${c.charCodeAt(0).toString(8).padStart(3, '0')}`,
  );
  const child: ChildProcess = spawn('/bin/sh', ['-c', SCRIPT, 'forget-guardian', device, escaped], {
    cwd: '/',
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  child.unref();
  (child.stdio[3] as unknown as { unref(): void }).unref();
  return {
    dismiss: () => {
      child.kill('SIGKILL');
    },
  };
}
