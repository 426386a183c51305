/**
 * Errno numbers of Linux on x86-64 and arm64 (include/uapi/asm-generic/errno-base.h and errno.h), as
 * positive integers.
 */
import { constants } from 'node:os';

export const {
  EPERM,
  ENOENT,
  EINTR,
  EIO,
  ENXIO,
  E2BIG,
  EBADF,
  EAGAIN,
  ENOMEM,
  EACCES,
  EBUSY,
  EEXIST,
  EXDEV,
  ENODEV,
  ENOTDIR,
  EISDIR,
  EINVAL,
  EMFILE,
  ENFILE,
  ETXTBSY,
  EFBIG,
  ENOSPC,
  EDQUOT,
  ESPIPE,
  EROFS,
  EMLINK,
  ERANGE,
  ENAMETOOLONG,
  ENOSYS,
  ENOTEMPTY,
  ELOOP,
  ENODATA,
  EPROTO,
  EOVERFLOW,
  EOPNOTSUPP,
  ETIMEDOUT,
  ESTALE,
} = constants.errno;
export const ESRCH = constants.errno.ESRCH;
export const ECONNREFUSED = constants.errno.ECONNREFUSED;
export const ENOTCONN = constants.errno.ENOTCONN;
export const ECHILD = constants.errno.ECHILD;

/** What may succeed when others have given space back. */
export const isOutOfSpace = (error: number): boolean =>
  error === constants.errno.ENOSPC || error === constants.errno.EDQUOT;

const names = new Map<number, string>();
for (const [name, value] of Object.entries(constants.errno)) {
  if (!names.has(value)) names.set(value, name);
}

/** `2` gives `"ENOENT"`; an unknown number gives `"errno 999"`. */
export function errnoName(errno: number): string {
  return names.get(errno) ?? `errno ${errno}`;
}

/** An error carrying the number that a FUSE reply or an exit message needs. */
export class SysError extends Error {
  readonly errno: number;
  readonly code: string;
  constructor(errno: number, doing: string) {
    super(`${doing}: ${errnoName(errno)}`);
    this.name = 'SysError';
    this.errno = errno;
    this.code = errnoName(errno);
  }
}
