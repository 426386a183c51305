/**
 * What a file system answers the kernel with. The engine decodes a request, calls one of these, and sends what
 * stands in `reply`. Names are byte strings (one character a byte), without NUL and never empty.
 *
 * A method returns 0 for success, an errno (positive) for failure, or DEFERRED. It must
 * not throw; if it does, the caller gets EIO and the error is reported.
 */
import type { Reply } from './reply.ts';

/** The request was put aside by `Engine.defer` and will be answered when it is replayed. */
export const DEFERRED = -1;

/** A request that was put aside: whoever handles it only keeps it in a list. */
export type Deferred = object;

/** A request that is still owed an answer, wherever its work is done. To be answered once. */
export interface Postponed {
  /** As a handler's own outcome; `put` fills the reply of a success. */
  answer(outcome: number, put?: (reply: Reply) => void): void;
  /** A success whose `length` bytes stand in `message`, behind room for the header (`OUT_HEADER_SIZE`). */
  answerWith(message: Buffer, length: number): void;
}

/** Who runs a handler: engine.ts on the kernel's device, or native/driver.ts through libfuse. */
export interface Driver {
  /** Whether an ENOSPC or EDQUOT of the request in hand is final. */
  readonly lastTry: boolean;
  /** Called after each request, when nothing of it is in use any more. */
  afterRequest: () => void;
  /** Called when there is nothing to do for now. */
  idle: () => void;
  /**
   * For a handler that cannot answer yet and returns DEFERRED: the request in hand goes to `list`, to be handled from its
   * beginning when the list is given to `replay`.
   */
  defer(list: Deferred[]): typeof DEFERRED;
  replay(list: Deferred[]): void;
  /** Like `replay`, for what met ENOSPC or EDQUOT: for the last time. */
  retry(list: Deferred[]): void;
  /** Answers all that was put aside with an error. */
  fail(list: Deferred[], error: number): void;
  /** For a handler that returns DEFERRED and answers when its work, done elsewhere, is. */
  postpone(): Postponed;
  /**
   * Answers the request in hand, a READ, with `size` bytes of `fd` from `offset`, and the handler returns DEFERRED. False
   * where it did not, and the handler has to: a driver may be unable to. It may wait for the file's disk.
   */
  answerFromFile(fd: number, offset: number, size: number): boolean;
  /** Begins to serve. */
  start(): void;
  stop(): void;
  /** Requests by name, those that came at all. */
  requestCounts(): Record<string, number>;
}

export interface DriverEvents {
  /** No request is served any more. */
  ended(): void;
  /** It met a defect of its own: an exception in a handler, an answer that was refused. */
  defect(message: string, error?: unknown): void;
}

/** Who asks. One object, overwritten by each request. */
export interface Caller {
  uid: number;
  gid: number;
  pid: number;
  umask: number;
}

/** SETATTR's arguments; `valid` says which of them count (abi.ts, Fattr). Times in seconds and nanoseconds. */
export interface SetAttr {
  valid: number;
  size: number;
  mode: number;
  uid: number;
  gid: number;
  atime: number;
  atimeNsec: number;
  mtime: number;
  mtimeNsec: number;
}

/** Arguments of which none counts yet; to be filled again and again. */
export const emptySetAttr = (): SetAttr => ({
  valid: 0,
  size: 0,
  mode: 0,
  uid: 0,
  gid: 0,
  atime: 0,
  atimeNsec: 0,
  mtime: 0,
  mtimeNsec: 0,
});

export interface Handler {
  lookup(parent: number, name: string, reply: Reply): number;
  forget(node: number, count: number): void;
  getattr(node: number, reply: Reply): number;
  statx(node: number, reply: Reply): number;
  setattr(node: number, args: SetAttr, caller: Caller, reply: Reply): number;
  readlink(node: number, reply: Reply): number;
  symlink(parent: number, name: string, target: string, caller: Caller, reply: Reply): number;
  mknod(parent: number, name: string, mode: number, rdev: number, caller: Caller, reply: Reply): number;
  mkdir(parent: number, name: string, mode: number, caller: Caller, reply: Reply): number;
  tmpfile(parent: number, mode: number, caller: Caller, reply: Reply): number;
  unlink(parent: number, name: string, caller: Caller): number;
  rmdir(parent: number, name: string, caller: Caller): number;
  rename(from: number, name: string, to: number, newName: string, flags: number, caller: Caller): number;
  link(node: number, parent: number, name: string, caller: Caller, reply: Reply): number;
  /** `openFlags` are the descriptor's (O_NOATIME). */
  read(node: number, offset: number, size: number, openFlags: number, caller: Caller, reply: Reply): number;
  /** The data are `size` bytes of `bytes` from `start`; `openFlags` are the descriptor's (O_APPEND, O_SYNC). */
  write(
    node: number,
    offset: number,
    bytes: Buffer,
    start: number,
    size: number,
    writeFlags: number,
    openFlags: number,
    caller: Caller,
    reply: Reply,
  ): number;
  lseek(node: number, offset: number, whence: number, reply: Reply): number;
  fallocate(node: number, offset: number, length: number, mode: number, caller: Caller): number;
  copyFileRange(
    source: number,
    sourceOffset: number,
    target: number,
    targetOffset: number,
    length: number,
    caller: Caller,
    reply: Reply,
  ): number;
  fsync(node: number, dataOnly: boolean): number;
  statfs(node: number, reply: Reply): number;
  setxattr(node: number, name: string, value: Buffer, flags: number, caller: Caller): number;
  getxattr(node: number, name: string, size: number, reply: Reply): number;
  listxattr(node: number, size: number, caller: Caller, reply: Reply): number;
  removexattr(node: number, name: string, caller: Caller): number;
  readdir(node: number, cookie: number, size: number, plus: boolean, reply: Reply): number;
}
