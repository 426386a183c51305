/**
 * System calls that may block, on libuv's pool threads: koffi runs a call there, and the answer comes back through the
 * event loop (19 us for the way there and back, measured with getpid).
 *
 * State: the arguments of the calls under way (koffi holds none of them, and a Buffer that nothing refers to is
 * collected), how many slow calls there are, and those that wait their turn. They never take all threads: what is left
 * are the kernel notifications' and an unmount's, which somebody may be waiting for.
 */
import { errno } from './libc.ts';

/** Threads of the pool. A thread that sleeps costs a few pages; a disk groups the fsyncs that it gets at once. */
const THREADS = 16;
const MOST_SLOW = 12;

type Call<A extends unknown[]> = (...args: A) => number;
/** The result as C gives it, and errno, which means something when the result is -1. */
type Done = (result: number, error: number) => void;

let started = false;
let slow = 0;
const queued: (() => void)[] = [];
const underWay = new Set<unknown[]>();

/**
 * Runs a function of `libc.ts` on a pool thread. Buffers among the arguments must stay as they are until `done`; so
 * must the descriptors: give it a duplicate of one that others may close meanwhile. A Buffer may point into itself and
 * into no other, since an address keeps nothing alive.
 */
export function inPool<A extends unknown[]>(call: Call<A>, args: A, done: Done): void {
  const asynchronous = (call as unknown as { async(...all: unknown[]): void }).async;
  underWay.add(args);
  const run = () =>
    asynchronous(...args, (_: unknown, result: number) => {
      const error = errno(); // before anything else can change it
      underWay.delete(args);
      done(result, error);
    });
  if (started) run();
  else startPool(run);
}

/** libuv reads the number of threads from the environment when the first one is needed. */
function startPool(first: () => void): void {
  started = true;
  const given = process.env.UV_THREADPOOL_SIZE;
  process.env.UV_THREADPOOL_SIZE = String(THREADS);
  first();
  if (given === undefined) delete process.env.UV_THREADPOOL_SIZE;
  else process.env.UV_THREADPOOL_SIZE = given;
}

/** The same for a call that may take as long as a disk does; such calls wait for one another when there are many. */
export function slowInPool<A extends unknown[]>(call: Call<A>, args: A, done: Done): void {
  const run = () => {
    slow++;
    inPool(call, args, (result, error) => {
      slow--;
      queued.shift()?.();
      done(result, error);
    });
  };
  if (slow < MOST_SLOW) run();
  else queued.push(run);
}

/** `slowInPool` as a promise: of the result as C gives it, and of errno. */
export function slowly<A extends unknown[]>(
  call: Call<A>,
  args: A,
): Promise<{ result: number; error: number }> {
  return new Promise((resolve) => slowInPool(call, args, (result, error) => resolve({ result, error })));
}
