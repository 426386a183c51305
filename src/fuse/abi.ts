/**
 * The kernel's FUSE protocol in numbers: include/uapi/linux/fuse.h of Linux 6.18 (protocol 7.45). A flag that
 * came with a later minor than 7.31, the oldest this engine speaks, has it named behind it.
 */

export const KERNEL_VERSION = 7;
export const MINOR_VERSION = 45;
export const OLDEST_MINOR = 31;

export const ROOT_ID = 1;

export const Op = {
  LOOKUP: 1,
  FORGET: 2,
  GETATTR: 3,
  SETATTR: 4,
  READLINK: 5,
  SYMLINK: 6,
  MKNOD: 8,
  MKDIR: 9,
  UNLINK: 10,
  RMDIR: 11,
  RENAME: 12,
  LINK: 13,
  OPEN: 14,
  READ: 15,
  WRITE: 16,
  STATFS: 17,
  RELEASE: 18,
  FSYNC: 20,
  SETXATTR: 21,
  GETXATTR: 22,
  LISTXATTR: 23,
  REMOVEXATTR: 24,
  FLUSH: 25,
  INIT: 26,
  OPENDIR: 27,
  READDIR: 28,
  RELEASEDIR: 29,
  FSYNCDIR: 30,
  GETLK: 31,
  SETLK: 32,
  SETLKW: 33,
  ACCESS: 34,
  CREATE: 35,
  INTERRUPT: 36,
  BMAP: 37,
  DESTROY: 38,
  IOCTL: 39,
  POLL: 40,
  NOTIFY_REPLY: 41,
  BATCH_FORGET: 42,
  FALLOCATE: 43,
  READDIRPLUS: 44,
  RENAME2: 45,
  LSEEK: 46,
  COPY_FILE_RANGE: 47,
  SETUPMAPPING: 48,
  REMOVEMAPPING: 49,
  SYNCFS: 50,
  TMPFILE: 51,
  STATX: 52,
  COPY_FILE_RANGE_64: 53,
} as const;

/** The highest opcode that requests are counted under; anything above is counted as 0. */
export const MAX_OPCODE = 63;

const opNames = new Map<number, string>(Object.entries(Op).map(([name, value]) => [value, name]));

/** `1` gives `"LOOKUP"`; an opcode that this file does not know gives `"OP_99"`. */
export function opName(opcode: number): string {
  return opNames.get(opcode) ?? `OP_${opcode}`;
}

/** INIT flags. Those above bit 31 travel in `flags2` and are given here as their bit there. */
export const Init = {
  ASYNC_READ: 1 << 0,
  ATOMIC_O_TRUNC: 1 << 3,
  BIG_WRITES: 1 << 5,
  DONT_MASK: 1 << 6,
  AUTO_INVAL_DATA: 1 << 12,
  DO_READDIRPLUS: 1 << 13,
  READDIRPLUS_AUTO: 1 << 14,
  ASYNC_DIO: 1 << 15,
  NO_OPEN_SUPPORT: 1 << 17,
  PARALLEL_DIROPS: 1 << 18,
  POSIX_ACL: 1 << 20,
  MAX_PAGES: 1 << 22,
  CACHE_SYMLINKS: 1 << 23,
  NO_OPENDIR_SUPPORT: 1 << 24,
  HANDLE_KILLPRIV_V2: 1 << 28, // 7.33
  SETXATTR_EXT: 1 << 29, // 7.33
  INIT_EXT: 1 << 30, // 7.36
} as const;

/** Bits of SETATTR's `valid`. */
export const Fattr = {
  MODE: 1 << 0,
  UID: 1 << 1,
  GID: 1 << 2,
  SIZE: 1 << 3,
  ATIME: 1 << 4,
  MTIME: 1 << 5,
  FH: 1 << 6,
  ATIME_NOW: 1 << 7,
  MTIME_NOW: 1 << 8,
  CTIME: 1 << 10,
  KILL_SUIDGID: 1 << 11, // 7.33
} as const;

/** WRITE: written back from the page cache, not by a write call: the descriptor's flags say nothing then. */
export const WRITE_CACHE = 1 << 0;
/** WRITE: clear setuid and setgid (7.33, with HANDLE_KILLPRIV_V2). */
export const WRITE_KILL_SUIDGID = 1 << 2;
/** FSYNC and FSYNCDIR: the data alone. */
export const FSYNC_FDATASYNC = 1 << 0;

/** NOTIFY_INVAL_ENTRY: look the name up again when it is needed, and leave a directory in use alone (7.38). */
export const EXPIRE_ONLY = 1 << 0;

/** Codes of the messages that the server sends unasked. */
export const Notify = {
  INVAL_INODE: 2,
  INVAL_ENTRY: 3,
  DELETE: 6,
} as const;

export const IN_HEADER_SIZE = 40;
export const OUT_HEADER_SIZE = 16;
export const ATTR_SIZE = 88;
export const ENTRY_OUT_SIZE = 128;
/** `max_write` and, by `max_pages`, the largest READ: 1 MiB, which is 256 pages. */
export const MAX_IO = 1 << 20;
export const MAX_PAGES = 256;
/** A request is at most a header, a WRITE's arguments and its data; the kernel wants some room beside. */
export const REQUEST_BUFFER_SIZE = MAX_IO + 8192;
