/**
 * Constants of the Linux system call interface, as in include/uapi. Values hold for x86-64 and arm64, except
 * where a line says otherwise.
 */

const arm = process.arch === 'arm64';

// open(2): include/uapi/asm-generic/fcntl.h; arm64 has two flags of its own.
export const O_RDONLY = 0;
export const O_WRONLY = 1;
export const O_RDWR = 2;
export const O_ACCMODE = 3;
export const O_CREAT = 0o100;
export const O_EXCL = 0o200;
export const O_APPEND = 0o2000;
export const O_NONBLOCK = 0o4000;
export const O_DIRECTORY = arm ? 0o40000 : 0o200000;
export const O_NOFOLLOW = arm ? 0o100000 : 0o400000;
export const O_NOATIME = 0o1000000;
export const O_CLOEXEC = 0o2000000;
export const O_PATH = 0o10000000;
export const O_TMPFILE = 0o20000000 | O_DIRECTORY;

export const F_DUPFD_CLOEXEC = 1030;
export const F_SETPIPE_SZ = 1031;
export const F_GETPIPE_SZ = 1032;

export const AT_FDCWD = -100;
export const AT_SYMLINK_NOFOLLOW = 0x100;
export const AT_REMOVEDIR = 0x200;
export const AT_SYMLINK_FOLLOW = 0x400;
export const AT_EMPTY_PATH = 0x1000;

export const STATX_BASIC_STATS = 0x7ff;
export const STATX_BTIME = 0x800;

export const S_IFMT = 0o170000;
export const S_IFLNK = 0o120000;
export const S_IFREG = 0o100000;
export const S_IFCHR = 0o020000;
export const S_IFDIR = 0o040000;
export const S_ISUID = 0o4000;
export const S_ISGID = 0o2000;
export const S_IXGRP = 0o010;

export const RENAME_NOREPLACE = 1;
export const RENAME_EXCHANGE = 2;
export const RENAME_WHITEOUT = 4;
export const SEEK_SET = 0;
export const SEEK_END = 2;
export const SEEK_DATA = 3;
export const SEEK_HOLE = 4;

export const UTIME_NOW = 0x3fffffff;
export const UTIME_OMIT = 0x3ffffffe;

/** preadv2(2): only what is to be had without waiting; EAGAIN where that is nothing. */
export const RWF_NOWAIT = 0x8;
/** pwritev2(2): append at the file's real end, whatever the offset says. */
export const RWF_APPEND = 0x10;

export const POLLIN = 1;

export const F_SETFD = 2;
export const FD_CLOEXEC = 1;

export const LOCK_EX = 2;
export const LOCK_NB = 4;

export const CLONE_NEWNS = 0x20000;
export const CLONE_FS = 0x200;

export const MS_NOSUID = 2;
export const MS_NODEV = 4;
export const MS_NOEXEC = 8;
export const MS_NOATIME = 1024;
export const MS_NODIRATIME = 2048;
export const MS_REC = 16384;
export const MS_PRIVATE = 1 << 18;
export const MS_RELATIME = 1 << 21;

export const MNT_EXPIRE = 4;
export const MNT_FORCE = 1;
export const MNT_DETACH = 2;
export const UMOUNT_NOFOLLOW = 8;

export const FSOPEN_CLOEXEC = 1;
export const FSMOUNT_CLOEXEC = 1;
export const FSCONFIG_SET_FLAG = 0;
export const FSCONFIG_SET_STRING = 1;
export const FSCONFIG_CMD_CREATE = 6;

export const IN_MODIFY = 0x2;
export const IN_ATTRIB = 0x4;
export const IN_CLOSE_WRITE = 0x8;
export const IN_MOVED_FROM = 0x40;
export const IN_MOVED_TO = 0x80;
export const IN_CREATE = 0x100;
export const IN_DELETE = 0x200;
export const IN_Q_OVERFLOW = 0x4000;
export const IN_IGNORED = 0x8000;
export const IN_ONLYDIR = 0x1000000;
export const IN_EXCL_UNLINK = 0x4000000;

export const PR_SET_DUMPABLE = 4;
export const PR_SET_CHILD_SUBREAPER = 36;
export const PR_SET_SECUREBITS = 28;
/** Keeps the capabilities of a thread whose fsuid leaves 0 (include/uapi/linux/securebits.h). */
export const SECBIT_NO_SETUID_FIXUP = 1 << 2;

/** statfs(2) magic numbers: of filesystems in memory, */
export const TMPFS_MAGIC = 0x01021994;
export const RAMFS_MAGIC = 0x858458f6;
/** and of those whose remote changes inotify does not report. */
export const FUSE_SUPER_MAGIC = 0x65735546;
export const NFS_SUPER_MAGIC = 0x6969;
export const SMB2_SUPER_MAGIC = 0xfe534d42;
export const CIFS_SUPER_MAGIC = 0xff534d42;
export const V9FS_MAGIC = 0x01021997;

export const XATTR_CREATE = 1;
export const XATTR_REPLACE = 2;

export const FALLOC_FL_KEEP_SIZE = 1;
export const FALLOC_FL_PUNCH_HOLE = 2;
export const FALLOC_FL_ZERO_RANGE = 16;
