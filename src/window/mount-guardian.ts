/** The guardian of a mount that everybody sees (guardian.ts), a child as Node has them. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Launcher } from './command.ts';
import { GUARDIAN_PIPE, type GuardedMount, guardianArguments } from './guardian.ts';

/** Starts it; `detach` is the command that takes a mount away. It ends when `dismiss` is called. */
export function startGuardian(
  launcher: Launcher,
  mounts: readonly GuardedMount[],
  detach: readonly string[],
): { dismiss(): void } {
  const child: ChildProcess = spawn(launcher.setpriv, guardianArguments(launcher, mounts, detach, 'shared'), {
    cwd: '/',
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  child.unref();
  const pipe = child.stdio[GUARDIAN_PIPE] as Socket;
  pipe.unref();
  return {
    dismiss: () => {
      child.kill('SIGKILL');
      pipe.destroy();
    },
  };
}
