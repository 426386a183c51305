/**
 * /dev/fuse for ordinary users, for the length of a test run: some machines give it mode 0600. A guard process puts
 * the mode back when this process ends, however it ends: it waits for the end of a pipe. Several runs at once share
 * a lock, and the last one out restores.
 */
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const DEVICE = '/dev/fuse';

// Arguments: the lock, which holds the mode to go back to.
const GUARD = `
exec 9<"$1" || exit 1
flock -s 9
echo ready
read -r _
flock -u 9
flock -n -x 9 && chmod "$(cat "$1")" ${DEVICE} && rm -f "$1"
`;

/** Opens /dev/fuse to everyone until this process ends. Nothing to do without root, or where it is open by itself. */
export async function openDevFuse(): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const mode = statSync(DEVICE).mode & 0o777;
  const lock = join(tmpdir(), 'forget-test-dev-fuse.lock');
  // With a lock there, the device is open because of another run: this one must hold it open too.
  if (mode === 0o666 && !existsSync(lock)) return;
  if (mode !== 0o666) writeFileSync(lock, mode.toString(8));
  const guard = spawn('sh', ['-c', GUARD, 'sh', lock], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true, // Ctrl-C at the terminal must not end the guard before it has restored
  });
  await new Promise<void>((resolve, reject) => {
    guard.stdout.once('data', () => resolve());
    guard.once('error', reject);
    guard.once('exit', () => reject(new Error(`the guard of ${DEVICE} ended: is flock installed?`)));
  });
  chmodSync(DEVICE, 0o666);
  guard.unref();
  for (const stream of [guard.stdin, guard.stdout]) (stream as unknown as { unref(): void }).unref();
}
