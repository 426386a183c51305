/**
 * Waiting for any descriptor in Node's own event loop. Node gives JavaScript no way to poll a character device or an
 * inotify descriptor, but its executable exports libuv, and `uv_poll` does just that: the callback runs on the main
 * thread, between timers and sockets (3.8 us a wake-up with a read and a write, measured on a pipe).
 */

import { SysError } from './errno.ts';
import { koffi } from './koffi.ts';

const lib = koffi.load(null);
const callbackType = koffi.pointer(
  koffi.proto('void forget_poll_callback(void* handle, int status, int events)'),
);
const closedType = koffi.pointer(koffi.proto('void forget_closed_callback(void* handle)'));
const defaultLoop: () => unknown = lib.func('void* uv_default_loop()');
const handleSize: (type: number) => number = lib.func('size_t uv_handle_size(int type)');
const pollInit: (loop: unknown, handle: Buffer, fd: number) => number = lib.func(
  'int uv_poll_init(void* loop, void* handle, int fd)',
);
const pollStart: (handle: Buffer, events: number, callback: unknown) => number = lib.func(
  'uv_poll_start',
  'int',
  ['void*', 'int', callbackType],
);
const closeHandle: (handle: Buffer, closed: unknown) => void = lib.func('uv_close', 'void', [
  'void*',
  closedType,
]);

/** UV_POLL of libuv's uv_handle_type and UV_READABLE; part of its stable ABI since 1.0. */
const UV_POLL = 8;
const UV_READABLE = 1;

/** Handles that libuv knows, which must not be collected before it has said that it is done with them. */
const live = new Set<Buffer>();

/**
 * Calls back whenever the descriptor is readable (level-triggered), until stopped. Main thread only. Keeps the process
 * alive. Stop before closing the descriptor. Throws SysError.
 */
export function whenReadable(fd: number, callback: () => void): { stop(): void } {
  const handle = Buffer.alloc(handleSize(UV_POLL));
  const initialised = pollInit(defaultLoop(), handle, fd);
  if (initialised < 0) throw new SysError(-initialised, 'polling a descriptor');
  live.add(handle);
  const registered = koffi.register(callback, callbackType);
  let stopped = false;
  const stop = (): void => {
    if (stopped) return;
    stopped = true;
    const closed = koffi.register(() => {
      live.delete(handle);
      // koffi has a fixed number of callbacks. Not from within this one.
      setImmediate(() => {
        koffi.unregister(registered);
        koffi.unregister(closed);
      });
    }, closedType);
    closeHandle(handle, closed);
  };
  const started = pollStart(handle, UV_READABLE, registered);
  if (started < 0) {
    stop();
    throw new SysError(-started, 'polling a descriptor');
  }
  return { stop };
}
