/** Who is at the other end of a Unix socket, as the kernel recorded it at connect and listen (unix(7), SO_PEERCRED). */
import { readFileSync } from 'node:fs';
import { koffi } from './koffi.ts';
import { errno } from './libc.ts';

// The numbers hold for x86-64 and arm64 (asm-generic/socket.h).
const SOL_SOCKET = 1;
const SO_PEERCRED = 17;

const getsockopt: (fd: number, level: number, name: number, value: Buffer, length: Buffer) => number = koffi
  .load(null)
  .func('int getsockopt(int fd, int level, int name, void* value, void* length)');

export interface Peer {
  /** As this process's pid namespace numbers it; 0 for a process outside that. */
  pid: number;
  /** Effective, as this process's user namespace maps it; undefined for one without a mapping. */
  uid: number | undefined;
}

/** What the kernel says for a uid without a mapping (the default of kernel.overflowuid), and a user of its own: nobody. */
const OVERFLOW_UID = 65534;

/** The peer of a connected Unix socket, or a negative errno. */
export function peerOf(fd: number): Peer | number {
  const ucred = Buffer.alloc(12);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(ucred.length);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ucred, length) < 0) return -errno();
  const uid = ucred.readUInt32LE(4);
  return { pid: ucred.readInt32LE(0), uid: uid === OVERFLOW_UID && !everyUidIsMapped() ? undefined : uid };
}

/** As in the machine's own user namespace. Elsewhere nobody and an unmapped uid look the same. */
function everyUidIsMapped(): boolean {
  return /^\s*0\s+0\s+4294967295$/m.test(readFileSync('/proc/self/uid_map', 'latin1'));
}
