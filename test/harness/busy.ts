/** A machine that has other things to do. */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';

/** Runs the body while each processor has so many endless loops beside. */
export async function withBusyProcessors(body: () => Promise<void> | void, loops = 1): Promise<void> {
  const busy = Array.from({ length: loops * availableParallelism() }, () =>
    spawn('sh', ['-c', 'while :; do :; done']),
  );
  try {
    await body();
  } finally {
    for (const child of busy) child.kill('SIGKILL');
  }
}
