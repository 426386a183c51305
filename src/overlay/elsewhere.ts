/**
 * Work on a file's bytes that may wait for a disk, done by pool threads while the loop goes on: each of these takes the
 * request in hand, returns DEFERRED, and answers when its call has returned.
 *
 * A thread has a descriptor of its own (the cache may close the node's meanwhile). While it changes a node's bytes,
 * `node.waiting` holds whoever else wants to change it, so that a copy-up or a rename never meets half a write.
 */
import { OUT_HEADER_SIZE } from '../fuse/abi.ts';
import { DEFERRED, type Deferred } from '../fuse/handler.ts';
import { F_DUPFD_CLOEXEC } from '../sys/constants.ts';
import { close, errno, fcntl, pread } from '../sys/libc.ts';
import { slowInPool } from '../sys/pool.ts';
import type { Node } from './node.ts';
import type { Overlay } from './overlay.ts';

/** A second descriptor of the same open file, that nobody else closes; or -errno. */
export function ownDescriptor(fd: number): number {
  const own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  return own < 0 ? -errno() : own;
}

export function readElsewhere(o: Overlay, fd: number, offset: number, size: number): number {
  const own = ownDescriptor(fd);
  if (own < 0) return -own;
  const postponed = o.engine.postpone();
  const message = Buffer.allocUnsafeSlow(OUT_HEADER_SIZE + size);
  slowInPool(pread, [own, message.subarray(OUT_HEADER_SIZE), size, offset], (n, error) => {
    close(own);
    if (n < 0) postponed.answer(error);
    else postponed.answerWith(message, n);
  });
  return DEFERRED;
}

export function syncElsewhere(o: Overlay, fd: number, call: (fd: number) => number): number {
  const own = ownDescriptor(fd);
  if (own < 0) return -own;
  const postponed = o.engine.postpone();
  slowInPool(call, [own], (result, error) => {
    close(own);
    postponed.answer(result < 0 ? error : 0);
  });
  return DEFERRED;
}

/**
 * A call that changes `node`'s bytes through `fd`: `begin` starts it with a descriptor of its own, and `finished` is
 * called with how many bytes it changed, before that is answered.
 */
export function changeElsewhere(
  o: Overlay,
  node: Node,
  fd: number,
  begin: (fd: number, done: (count: number, error: number) => void) => void,
  finished: (count: number, fd: number) => void,
): number {
  const own = ownDescriptor(fd);
  if (own < 0) return -own;
  const postponed = o.engine.postpone();
  const waiting: Deferred[] = [];
  node.waiting = waiting;
  begin(own, (count, error) => {
    node.waiting = null;
    if (count >= 0) finished(count, own);
    close(own);
    postponed.answer(count < 0 ? error : 0, (reply) => reply.putCount(count));
    o.engine.replay(waiting);
    o.dropIdle(node);
  });
  return DEFERRED;
}
