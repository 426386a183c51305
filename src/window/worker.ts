/** Loading the FUSE worker, which does nothing before the first message. It imports nothing, to be first. */
import { SHARE_ENV, Worker } from 'node:worker_threads';

let early: Worker | undefined;

export function startWorker(): void {
  early = new Worker(new URL('./fuse-worker-start.cjs', import.meta.url), { env: SHARE_ENV });
}

/** The worker that was started early, or a new one. */
export function takeWorker(): Worker {
  if (!early) startWorker();
  const worker = early!;
  early = undefined;
  return worker;
}
