/**
 * A window's filesystem, served by this process: the overlay and the engine put together, the kernel notifications
 * written, the account given. All on the main thread, but for the notifications.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Engine } from '../fuse/engine.ts';
import { WRITE_IDLE_MS } from '../overlay/descriptors.ts';
import { handlerOf } from '../overlay/filesystem.ts';
import { releaseAllHeld } from '../overlay/held.ts';
import type { Caught, PathRecord, WindowError } from '../overlay/ledger.ts';
import { KernelNotifier } from '../overlay/notifier.ts';
import { Overlay, type OverlayOptions } from '../overlay/overlay.ts';
import { LowerWatch } from '../overlay/watch.ts';
import { monotonicMs } from '../sys/clock.ts';
import { close, write, writeInPool } from '../sys/libc.ts';

/** State of a window at one moment; sizes in bytes. */
export interface WindowState {
  caught: Caught;
  paths: PathRecord[];
  moved: { path: string; why: string }[];
  errors: WindowError[];
  upper: { used: number; limit: number; noswap: boolean };
  requests: Record<string, number>;
  nodes: number;
  descriptors: number;
}

/** Notifications being written at once: one may wait for a directory that a process is busy in. */
const MOST_WRITES = 2;
const RELEASE_WITHIN_MS = 1000;

export class Server {
  /** Settles when nothing is served any more, for whatever reason. */
  readonly ended: Promise<void>;
  /** What went wrong in forget itself. */
  readonly defects: string[] = [];
  private readonly overlay: Overlay;
  private readonly engine: Engine;
  private readonly watch: LowerWatch;
  private readonly device: number;
  private readonly notifications: Uint8Array[] = [];
  private writes = 0;
  private settled = false;
  private idleTimer: NodeJS.Timeout | undefined;

  /** `unreported` are paths that the report leaves out. Throws SysError. */
  constructor(device: number, options: OverlayOptions, unreported: readonly string[]) {
    let nowEnded: () => void = () => {};
    this.ended = new Promise((resolve) => {
      nowEnded = resolve;
    });
    this.device = device;
    this.overlay = new Overlay(options);
    const { overlay } = this;
    overlay.ledger.ignored = new Set(unreported);
    this.engine = new Engine(device, handlerOf(overlay), {
      defect: (message, error) => {
        const detail = error instanceof Error ? (error.stack ?? error.message) : String(error ?? '');
        this.defects.push(detail ? `${message}: ${detail}` : message);
      },
      ended: nowEnded,
    });
    overlay.engine = this.engine;
    overlay.notifier = new KernelNotifier(
      (messages) => this.notify(messages),
      (message) => write(device, message, message.length),
    );
    this.watch = new LowerWatch(overlay);
    const { watch } = this;
    this.engine.watch({ fd: watch.fd, ready: () => watch.drain() });
    overlay.watchDirectory = (node) => watch.add(node);
    overlay.unwatchDirectory = (node) => watch.remove(node);
    this.engine.afterRequest = () => overlay.descriptors.makeRoom();
    this.engine.idle = () => this.idle();
  }

  /** Begins to serve; the device must be mounted. */
  start(): void {
    this.engine.start();
  }

  state(): WindowState {
    const { ledger, upper, table, descriptors } = this.overlay;
    return {
      caught: ledger.caught(),
      paths: ledger.paths(),
      moved: ledger.moved,
      errors: ledger.errorList(),
      upper: { ...upper.usage(), noswap: upper.noswap },
      requests: this.engine.requestCounts(),
      nodes: table.size,
      descriptors: descriptors.count,
    };
  }

  /** The self-test is through: takes its file out of the view as if it had never been, and watches the lower. */
  endSelfTest(canary: string): void {
    this.overlay.dropFromRoot(canary);
    this.watch.start();
  }

  /**
   * Serves no more: whoever is inside gets errors from then on. What was held goes to the lower. Returns the last
   * state.
   */
  finish(): WindowState {
    this.engine.stop();
    clearTimeout(this.idleTimer);
    this.watch.stop();
    if (!this.settled) {
      releaseAllHeld(this.overlay);
      this.overlay.identity.restore();
    }
    this.settled = true;
    return this.state();
  }

  /**
   * After `finish`, and best after the mount is gone: gives back all that the server holds. `forget exec` does
   * without, since its process ends.
   */
  async release(): Promise<void> {
    this.notifications.length = 0;
    await this.unwritten();
    // The number of a device that is still being written to stays taken.
    if (this.writes === 0) close(this.device);
    this.watch.close();
    this.overlay.close();
  }

  /** Notifications that a pool thread has in hand end with the connection, unless another process keeps that up. */
  private async unwritten(): Promise<void> {
    const deadline = monotonicMs() + RELEASE_WITHIN_MS;
    while (this.writes > 0 && monotonicMs() < deadline) await sleep(5);
  }

  /** Descriptors that may write must not stay open: see overlay/descriptors.ts. */
  private idle(): void {
    const { descriptors } = this.overlay;
    if (this.idleTimer || !descriptors.hasWritable) return;
    this.idleTimer = setTimeout(() => {
      this.idleTimer = undefined;
      descriptors.closeIdleWritable();
      this.idle();
    }, WRITE_IDLE_MS);
  }

  private notify(messages: Uint8Array[]): void {
    this.notifications.push(...messages);
    while (this.writes < MOST_WRITES && this.notifications.length > 0) this.writeNext();
  }

  private writeNext(): void {
    const next = this.notifications.shift();
    if (!next) return;
    this.writes++;
    // Refusals are in order: the kernel does not know the name or the node any more.
    writeInPool(this.device, Buffer.from(next.buffer, next.byteOffset, next.length), () => {
      this.writes--;
      this.writeNext();
    });
  }
}
