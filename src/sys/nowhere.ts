/** Descriptors that are given up, but whose numbers stay taken. */
import { cstring } from './bytes.ts';
import { O_CLOEXEC, O_RDWR } from './constants.ts';
import { close, dup3, open } from './libc.ts';

/**
 * Ends what each descriptor leads to, as a close does, and has its number lead to /dev/null: another thread may be about
 * to write to it, which must not hit a file that was opened since. Where that cannot be, it is closed.
 */
export function leadNowhere(fds: readonly number[]): void {
  const nothing = open(cstring('/dev/null'), O_RDWR | O_CLOEXEC, 0);
  for (const fd of fds) if (nothing < 0 || dup3(nothing, fd, O_CLOEXEC) < 0) close(fd);
  if (nothing >= 0) close(nothing);
}
