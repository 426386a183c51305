/** The guardian of a mount that everybody sees (guardian.ts), a child as Node has them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Launcher } from './command.ts';
import { Failure } from './failure.ts';
import { GUARDIAN_PIPE, type GuardedMount, guardianArguments, guardianList } from './guardian.ts';

export interface MountGuardian {
  /** What is mounted by now. */
  guard(mounts: readonly GuardedMount[]): void;
  dismiss(): void;
}

/**
 * Starts it, before the first mount: a `kill -9` right after that leaves nothing either. Resolves when it is ready. `detach`
 * is the command that takes a mount away. It ends when `dismiss` is called.
 */
export async function startGuardian(
  launcher: Launcher,
  mountpoints: readonly string[],
  detach: readonly string[],
): Promise<MountGuardian> {
  const mounts = mountpoints.map((mountpoint) => ({ mountpoint, device: undefined }));
  const child: ChildProcess = spawn(launcher.setpriv, guardianArguments(launcher, mounts, detach, 'shared'), {
    cwd: '/',
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  const pipe = child.stdio[GUARDIAN_PIPE] as Socket;
  const ended = once(child, 'exit').then(() => {
    throw new Failure('the process that takes a dead mount away could not be started');
  });
  await Promise.race([once(pipe, 'data'), ended]);
  child.unref();
  pipe.unref();
  // Somebody may have ended it: the mount goes on without.
  pipe.on('error', () => {});
  return {
    guard: (mounted) => pipe.write(`${guardianList(mounted)}\n`),
    dismiss: () => {
      child.kill('SIGKILL');
      pipe.destroy();
    },
  };
}
