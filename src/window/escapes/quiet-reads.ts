/** Reads for the look at the close: beneath the lower's root, never through the mount, and without a trace in access times. */
import { type Change, openUpperSide } from '../../overlay/changes.ts';
import { splitPath, withLowerDirectory } from '../../overlay/lower-path.ts';
import type { Overlay } from '../../overlay/overlay.ts';
import { scratchCstring } from '../../sys/bytes.ts';
import {
  O_CLOEXEC,
  O_NOATIME,
  O_NOFOLLOW,
  O_NONBLOCK,
  O_RDONLY,
  S_IFMT,
  S_IFREG,
} from '../../sys/constants.ts';
import { EPERM } from '../../sys/errno.ts';
import { close, errno, openat, pread } from '../../sys/libc.ts';
import { Stat } from '../../sys/stat.ts';

export interface Content {
  bytes: Buffer;
  /** When it last changed, by its ctime: ms since the epoch. */
  changed: number;
}

/** Why there is no content: there is no such file, or it is not a regular one; or it is larger than was asked for. */
export type NoContent = 'absent' | 'large';

/** A regular file of the lower. */
export function readLower(root: number, path: string, most: number): Content | NoContent {
  const [directory, name] = splitPath(path);
  return withLowerDirectory(root, directory, (dir) => (dir < 0 ? 'absent' : readAt(dir, name, most)));
}

const FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

function readAt(dir: number, name: string, most: number): Content | NoContent {
  let fd = openat(dir, scratchCstring(name), FLAGS | O_NOATIME, 0);
  // Another user's file, where the server has no capabilities.
  if (fd < 0 && errno() === EPERM) fd = openat(dir, scratchCstring(name), FLAGS, 0);
  if (fd < 0) return 'absent';
  try {
    return readAll(fd, most);
  } finally {
    close(fd);
  }
}

/** The window's own version of a regular file. */
export function readUpper(o: Overlay, change: Change, most: number): Content | NoContent {
  const fd = openUpperSide(o, change);
  if (fd < 0) return 'absent';
  try {
    return readAll(fd, most);
  } finally {
    close(fd);
  }
}

const stat = new Stat();

function readAll(fd: number, most: number): Content | NoContent {
  if (stat.of(fd) !== 0 || (stat.mode & S_IFMT) !== S_IFREG) return 'absent';
  const { size } = stat;
  if (size > most) return 'large';
  const bytes = Buffer.allocUnsafe(size);
  let got = 0;
  while (got < size) {
    const n = pread(fd, got === 0 ? bytes : bytes.subarray(got), size - got, got);
    if (n <= 0) break;
    got += n;
  }
  return { bytes: bytes.subarray(0, got), changed: stat.change / 1e6 };
}
