/** Opening /dev/fuse and mounting it: by system call, since mount(8) refuses whoever is not uid 0. */
import { cstring } from '../sys/bytes.ts';
import {
  MS_NOATIME,
  MS_NODEV,
  MS_NODIRATIME,
  MS_NOEXEC,
  MS_NOSUID,
  MS_RELATIME,
  O_CLOEXEC,
  O_NONBLOCK,
  O_RDWR,
} from '../sys/constants.ts';
import { EACCES, ENODEV, ENOENT, ENXIO, EPERM, SysError } from '../sys/errno.ts';
import { errno, fstatfs, mount, open } from '../sys/libc.ts';

/** Agents read these in /proc/self/mountinfo. */
export const FSTYPE = 'fuse.forget';
export const SOURCE = 'forget';

/** Throws SysError, whose message says what to do. */
export function openDevice(): number {
  const fd = open(cstring('/dev/fuse'), O_RDWR | O_NONBLOCK | O_CLOEXEC, 0);
  if (fd >= 0) return fd;
  const error = new SysError(errno(), 'opening /dev/fuse');
  if (error.errno === ENOENT || error.errno === ENODEV || error.errno === ENXIO) {
    error.message +=
      ': this kernel or container has no FUSE; load it ("modprobe fuse" as root), or give the container --device /dev/fuse';
  } else if (error.errno === EACCES || error.errno === EPERM) {
    error.message +=
      ': this user may not open it; "chmod 666 /dev/fuse" as root (the usual setting), or run forget as root';
  }
  throw error;
}

/** ST_* bits of statfs(2) to MS_* bits of mount(2). The view is no laxer than the filesystem below it. */
const FOLLOWED: readonly [number, number][] = [
  [0x2, MS_NOSUID],
  [0x4, MS_NODEV],
  [0x8, MS_NOEXEC],
  [0x400, MS_NOATIME],
  [0x800, MS_NODIRATIME],
  [0x1000, MS_RELATIME],
];
const STATFS_SIZE = 120;
const F_FLAGS_OFFSET = 80;

/** The mount flags of the filesystem that a descriptor is on. */
export function mountFlagsOf(fd: number): number {
  const buffer = Buffer.alloc(STATFS_SIZE);
  if (fstatfs(fd, buffer) < 0) throw new SysError(errno(), 'statfs of the workspace');
  const flags = buffer.readUInt32LE(F_FLAGS_OFFSET);
  return FOLLOWED.reduce((all, [st, ms]) => (flags & st ? all | ms : all), 0);
}

/**
 * Mounts the device over a directory, in the calling thread's mount namespace, for every user (`allow_other`), with
 * the kernel checking permissions by the attributes that the server gives. `mountpoint` is a byte string; `rootMode`
 * the mode of the root, type included. Throws SysError.
 */
export function mountDevice(device: number, mountpoint: string, flags: number, rootMode: number): void {
  const options = [
    `fd=${device}`,
    `rootmode=${rootMode.toString(8)}`,
    `user_id=${process.getuid!()}`,
    `group_id=${process.getgid!()}`,
    'allow_other',
    'default_permissions',
  ].join(',');
  const result = mount(cstring(SOURCE), cstring(mountpoint), cstring(FSTYPE), flags, cstring(options));
  if (result < 0) throw new SysError(errno(), 'mounting');
}
