/** Time without `performance`, whose module takes 1 ms to load and is loaded at its first use. */
const wallAtStart = Date.now() - monotonicMs();

/** Milliseconds, with fractions, since some moment; never goes back. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}

/** Milliseconds since the epoch, finer than Date.now(). */
export function wallMs(): number {
  return wallAtStart + monotonicMs();
}
