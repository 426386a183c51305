/** How a window comes by its upper and its mount: the two acts that take CAP_SYS_ADMIN, or the help of others. */
import { mountDevice, mountFlagsOf, openDevice } from '../fuse/mount.ts';
import { makeUpper, type UpperFs } from '../overlay/upper.ts';
import { cstring } from '../sys/bytes.ts';
import {
  MNT_DETACH,
  MNT_EXPIRE,
  MNT_FORCE,
  O_CLOEXEC,
  O_NOFOLLOW,
  O_PATH,
  UMOUNT_NOFOLLOW,
} from '../sys/constants.ts';
import { EBUSY } from '../sys/errno.ts';
import { close, open, umount2 } from '../sys/libc.ts';
import { inPool } from '../sys/pool.ts';

/** Mount points are byte strings. */
export interface Mounter {
  /** Throws SysError or Failure. */
  makeUpper(sizeBytes: number): UpperFs | Promise<UpperFs>;
  /**
   * Mounts a new FUSE device with the flags of the filesystem that `lower` is on; `rootMode` is the mode of the root,
   * type included. Returns the device's descriptor. Throws SysError or Failure.
   */
  mount(mountpoint: string, lower: number, rootMode: number): number;
  /** False while it is in use. Not by this thread itself: it may take answers of this very server. */
  unmount(mountpoint: string): Promise<boolean>;
  /** Whether `unmount` would say false, where that can be told without unmounting. */
  isBusy(mountpoint: string): Promise<boolean>;
  /** Takes the mount away although it is in use, once nothing is served any more. Whoever is in it goes on there as long as the device is served. */
  detach(mountpoint: string): Promise<void>;
  /** The command that does the same for a process of its own; the mount point is its last argument. */
  readonly detachCommand: readonly string[];
  /** Lines for the person about what such a mount is not. */
  notices(): string[];
}

export const bySystemCall: Mounter = {
  makeUpper,
  mount(mountpoint, lower, rootMode) {
    const device = openDevice();
    try {
      mountDevice(device, mountpoint, mountFlagsOf(lower), rootMode);
      return device;
    } catch (error) {
      close(device);
      throw error;
    }
  },
  unmount: (mountpoint) =>
    new Promise((resolve) => {
      inPool(umount2, [cstring(mountpoint), UMOUNT_NOFOLLOW], (result) => resolve(result === 0));
    }),
  isBusy: (mountpoint) =>
    new Promise((resolve) => {
      // The first such call marks the mount; the second, with no use between, would unmount it.
      inPool(umount2, [cstring(mountpoint), MNT_EXPIRE | UMOUNT_NOFOLLOW], (_result, error) => {
        inPool(open, [cstring(mountpoint), O_PATH | O_NOFOLLOW | O_CLOEXEC, 0], (fd) => {
          if (fd >= 0) close(fd);
          resolve(error === EBUSY);
        });
      });
    }),
  async detach(mountpoint) {
    // By force: it ends the connection first, and whoever waits for an answer gets an error.
    umount2(cstring(mountpoint), MNT_FORCE | MNT_DETACH | UMOUNT_NOFOLLOW);
  },
  detachCommand: ['umount', '--force', '--lazy', '--'],
  notices: () => [],
};
