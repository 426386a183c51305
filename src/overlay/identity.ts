/**
 * As whom this thread creates files: owner, group and umask follow each caller, so that what is made in the lower has
 * them from its first moment, and the kernel applies the umask, or leaves it out where a directory has a default ACL.
 */
import { readFileSync } from 'node:fs';
import type { Caller } from '../fuse/handler.ts';
import { CLONE_FS, PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP } from '../sys/constants.ts';
import { SysError } from '../sys/errno.ts';
import { errno, prctl, setfsgid, setfsuid, umask, unshare } from '../sys/libc.ts';

/** The kernel's stand-in for what a user namespace does not map (kernel.overflowgid; nobody changes it). */
const OVERFLOW_GID = 65534;

/** Whether a group has a number in this user namespace: lines of "inside outside count". */
function isMapped(gid: number): boolean {
  const ranges = readFileSync('/proc/self/gid_map', 'latin1').trim().split('\n');
  return ranges.some((range) => {
    const [first, , count] = range.trim().split(/\s+/).map(Number) as [number, number, number];
    return gid >= first && gid < first + count;
  });
}

export class Identity {
  private readonly ownUid = process.getuid!();
  private readonly ownGid = process.getgid!();
  private readonly ownMask: number;
  private uid = this.ownUid;
  private gid = this.ownGid;
  private mask: number;
  private keepsCapabilities = false;
  private readonly knowsOverflowGroup = isMapped(OVERFLOW_GID);

  /** Makes the umask this thread's own. */
  constructor() {
    if (unshare(CLONE_FS) < 0) throw new SysError(errno(), 'unsharing the umask');
    this.ownMask = umask(0);
    umask(this.ownMask);
    this.mask = this.ownMask;
  }

  actAs(caller: Caller): void {
    this.become(caller.uid, caller.gid, caller.umask);
  }

  /**
   * The group to show for one that is read as `gid`. In a user namespace a file whose group is not mapped, such as a
   * supplementary one of the user, reads as the overflow group, and told that, the kernel refuses every write to the
   * file. It gets the user's own group instead; the lower, which knows the real one, goes on checking.
   */
  shownGroup(gid: number): number {
    return gid === OVERFLOW_GID && !this.knowsOverflowGroup ? this.ownGid : gid;
  }

  /** For objects that forget makes itself, and gives their owner and mode afterwards. */
  actAsServer(): void {
    this.become(this.ownUid, this.ownGid, 0o077);
  }

  /** As the process was started. */
  restore(): void {
    this.become(this.ownUid, this.ownGid, this.ownMask);
  }

  private become(uid: number, gid: number, mask: number): void {
    if (this.uid !== uid) {
      this.keepCapabilities();
      setfsuid(uid);
      this.uid = uid;
    }
    if (this.gid !== gid) {
      setfsgid(gid);
      this.gid = gid;
    }
    if (this.mask !== mask) {
      umask(mask);
      this.mask = mask;
    }
  }

  /**
   * Root's powers must outlast a change of its fsuid. Not before there is one: a command that is spawned afterwards
   * would inherit the bit, and a `su` in it would keep root's powers too.
   */
  private keepCapabilities(): void {
    if (this.keepsCapabilities || this.ownUid !== 0) return;
    if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0) {
      throw new SysError(errno(), 'keeping capabilities across fsuid changes');
    }
    this.keepsCapabilities = true;
  }
}
