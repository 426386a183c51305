/**
 * The second driver: libfuse 2.9 by way of fuse-native mounts, reads the device in threads of its own, and has each
 * request handled by a callback on the main thread. Beside `Engine` this is the other one who runs a handler.
 *
 * Thread and lifetime: a libfuse thread waits for its answer, so that a request that is put aside needs nothing but its
 * closure. The threads end with the connection (unmount, abort); nothing here can end them. After `stop` every request
 * is answered with ENOTCONN, until whoever mounted has taken the mount away, or the process ends.
 */
import { readdirSync, readlinkSync } from 'node:fs';
import { cstring } from '../../sys/bytes.ts';
import {
  F_DUPFD_CLOEXEC,
  F_SETFD,
  FD_CLOEXEC,
  MS_NOATIME,
  MS_NODEV,
  MS_NOEXEC,
  MS_NOSUID,
  O_CLOEXEC,
  O_DIRECTORY,
  O_PATH,
} from '../../sys/constants.ts';
import { EIO, ENOTCONN, SysError } from '../../sys/errno.ts';
import { close, dup3, epollAdd, epollCreate1, errno, fcntl, open } from '../../sys/libc.ts';
import { whenReadable } from '../../sys/readable.ts';
import { OUT_HEADER_SIZE } from '../abi.ts';
import {
  DEFERRED,
  type Deferred,
  type Driver,
  type DriverEvents,
  type Handler,
  type Postponed,
} from '../handler.ts';
import { FSTYPE, SOURCE } from '../mount.ts';
import type { Reply } from '../reply.ts';
import { type Addon, DriverUnavailable, loadAddon, type Operation } from './addon.ts';
import { type Call, callbacksOf } from './callbacks.ts';
import { Operations, PUT_ASIDE } from './operations.ts';

export class NativeDriver implements Driver {
  /** Nothing that libfuse still has to say would make room: an ENOSPC is final. */
  readonly lastTry = true;
  afterRequest: () => void = () => {};
  idle: () => void = () => {};
  private readonly addon: Addon;
  private readonly events: DriverEvents;
  private readonly counts = new Map<Operation, number>();
  private readonly operations: Operations;
  /** What the addon's threads point to. */
  private readonly records = new Set<Buffer>();
  private thread = Buffer.alloc(0);
  /** The one that the handler has now. */
  private call: Call | undefined;
  private running = true;
  /** A duplicate of libfuse's descriptor, or -1. */
  private device = -1;
  private connection: { stop(): void } | undefined;

  private readonly mountpoint: string;
  private readonly flags: number;

  /**
   * `mountpoint` is a byte string, `flags` are those of mount(2). Throws DriverUnavailable.
   */
  constructor(handler: Handler, events: DriverEvents, mountpoint: string, flags: number) {
    this.addon = loadAddon().addon;
    this.mountpoint = mountpoint;
    this.flags = flags;
    this.events = events;
    this.operations = new Operations(handler);
  }

  /**
   * Mounts, in the calling thread's mount namespace, for every user, and serves from then on. Throws SysError or
   * DriverUnavailable.
   */
  start(): void {
    const place = open(cstring(this.mountpoint), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (place < 0) throw new SysError(errno(), 'opening the mount point');
    const { addon } = this;
    const implemented = new Uint32Array(35);
    const callbacks: unknown[] = [];
    const byName = callbacksOf(addon, this.operations, (call) => {
      this.counts.set(call.operation, (this.counts.get(call.operation) ?? 0) + 1);
      this.serve(call);
    });
    for (const [name, callback] of Object.entries(byName)) {
      const number = addon[`op_${name as Operation}`];
      implemented[number] = 1;
      callbacks[number] = callback;
    }
    const before = devices();
    this.thread = Buffer.alloc(addon.sizeof_fuse_thread_t);
    const makeRecord = (size: number) => {
      const record = Buffer.alloc(size);
      this.records.add(record);
      return record;
    };
    try {
      // Through the descriptor: a path may hold bytes that are not UTF-8, and be longer than the addon's 1023.
      const path = `/proc/self/fd/${place}`;
      const options = `-o${mountOptions(this.flags).join(',')}`;
      addon.fuse_native_mount(path, options, this.thread, this, makeRecord, callbacks, implemented);
    } catch {
      close(place);
      throw new DriverUnavailable('libfuse could not mount', 'see what it said above');
    }
    const [device] = [...devices()].filter((fd) => !before.has(fd));
    if (device === undefined) throw new DriverUnavailable('libfuse has no device', 'report this, please');
    // The command must not have it: it would keep the connection alive after forget's death.
    fcntl(device, F_SETFD, FD_CLOEXEC);
    this.watchConnection(device, place);
  }

  /**
   * libfuse says nothing when the connection ends, but its descriptor then polls as an error. Not polled by itself: libuv
   * would make it non-blocking, which ends libfuse's threads. Takes over the number `place`: libfuse has the mount
   * point's path under it, and unmounts what that leads to should its threads fail; now, nothing. A duplicate is watched:
   * libfuse closes its own at the end, and an epoll forgets what is closed, the error with it.
   */
  private watchConnection(device: number, place: number): void {
    const epoll = epollCreate1(O_CLOEXEC);
    this.device = fcntl(device, F_DUPFD_CLOEXEC, 0);
    if (
      epoll < 0 ||
      this.device < 0 ||
      epollAdd(epoll, this.device, 0) < 0 ||
      dup3(epoll, place, O_CLOEXEC) < 0
    ) {
      throw new SysError(errno(), 'watching the connection');
    }
    close(epoll);
    this.connection = whenReadable(place, () => this.stop());
  }

  stop(): void {
    if (!this.running) return;
    this.running = false;
    this.connection?.stop();
    if (this.device >= 0) close(this.device);
    this.events.ended();
  }

  requestCounts(): Record<string, number> {
    return Object.fromEntries([...this.counts].map(([name, count]) => [name.toUpperCase(), count]));
  }

  defer(list: Deferred[]): typeof DEFERRED {
    list.push(this.call!);
    return DEFERRED;
  }

  replay(list: Deferred[]): void {
    for (const call of list.splice(0) as Call[]) setImmediate(() => this.serve(call));
  }

  retry(list: Deferred[]): void {
    this.replay(list);
  }

  fail(list: Deferred[], error: number): void {
    for (const call of list.splice(0) as Call[]) this.end(call, -error);
  }

  postpone(): Postponed {
    const call = this.call!;
    const { reply } = this.operations;
    const succeed = (put: (reply: Reply) => void) => {
      reply.begin();
      put(reply);
      this.end(call, call.take());
    };
    return {
      answer: (outcome, put) => (outcome === 0 ? succeed(put ?? (() => {})) : this.end(call, -outcome)),
      answerWith: (message, length) =>
        succeed(() => reply.putBytes(message.subarray(OUT_HEADER_SIZE, OUT_HEADER_SIZE + length))),
    };
  }

  /** libfuse takes the data from a buffer. */
  answerFromFile(): boolean {
    return false;
  }

  private serve(call: Call): void {
    const result = this.running ? this.resultOf(call) : -ENOTCONN;
    if (result !== PUT_ASIDE) this.end(call, result);
  }

  private resultOf(call: Call): number {
    this.call = call;
    try {
      return call.attempt() || call.take();
    } catch (error) {
      if (error instanceof SysError) return -error.errno;
      this.events.defect(`${call.operation} failed`, error);
      return -EIO;
    }
  }

  /** Lets the libfuse thread go on. */
  private end({ operation, send }: Call, result: number): void {
    try {
      send(result);
    } catch (error) {
      this.events.defect(`the answer to ${operation} failed`, error);
    }
    if (!this.running) return;
    this.operations.trim();
    this.afterRequest();
    this.idle();
  }
}

/** The descriptors that this process has of /dev/fuse. */
function devices(): Set<number> {
  const out = new Set<number>();
  for (const name of readdirSync('/proc/self/fd')) {
    try {
      if (readlinkSync(`/proc/self/fd/${name}`) === '/dev/fuse') out.add(Number(name));
    } catch {
      // The listing's own descriptor is closed again.
    }
  }
  return out;
}

function mountOptions(flags: number): string[] {
  return [
    `fsname=${SOURCE}`,
    `subtype=${FSTYPE.slice('fuse.'.length)}`,
    'allow_other',
    'default_permissions',
    'nonempty',
    'big_writes',
    // Two names of one file are two inodes to libfuse's kernel side, each with attributes of its own: none may be kept,
    // nor a name, since nothing tells the kernel of outside changes.
    'attr_timeout=0',
    'entry_timeout=0',
    'negative_timeout=0',
    'use_ino',
    // Of its own accord libfuse mounts with nosuid and nodev.
    flags & MS_NOSUID ? 'nosuid' : 'suid',
    flags & MS_NODEV ? 'nodev' : 'dev',
    ...(flags & MS_NOEXEC ? ['noexec'] : []),
    ...(flags & MS_NOATIME ? ['noatime'] : []),
  ];
}
