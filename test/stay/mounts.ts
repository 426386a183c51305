/**
 * Opens and closes a mount again and again in one process, with the code that `forget mount` serves with, and says what
 * that left in the process: `mounts WORKSPACE MOUNTPOINT COUNT` prints a JSON array of `Trace`, one a round. Bundled by
 * `buildMounts`; run with --expose-gc.
 */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { request } from '../../src/window/control.ts';
import { serveMount } from '../../src/window/serve-mount.ts';
import { buildSettings } from '../../src/window/settings.ts';

export interface Trace {
  /** What each descriptor leads to, sorted. */
  descriptors: string[];
  threads: number;
  children: string[];
  listeners: number;
  /** What keeps Node's event loop busy, sorted. */
  resources: string[];
  mounts: string[];
  sockets: string[];
  /** Bytes, after a collection of garbage. */
  rss: number;
}

/** Node's own heap takes this many rounds to find its size. */
const WARM_UP = 20;

/** How long the C library keeps a thread of AIO that has nothing to do is a second (aio_idle_time). */
const AIO_IDLE_MS = 1300;

const run = promisify(execFile);

/** What an agent might do before the mount goes. */
const WORK = `cd "$1" && echo leak >>memory/old.md && rm -f MEMORY.md && ls -R >/dev/null && cat README.md >/dev/null &&
echo real >src/real.txt && mv src/real.txt src/real2.txt && rm src/real2.txt`;

function traceNow(): Trace {
  (globalThis as { gc?: () => void }).gc?.();
  const descriptors = readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      // Numbers of pipes and sockets differ from round to round.
      return [readlinkSync(`/proc/self/fd/${fd}`).replace(/\[\d+\]|(?<=\/proc\/)\d+/g, '')];
    } catch {
      return []; // the descriptor of the listing itself
    }
  });
  const lines = (path: string, wanted: RegExp) =>
    readFileSync(path, 'latin1')
      .split('\n')
      .filter((line) => wanted.test(line));
  return {
    descriptors: descriptors.sort(),
    threads: readdirSync('/proc/self/task').length,
    children: lines(`/proc/self/task/${process.pid}/children`, /\d/),
    listeners: ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGCHLD'].reduce(
      (n, name) => n + process.listenerCount(name),
      0,
    ),
    resources: process.getActiveResourcesInfo().sort(),
    mounts: lines('/proc/self/mountinfo', / - fuse\.forget /).filter((line) =>
      line.includes(process.argv[3]!),
    ),
    sockets: lines('/proc/net/unix', new RegExp(`@forget/\\d+/${process.pid}-`)),
    rss: process.memoryUsage.rss(),
  };
}

async function main(workspace: string, mountpoint: string, count: number): Promise<void> {
  const { settings } = await buildSettings({ workspace, rules: [], quiet: true }, '/');
  const root = process.getuid!() === 0;
  const ends: ((id: string) => Promise<unknown>)[] = [
    (id) => request(id, 'unmount', { force: false }),
    (id) => request(id, 'unmount', { force: true }),
    () => (root ? run('umount', [mountpoint]) : run('fusermount3', ['-u', mountpoint])),
    async () => process.kill(process.pid, 'SIGTERM'),
  ];
  const traces: Trace[] = [];
  for (let round = 0; round < count; round++) {
    let done: Promise<unknown> = Promise.resolve();
    const code = await serveMount(settings, mountpoint, { open: true, name: undefined }, (id) => {
      done = run('sh', ['-c', WORK, 'sh', mountpoint]).then(() => ends[round % ends.length]!(id));
    });
    await done;
    if (code !== 0) throw new Error(`round ${round} ended with ${code}`);
    // The guardian's end is noticed by the event loop.
    for (let i = 0; i < 100 && readFileSync(`/proc/self/task/${process.pid}/children`, 'latin1'); i++)
      await sleep(5);
    if (round === WARM_UP - 1 || round === count - 1) await sleep(AIO_IDLE_MS);
    traces.push(traceNow());
  }
  process.stdout.write(JSON.stringify(traces));
}

const [, , workspace, mountpoint, count] = process.argv;
void main(workspace!, mountpoint!, Number(count));
