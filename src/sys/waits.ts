/** How often the calling thread had to wait, for a disk or a lock: being preempted does not count. */
import { getrusage } from './libc.ts';

const RUSAGE_THREAD = 1;
/** `ru_nvcsw` of `struct rusage`: two struct timeval and twelve longs come before it. */
const VOLUNTARY_SWITCHES = 128;
const usage = Buffer.alloc(144);
const words = new Uint32Array(usage.buffer, usage.byteOffset, usage.length / 4);

/** Voluntary context switches so far, modulo 2^32. */
export function voluntarySwitches(): number {
  getrusage(RUSAGE_THREAD, usage);
  return words[VOLUNTARY_SWITCHES / 4]!;
}
