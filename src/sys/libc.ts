/**
 * Every foreign declaration of the project: the C library's functions that Node lacks, through koffi.
 *
 * A call returns what C returns: -1 means failure, and `errno()` then tells which. Nothing here throws: a
 * thrown error costs 11-17 us, a returned one 0.3 us. Byte names are NUL-terminated Buffers, because koffi's
 * own strings are UTF-8 and a Linux name need not be.
 */
import { koffi } from './koffi.ts';

const lib = koffi.load(null);

/** The calling thread's errno, as left by the last call in this file that failed. */
export const errno: () => number = koffi.errno;

type Int = number;
/** A NUL-terminated byte string, or null where C takes NULL. */
export type CPath = Buffer | null;

/**
 * A system call by its number, with arguments of these types. Those used here have the same number on every architecture
 * (include/uapi/asm-generic/unistd.h).
 */
function syscall<A extends (Int | CPath)[]>(
  number: Int,
  ...types: ('long' | 'void*')[]
): (...args: A) => Int {
  const call = lib.func('syscall', 'long', ['long', ...types]);
  return (...args) => call(number, ...args) as Int;
}

// Files
export const open: (path: CPath, flags: Int, mode: Int) => Int = lib.func(
  'int open(void* path, int flags, uint mode)',
);
export const openat: (dir: Int, path: CPath, flags: Int, mode: Int) => Int = lib.func(
  'int openat(int dir, void* path, int flags, uint mode)',
);
export const close: (fd: Int) => Int = lib.func('int close(int fd)');
export const dup: (fd: Int) => Int = lib.func('int dup(int fd)');
export const dup3: (from: Int, to: Int, flags: Int) => Int = lib.func(
  'int dup3(int from, int to, int flags)',
);
export const fcntl: (fd: Int, cmd: Int, arg: Int) => Int = lib.func('int fcntl(int fd, int cmd, long arg)');
export const read: (fd: Int, buf: Buffer, count: Int) => Int = lib.func(
  'int64_t read(int fd, void* buf, size_t count)',
);
export const write: (fd: Int, buf: Buffer, count: Int) => Int = lib.func(
  'int64_t write(int fd, void* buf, size_t count)',
);
export const pread: (fd: Int, buf: Buffer, count: Int, offset: Int) => Int = lib.func(
  'int64_t pread(int fd, void* buf, size_t count, int64_t offset)',
);
export const pwrite: (fd: Int, buf: Buffer, count: Int, offset: Int) => Int = lib.func(
  'int64_t pwrite(int fd, void* buf, size_t count, int64_t offset)',
);
/** `iov` is an array of `struct iovec` (two 64-bit words each: address, length). */
export const pwritev2: (fd: Int, iov: Buffer, count: Int, offset: Int, flags: Int) => Int = lib.func(
  'int64_t pwritev2(int fd, void* iov, int count, int64_t offset, int flags)',
);
/** As `pwritev2`. */
export const preadv2: (fd: Int, iov: Buffer, count: Int, offset: Int, flags: Int) => Int = lib.func(
  'int64_t preadv2(int fd, void* iov, int count, int64_t offset, int flags)',
);
export const lseek: (fd: Int, offset: Int, whence: Int) => Int = lib.func(
  'int64_t lseek(int fd, int64_t offset, int whence)',
);
export const ftruncate: (fd: Int, length: Int) => Int = lib.func('int ftruncate(int fd, int64_t length)');
export const fallocate: (fd: Int, mode: Int, offset: Int, length: Int) => Int = lib.func(
  'int fallocate(int fd, int mode, int64_t offset, int64_t length)',
);
/** `offIn` and `offOut` are 8-byte Buffers holding an `int64_t` each. */
export const copyFileRange: (
  fdIn: Int,
  offIn: Buffer,
  fdOut: Int,
  offOut: Buffer,
  len: Int,
  flags: Int,
) => Int = lib.func(
  'int64_t copy_file_range(int in, void* offIn, int out, void* offOut, size_t len, uint flags)',
);
/** `offset` is an 8-byte Buffer with an `int64_t`, or null for the descriptor's own position; `out` has its own. */
export const sendfile: (out: Int, from: Int, offset: Buffer | null, count: Int) => Int = lib.func(
  'int64_t sendfile(int out, int from, void* offset, size_t count)',
);
/** One of the two descriptors is a pipe; `offIn` as for `copyFileRange`, or null for a pipe. It may wait for a disk. */
export const splice: (
  fdIn: Int,
  offIn: Buffer | null,
  fdOut: Int,
  offOut: Buffer | null,
  len: Int,
  flags: Int,
) => Int = lib.func('int64_t splice(int in, void* offIn, int out, void* offOut, size_t len, uint flags)');
/** `ends` is two 32-bit descriptors: to read from, and to write to. */
export const pipe2: (ends: Buffer, flags: Int) => Int = lib.func('int pipe2(void* ends, int flags)');
/**
 * `range` is two 64-bit words (offset, length), `out` a `struct cachestat` of 40 bytes, `flags` 0. ENOSYS before Linux 6.5;
 * EPERM, in newer ones, for whoever neither owns the file nor may write to it.
 */
export const cachestat = syscall<[fd: Int, range: Buffer, out: Buffer, flags: Int]>(
  451,
  'long',
  'void*',
  'void*',
  'long',
);
export const fsync: (fd: Int) => Int = lib.func('int fsync(int fd)');
/** Held by the open file, and given back when its last descriptor is closed. */
export const flock: (fd: Int, operation: Int) => Int = lib.func('int flock(int fd, int operation)');
export const fdatasync: (fd: Int) => Int = lib.func('int fdatasync(int fd)');

/** `out` is a `struct rusage`, 144 bytes. */
export const getrusage: (who: Int, out: Buffer) => Int = lib.func('int getrusage(int who, void* out)');

// Attributes
export const statx: (dir: Int, path: CPath, flags: Int, mask: Int, out: Buffer) => Int = lib.func(
  'int statx(int dir, void* path, int flags, uint mask, void* out)',
);
export const fstatfs: (fd: Int, out: Buffer) => Int = lib.func('int fstatfs(int fd, void* out)');
export const fchmod: (fd: Int, mode: Int) => Int = lib.func('int fchmod(int fd, uint mode)');
export const fchmodat: (dir: Int, path: CPath, mode: Int, flags: Int) => Int = lib.func(
  'int fchmodat(int dir, void* path, uint mode, int flags)',
);
export const fchownat: (dir: Int, path: CPath, uid: Int, gid: Int, flags: Int) => Int = lib.func(
  'int fchownat(int dir, void* path, uint uid, uint gid, int flags)',
);
/** `times` is two `struct timespec` (four 64-bit words). */
export const utimensat: (dir: Int, path: CPath, times: Buffer | null, flags: Int) => Int = lib.func(
  'int utimensat(int dir, void* path, void* times, int flags)',
);
export const getxattr: (path: CPath, name: Buffer, value: Buffer | null, size: Int) => Int = lib.func(
  'int64_t getxattr(void* path, void* name, void* value, size_t size)',
);
export const fgetxattr: (fd: Int, name: Buffer, value: Buffer | null, size: Int) => Int = lib.func(
  'int64_t fgetxattr(int fd, void* name, void* value, size_t size)',
);
export const setxattr: (path: CPath, name: Buffer, value: Buffer, size: Int, flags: Int) => Int = lib.func(
  'int setxattr(void* path, void* name, void* value, size_t size, int flags)',
);
export const listxattr: (path: CPath, list: Buffer | null, size: Int) => Int = lib.func(
  'int64_t listxattr(void* path, void* list, size_t size)',
);
export const removexattr: (path: CPath, name: Buffer) => Int = lib.func(
  'int removexattr(void* path, void* name)',
);
export const lgetxattr: (path: CPath, name: Buffer, value: Buffer | null, size: Int) => Int = lib.func(
  'int64_t lgetxattr(void* path, void* name, void* value, size_t size)',
);
export const lsetxattr: (path: CPath, name: Buffer, value: Buffer, size: Int, flags: Int) => Int = lib.func(
  'int lsetxattr(void* path, void* name, void* value, size_t size, int flags)',
);
export const llistxattr: (path: CPath, list: Buffer | null, size: Int) => Int = lib.func(
  'int64_t llistxattr(void* path, void* list, size_t size)',
);
export const lremovexattr: (path: CPath, name: Buffer) => Int = lib.func(
  'int lremovexattr(void* path, void* name)',
);

// Names
export const getdents64: (fd: Int, out: Buffer, size: Int) => Int = lib.func(
  'int64_t getdents64(int fd, void* out, size_t size)',
);
export const mkdirat: (dir: Int, path: CPath, mode: Int) => Int = lib.func(
  'int mkdirat(int dir, void* path, uint mode)',
);
export const mknodat: (dir: Int, path: CPath, mode: Int, dev: Int) => Int = lib.func(
  'int mknodat(int dir, void* path, uint mode, uint64_t dev)',
);
export const symlinkat: (target: CPath, dir: Int, path: CPath) => Int = lib.func(
  'int symlinkat(void* target, int dir, void* path)',
);
export const readlinkat: (dir: Int, path: CPath, out: Buffer, size: Int) => Int = lib.func(
  'int64_t readlinkat(int dir, void* path, void* out, size_t size)',
);
export const linkat: (dirA: Int, a: CPath, dirB: Int, b: CPath, flags: Int) => Int = lib.func(
  'int linkat(int dirA, void* a, int dirB, void* b, int flags)',
);
export const unlinkat: (dir: Int, path: CPath, flags: Int) => Int = lib.func(
  'int unlinkat(int dir, void* path, int flags)',
);
export const renameat2: (dirA: Int, a: CPath, dirB: Int, b: CPath, flags: Int) => Int = lib.func(
  'int renameat2(int dirA, void* a, int dirB, void* b, uint flags)',
);
export const umask: (mask: Int) => Int = lib.func('uint umask(uint mask)');

// Identity of the calling thread. glibc does not spread these two over the process, unlike setuid.
export const setfsuid: (uid: Int) => Int = lib.func('int setfsuid(uint uid)');
export const setfsgid: (gid: Int) => Int = lib.func('int setfsgid(uint gid)');
export const prctl: (op: Int, a: Int, b: Int, c: Int, d: Int) => Int = lib.func(
  'int prctl(int op, ulong a, ulong b, ulong c, ulong d)',
);

// Namespaces and mounts
export const unshare: (flags: Int) => Int = lib.func('int unshare(int flags)');
export const mount: (source: CPath, target: CPath, type: CPath, flags: Int, data: CPath) => Int = lib.func(
  'int mount(void* source, void* target, void* type, ulong flags, void* data)',
);
export const umount2: (target: CPath, flags: Int) => Int = lib.func('int umount2(void* target, int flags)');
/** glibc 2.36 has a wrapper, musl and older glibc do not. */
export const fsopen = syscall<[type: Buffer, flags: Int]>(430, 'void*', 'long');
export const fsconfig = syscall<[fd: Int, cmd: Int, key: CPath, value: CPath, aux: Int]>(
  431,
  'long',
  'long',
  'void*',
  'void*',
  'long',
);
export const fsmount = syscall<[fd: Int, flags: Int, attr: Int]>(432, 'long', 'long', 'long');

// Waiting
/** `fds` is an array of `struct pollfd` (8 bytes each). */
export const poll: (fds: Buffer, count: Int, timeoutMs: Int) => Int = lib.func(
  'int poll(void* fds, ulong count, int timeoutMs)',
);
export const epollCreate1: (flags: Int) => Int = lib.func('int epoll_create1(int flags)');
const epollCtl: (epoll: Int, op: Int, fd: Int, event: Buffer) => Int = lib.func(
  'int epoll_ctl(int epoll, int op, int fd, void* event)',
);
const EPOLL_CTL_ADD = 1;
/** Errors and hang-ups are reported whatever `events` says. */
export function epollAdd(epoll: Int, fd: Int, events: Int): Int {
  const event = Buffer.alloc(16);
  event.writeUInt32LE(events, 0);
  return epollCtl(epoll, EPOLL_CTL_ADD, fd, event);
}
export const inotifyInit1: (flags: Int) => Int = lib.func('int inotify_init1(int flags)');
export const inotifyAddWatch: (fd: Int, path: CPath, mask: Int) => Int = lib.func(
  'int inotify_add_watch(int fd, void* path, uint mask)',
);
export const inotifyRmWatch: (fd: Int, wd: Int) => Int = lib.func('int inotify_rm_watch(int fd, int wd)');

/** The address of a Buffer's first byte; it stays valid while the Buffer's ArrayBuffer lives. */
export const addressOf = (buf: Buffer): bigint => koffi.address(buf);
