/**
 * A window's filesystem, served by this process: the overlay and the engine put together, the kernel notifications
 * written, the account given. All on the main thread, but for the notifications.
 */
import { Engine } from '../fuse/engine.ts';
import type { Driver, DriverEvents, Handler } from '../fuse/handler.ts';
import { WRITE_IDLE_MS } from '../overlay/descriptors.ts';
import { handlerOf } from '../overlay/filesystem.ts';
import { releaseAllHeld } from '../overlay/held.ts';
import type { Caught, KeptRecord, Ledger, PathRecord, WindowError } from '../overlay/ledger.ts';
import { KernelNotifier } from '../overlay/notifier.ts';
import { type Notifier, Overlay, type OverlayOptions } from '../overlay/overlay.ts';
import { LowerWatch } from '../overlay/watch.ts';
import { optimizeEarlier } from '../sys/compiler.ts';
import { collectGarbage, keepYoungGenerationSmall } from '../sys/heap.ts';
import { close, write } from '../sys/libc.ts';
import { ThreadedWrites } from '../sys/threaded-writes.ts';
import { addCounts } from './counts.ts';
import { requested } from './cpu-latency.ts';

/** State of a window at one moment; sizes in bytes. */
export interface WindowState {
  caught: Caught;
  paths: PathRecord[];
  moved: { path: string; why: string }[];
  kept: KeptRecord[];
  errors: WindowError[];
  upper: { used: number; limit: number; noswap: boolean };
  requests: Record<string, number>;
  /** Messages that took something back from the kernel, because others changed it. */
  notifications: number;
  nodes: number;
  descriptors: number;
}

/** When so many nodes are gone, and it is quiet, their memory is given back: a collection of what is left takes 10-20 ms. */
const WORTH_COLLECTING = 20_000;
const QUIET_MS = 500;
/** A shorter window never comes to need it: `forget exec -- true` takes 1.3 ms less without loading `node:v8`. */
const TUNED_FROM_MS = 60;

/** A mounted device for forget's own engine to serve, or what makes another driver. */
export type ServeOn = number | ((handler: Handler, events: DriverEvents) => Driver);

/** Where the kernel keeps nothing, and can be told nothing. */
const silent: Notifier = { inode() {}, attributes() {}, attributesNow() {}, entry() {}, flush() {} };

const NOTHING_CAUGHT: Caught = { written: 0, created: 0, deleted: 0, renamed: 0, bytes: 0 };

const RELEASE_WITHIN_MS = 1000;

export class Server {
  /** Settles when nothing is served any more, for whatever reason. */
  readonly ended: Promise<void>;
  /** What went wrong in forget itself. */
  readonly defects: string[] = [];
  readonly overlay: Overlay;
  /** Of the windows that are open, or of one of them by its number. */
  ledgers: (window?: number) => Ledger[] = () => [this.overlay.ledger];
  private readonly engine: Driver;
  /** What forget's own engine serves; -1 under another driver. */
  private readonly device: number;
  private watch: LowerWatch | undefined;
  private notifier: KernelNotifier | undefined;
  private notifications: ThreadedWrites | undefined;
  private settled = false;
  private busy: Promise<unknown> = Promise.resolve();
  private idleTimer: NodeJS.Timeout | undefined;
  /** How many nodes there were at the most since memory was last given back. */
  private mostNodes = 0;
  private quietTimer: NodeJS.Timeout | undefined;
  private tuningTimer: NodeJS.Timeout | undefined;
  private ending: NodeJS.Immediate | undefined;

  /** `unreported` are paths that the report leaves out. Throws SysError. */
  constructor(on: ServeOn, options: OverlayOptions, unreported: readonly string[]) {
    let nowEnded: () => void = () => {};
    this.ended = new Promise((resolve) => {
      nowEnded = resolve;
    });
    this.overlay = new Overlay(options);
    const { overlay } = this;
    overlay.ledger.ignored = new Set(unreported);
    const events: DriverEvents = {
      defect: (message, error) => {
        const detail = error instanceof Error ? (error.stack ?? error.message) : String(error ?? '');
        this.defects.push(detail ? `${message}: ${detail}` : message);
      },
      ended: () => {
        this.notifier?.end();
        this.notifications?.end();
        nowEnded();
      },
    };
    overlay.notifier = silent;
    this.device = typeof on === 'number' ? on : -1;
    this.engine = typeof on === 'number' ? this.engineOn(on, events) : on(handlerOf(overlay), events);
    overlay.engine = this.engine;
    this.engine.afterRequest = () => {
      requested();
      overlay.descriptors.makeRoom();
    };
    this.engine.idle = () => this.idle();
  }

  /** The kernel keeps what it was told, and is told what changes outside. */
  private engineOn(device: number, events: DriverEvents): Engine {
    const { overlay } = this;
    const engine = new Engine(device, handlerOf(overlay), events);
    const notifications = new ThreadedWrites(device);
    this.notifications = notifications;
    this.notifier = new KernelNotifier(
      (messages) => notifications.write(messages),
      (message) => write(device, message, message.length),
    );
    overlay.notifier = this.notifier;
    const watch = new LowerWatch(overlay);
    this.watch = watch;
    engine.makeSpace = () => overlay.descriptors.endAll();
    overlay.descriptors.mayEndLater = true;
    engine.watch({ fd: watch.fd, ready: () => watch.drain() });
    overlay.watchDirectory = (node) => watch.add(node);
    overlay.unwatchDirectory = (node) => watch.remove(node);
    overlay.descriptors.closing = (node) => watch.closing(node);
    return engine;
  }

  /** Begins to serve; the device must be mounted. */
  start(): void {
    this.engine.start();
  }

  /** Other devices that are served by this thread. */
  besides(devices: readonly number[]): void {
    if (this.engine instanceof Engine) this.engine.besides(devices);
  }

  /** Whether what the kernel learns is good for long, since outside changes are seen. */
  get lasting(): boolean {
    return this.watch?.seesAll ?? false;
  }

  /** Whether a lower directory, by its path relative to the root, was made in this window. */
  madeDirectory(path: string): boolean {
    return this.overlay.madeDirectory(path);
  }

  /** Resolves when the kernel has dealt with all that it was told so far, or is not served any more. */
  async kernelTold(): Promise<void> {
    await this.notifications?.written();
  }

  /** What the windows that are open have caught so far. */
  state(): WindowState {
    return this.stateOf(this.ledgers());
  }

  /** The same of one window: to be taken while it is open, and called when it has closed. */
  account(window: number): () => WindowState {
    const ledgers = this.ledgers(window);
    return () => this.stateOf(ledgers);
  }

  private stateOf(ledgers: readonly Ledger[]): WindowState {
    const { upper, table, descriptors } = this.overlay;
    return {
      caught: ledgers.map((ledger) => ledger.caught()).reduce(addCounts, NOTHING_CAUGHT),
      paths: ledgers.flatMap((ledger) => ledger.paths()),
      moved: ledgers.flatMap((ledger) => ledger.moved),
      kept: ledgers.flatMap((ledger) => [...ledger.kept.values()]),
      errors: ledgers.flatMap((ledger) => ledger.errorList()),
      upper: { ...upper.usage(), noswap: upper.noswap },
      requests: this.engine.requestCounts(),
      notifications: this.notifier?.sent ?? 0,
      nodes: table.size,
      descriptors: descriptors.count,
    };
  }

  /** The self-test is through: its canary, in the root, goes as if it had never been, and outside changes are seen. */
  tested(canary: string): void {
    this.overlay.dropFromRoot(canary);
    this.watch?.start();
    this.tuningTimer = setTimeout(() => {
      keepYoungGenerationSmall();
      optimizeEarlier();
    }, TUNED_FROM_MS);
    this.tuningTimer.unref();
  }

  /**
   * Serves no more: whoever is inside gets errors from then on. What was held goes to the lower. Returns the last
   * state.
   */
  finish(): WindowState {
    this.engine.stop();
    clearTimeout(this.idleTimer);
    clearTimeout(this.quietTimer);
    clearTimeout(this.tuningTimer);
    clearImmediate(this.ending);
    this.watch?.stop();
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
    await this.quiet();
    const written = await this.notifications?.release(RELEASE_WITHIN_MS);
    // The number of a device that is still being written to stays taken.
    if (this.device >= 0 && written !== false) close(this.device);
    this.watch?.close();
    this.overlay.close();
  }

  /** Something that needs the upper is under way; it settles by itself. */
  busyWith(work: Promise<unknown>): void {
    const settled = work.then(
      () => {},
      () => {},
    );
    this.busy = Promise.all([this.busy, settled]);
  }

  /** Resolves when nothing of that sort is under way. */
  async quiet(): Promise<void> {
    await this.busy;
  }

  /** Descriptors that may write must not stay open: see overlay/descriptors.ts. */
  private idle(): void {
    const { descriptors, table } = this.overlay;
    this.endDescriptors();
    this.mostNodes = Math.max(this.mostNodes, table.size);
    if (this.mostNodes - table.size > WORTH_COLLECTING) this.giveMemoryBack();
    if (this.idleTimer || !descriptors.hasWritable) return;
    this.idleTimer = setTimeout(() => {
      this.idleTimer = undefined;
      descriptors.closeIdleWritable();
      this.idle();
    }, WRITE_IDLE_MS);
  }

  /** In rounds, one after the other: a request that has come meanwhile is served in between. */
  private endDescriptors(): void {
    if (this.ending || !this.overlay.descriptors.endSome()) return;
    this.ending = setImmediate(() => {
      this.ending = undefined;
      this.endDescriptors();
    });
  }

  private giveMemoryBack(): void {
    clearTimeout(this.quietTimer);
    this.quietTimer = setTimeout(() => {
      this.mostNodes = this.overlay.table.size;
      collectGarbage();
    }, QUIET_MS);
    this.quietTimer.unref();
  }
}
