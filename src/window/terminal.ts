/**
 * The controlling terminal, as far as a wrapper needs it: who is in the foreground, and taking the foreground back
 * from a group that died with it, as a shell does.
 */
import { constants } from 'node:os';
import { cstring } from '../sys/bytes.ts';
import { O_CLOEXEC, O_NONBLOCK, O_RDWR } from '../sys/constants.ts';
import { ESRCH } from '../sys/errno.ts';
import { close, errno, open } from '../sys/libc.ts';
import { getpgrp, kill, tcgetpgrp, tcsetpgrp, withSignalsBlocked } from '../sys/spawn.ts';

export interface Terminal {
  /** Is the process group of forget, which is also the command's, in the foreground? */
  groupIsForeground(): boolean;
  /** Another group than forget's that is in the foreground, as that of an interactive shell inside. */
  guestInForeground(): number | undefined;
  giveTo(group: number): void;
  /** Puts this group in the foreground again if it was there at first and the group there now has died. */
  takeBack(): void;
  close(): void;
}

/** The session's terminal, or undefined where there is none. */
export function openTerminal(): Terminal | undefined {
  const fd = open(cstring('/dev/tty'), O_RDWR | O_CLOEXEC | O_NONBLOCK, 0);
  if (fd < 0) return undefined;
  const group = getpgrp();
  const atFirst = tcgetpgrp(fd);
  const giveTo = (to: number): void => {
    // From the background the call raises SIGTTOU, and goes through only where that is blocked.
    withSignalsBlocked([constants.signals.SIGTTOU], () => tcsetpgrp(fd, to));
  };
  return {
    groupIsForeground: () => tcgetpgrp(fd) === group,
    guestInForeground() {
      const now = tcgetpgrp(fd);
      return now > 0 && now !== group ? now : undefined;
    },
    giveTo,
    takeBack() {
      const now = tcgetpgrp(fd);
      if (atFirst !== group || now <= 0 || now === group) return;
      if (kill(-now, 0) === 0 || errno() !== ESRCH) return;
      giveTo(group);
    },
    close: () => close(fd),
  };
}
