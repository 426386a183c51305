/** A directory in memory, where nobody waits for a disk. */
import { execFileSync } from 'node:child_process';

/** Runs the body while an empty tmpfs is mounted over `path`; `options` are mount's. For root alone. */
export async function onTmpfs(path: string, options: string, body: () => Promise<void>): Promise<void> {
  execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', path]);
  try {
    await body();
  } finally {
    execFileSync('umount', ['-l', path]);
  }
}
