/** Descriptors that the command got from whoever started forget: they lead past the window (`exec 5>>memory/log`). */
import { readFileSync, readlinkSync } from 'node:fs';
import type { Overlay } from '../../overlay/overlay.ts';
import { O_ACCMODE, O_RDONLY, S_IFMT, S_IFREG } from '../../sys/constants.ts';
import { Stat } from '../../sys/stat.ts';
import { isWithin } from '../mountinfo.ts';

/** Protected files of the lower, byte strings relative to the root, that one of `descriptors` may write. */
export function inheritedWriters(overlay: Overlay, descriptors: readonly number[]): string[] {
  const st = new Stat();
  if (st.of(overlay.lowerFd) !== 0) return [];
  const { dev } = st;
  const found = new Set<string>();
  for (const fd of descriptors) {
    if (st.of(fd) !== 0 || st.dev !== dev || (st.mode & S_IFMT) !== S_IFREG || !mayWrite('self', fd))
      continue;
    const root = pathOfDescriptor(overlay.lowerFd);
    const path = pathOfDescriptor(fd);
    if (path === root || !isWithin(path, root)) continue;
    const relative = path.slice(root === '/' ? 1 : root.length + 1);
    if (overlay.protects(relative)) found.add(relative);
  }
  return [...found];
}

/** As the kernel names it now: a byte string. */
export function pathOfDescriptor(fd: number): string {
  return readlinkSync(`/proc/self/fd/${fd}`, { encoding: 'buffer' }).toString('latin1');
}

/** Whether a descriptor of a process was opened for writing. Throws what `fs` throws when it is gone. */
export function mayWrite(pid: number | 'self', fd: number | string): boolean {
  const text = readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'latin1');
  const flags = Number.parseInt(/^flags:\s+(\d+)/m.exec(text)![1]!, 8);
  return (flags & O_ACCMODE) !== O_RDONLY;
}
