/**
 * The FUSE worker: builds the overlay and serves it. It never returns to its event loop while it serves; messages
 * of the main thread are taken when the wake-up descriptor says that there are some.
 */
import { parentPort, receiveMessageOnPort } from 'node:worker_threads';
import { Engine } from '../fuse/engine.ts';
import { WRITE_IDLE_MS } from '../overlay/descriptors.ts';
import { handlerOf } from '../overlay/filesystem.ts';
import { releaseAllHeld } from '../overlay/held.ts';
import { KernelNotifier } from '../overlay/notifier.ts';
import { Overlay } from '../overlay/overlay.ts';
import { compileRules } from '../overlay/rules.ts';
import { Upper } from '../overlay/upper.ts';
import { LowerWatch } from '../overlay/watch.ts';
import { close, read } from '../sys/libc.ts';
import type { FromWorker, ToWorker, WindowState, WorkerStart } from './messages.ts';

const port = parentPort!;
const say = (message: FromWorker) => port.postMessage(message);

function defect(message: string, error?: unknown): void {
  const detail =
    error instanceof Error ? `: ${error.stack ?? error.message}` : error ? `: ${String(error)}` : '';
  say({ kind: 'defect', message: message + detail });
}

/** Returns the window's last state when the mount is gone. */
function serve(start: WorkerStart): WindowState {
  const overlay = new Overlay({
    rootPath: start.rootPath,
    lower: start.lower,
    upper: new Upper(start.upper),
    rules: compileRules(start.rules, { ignoreCase: start.ignoreCase }),
    hide: start.hide,
    readonly: start.readonly,
    fixed: new Set(start.fixed),
  });
  overlay.ledger.ignored = new Set(start.unreported);
  const engine = new Engine(start.device, handlerOf(overlay), { defect });
  overlay.engine = engine;
  overlay.notifier = new KernelNotifier((messages) => say({ kind: 'notify', messages }));
  const watch = new LowerWatch(overlay);
  engine.watch({ fd: watch.fd, ready: () => watch.drain() });
  overlay.watchDirectory = (node) => watch.add(node);
  overlay.unwatchDirectory = (node) => watch.remove(node);
  engine.watch({ fd: start.wake, ready: () => takeMessages(overlay, start.wake) });
  engine.afterRequest = () => overlay.descriptors.makeRoom();
  engine.idle = () => {
    if (!overlay.descriptors.hasWritable) return -1;
    overlay.descriptors.closeIdleWritable();
    return overlay.descriptors.hasWritable ? WRITE_IDLE_MS : -1;
  };
  say({ kind: 'serving' });
  engine.run();
  releaseAllHeld(overlay);
  return stateOf(overlay);
}

const counter = Buffer.alloc(8);

function takeMessages(overlay: Overlay, wake: number): void {
  read(wake, counter, 8);
  for (let got = receiveMessageOnPort(port); got; got = receiveMessageOnPort(port)) {
    const message = got.message as ToWorker;
    if (message.kind === 'stop') overlay.engine.stop();
    else if (message.kind === 'ask') {
      say({ kind: 'state', state: stateOf(overlay) });
    }
  }
}

function stateOf(overlay: Overlay): WindowState {
  const { ledger, upper, engine, table, descriptors } = overlay;
  return {
    caught: ledger.caught(),
    paths: ledger.paths(),
    moved: ledger.moved,
    errors: ledger.errorList(),
    upper: { ...upper.usage(), noswap: upper.noswap },
    requests: engine.requestCounts(),
    nodes: table.size,
    descriptors: descriptors.count,
  };
}

// The mount comes first: a read of the device before it fails.
port.once('message', (message: ToWorker) => {
  if (message.kind !== 'serve') return;
  try {
    say({ kind: 'ended', state: serve(message.start) });
  } catch (error) {
    defect('the FUSE worker failed', error);
    close(message.start.device);
    say({ kind: 'ended' });
  }
  port.close();
});
