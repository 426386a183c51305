/**
 * How far the kernel reads ahead in a file of the mount. It begins with 128 KiB, whatever a FUSE server says in INIT (which can
 * only make it less); sysfs takes more, per mount, from root.
 */
import { writeFileSync } from 'node:fs';

/** Reading a file that is in memory: 2.2-3.0 GB/s with 128, 2.5-3.2 with 256, 3.3-4.2 with 512, no more with 1024. */
const READ_AHEAD_KIB = 512;

/**
 * `device` is a mount's `major:minor`. An ordinary user may not, and a container's sysfs may be read-only or absent: there
 * all is as right with the kernel's own, and large files are read more slowly.
 */
export function readFurtherAhead(device: string): void {
  try {
    writeFileSync(`/sys/class/bdi/${device}/read_ahead_kb`, `${READ_AHEAD_KIB}`);
  } catch {
    // As said.
  }
}
