/**
 * The table of this process's descriptors. The kernel doubles it when a number does not fit in any more (at 64, 256, 512,
 * 1024 and so on), and where the process has threads it waits until every CPU has passed a quiet point (fs/file.c:
 * synchronize_rcu): 10-20 ms each time.
 */
import { cstring } from './bytes.ts';
import { AT_FDCWD, F_DUPFD_CLOEXEC, O_CLOEXEC, O_PATH } from './constants.ts';
import { close, fcntl, openat } from './libc.ts';
import { inPool } from './pool.ts';

let grown = false;

/** Makes it large enough for `numbers` descriptors, once, on a pool thread. */
export function growDescriptorTable(numbers: number): void {
  if (grown) return;
  grown = true;
  const any = openat(AT_FDCWD, cstring('/'), O_PATH | O_CLOEXEC, 0);
  inPool(fcntl, [any, F_DUPFD_CLOEXEC, numbers - 1], (high) => {
    for (const fd of [any, high]) if (fd >= 0) close(fd);
  });
}
