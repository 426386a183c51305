/**
 * `forget mount` and `forget unmount`: a window that every process sees. In the background it is served by a process
 * of its own (daemon.ts), which is handed its settings and says when the mount is ready.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { displayName } from '../sys/bytes.ts';
import { listWindows, request } from './control.ts';
import { Failure } from './failure.ts';
import { explainNamespaceFailure, namespaceKind } from './namespace.ts';
import { planRoots } from './roots.ts';
import { say } from './say.ts';
import { CLOSING, type FirstWindow, serveMount } from './serve-mount.ts';
import type { WindowSettings } from './settings.ts';
import { clearMount, findForgetMounts } from './stale.ts';
import { refuseUsed } from './users.ts';
import { isId } from './window-id.ts';

export interface MountOptions {
  /** Byte string; the workspace itself for an in-place mount. */
  mountpoint: string;
  foreground: boolean;
  force: boolean;
  json: boolean;
  first: FirstWindow;
}

/** What the daemon is handed on its standard input, as one JSON text. */
export interface DaemonStart {
  settings: WindowSettings;
  mountpoint: string;
  first: FirstWindow;
}

/**
 * What it says on its standard output, as one line of JSON. When the mount is ready it wants one byte on descriptor 3: who
 * asked for it may have been ended meanwhile, and nobody would know of the mount.
 */
export type DaemonAnswer = { ready: { id: string; pid: number }; notices: string[] } | { failure: string };

/** Returns the exit code; throws a Failure with nothing mounted. */
export async function mountWindow(settings: WindowSettings, options: MountOptions): Promise<number> {
  const { uid, mayMount } = namespaceKind();
  // An ordinary user has fusermount3 to mount with; root without the capability has nothing.
  if (uid === 0 && !mayMount) throw new Failure(explainNamespaceFailure()[0]!);
  if (settings.driver === 'fuse-native' && !mayMount) {
    throw new Failure(
      'forget mount --driver fuse-native needs root; "forget exec --driver fuse-native -- COMMAND" does not',
    );
  }
  const { roots } = planRoots(settings, options.mountpoint, []);
  for (const { directory, mountpoint } of roots) {
    if (mountpoint === directory) say(refuseUsed(directory, { force: options.force }));
  }
  if (options.foreground) {
    return serveMount(settings, options.mountpoint, options.first, (id, notices) => {
      say(notices);
      announce(id, process.pid, options);
    });
  }
  const { id, pid } = await startDaemon({
    settings,
    mountpoint: options.mountpoint,
    first: options.first,
  });
  announce(id, pid, options);
  return 0;
}

function announce(id: string, pid: number, options: MountOptions): void {
  const mountpoint = displayName(options.mountpoint);
  if (options.json) process.stdout.write(`${JSON.stringify({ id, pid, mountpoint })}\n`);
  else if (options.first.open)
    say([`forget: window ${id} is open at ${mountpoint}; "forget unmount ${mountpoint}" closes it`]);
  else
    say([
      `forget: ${mountpoint} is mounted (${id}), and no window is open; "forget open ${mountpoint}" opens one`,
    ]);
}

/** Its self-test may take 30 s. */
const READY_WITHIN_MS = 60_000;

async function startDaemon(start: DaemonStart): Promise<{ id: string; pid: number }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'daemon.cjs')], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore', 'pipe'],
  });
  const [stdin, stdout] = [child.stdin!, child.stdout!];
  const confirmation = child.stdio[3] as Writable;
  stdin.end(JSON.stringify(start));
  let text = '';
  let timer: NodeJS.Timeout | undefined;
  stdout.setEncoding('utf8');
  const line = await new Promise<string>((resolve, reject) => {
    timer = setTimeout(() => {
      // Its guardian takes away what it has mounted.
      child.kill('SIGKILL');
      reject(
        new Failure(`the mount's server was not ready within ${READY_WITHIN_MS / 1000} s, and was ended`),
      );
    }, READY_WITHIN_MS);
    child.once('error', reject);
    child.once('exit', (code, signal) => reject(new Failure(`the mount's server ended (${signal ?? code})`)));
    stdout.on('data', (chunk: string) => {
      text += chunk;
      if (text.includes('\n')) resolve(text);
    });
  }).finally(() => clearTimeout(timer));
  child.removeAllListeners('exit');
  stdout.destroy();
  child.unref();
  const answer = JSON.parse(line) as DaemonAnswer;
  if ('failure' in answer) throw new Failure(answer.failure);
  // From here on it is done, and a signal changes nothing any more; before, the mount goes with this process.
  for (const signal of CLOSING) process.on(signal, () => {});
  await new Promise<void>((resolve) => confirmation.end('.', resolve));
  say(answer.notices);
  return answer.ready;
}

/** `target` is an id or the byte string of a mount point. Prints what the window caught. Throws a Failure. */
export async function unmountWindow(target: string, options: { force: boolean }): Promise<void> {
  const shown = displayName(target);
  const silent: string[] = [];
  const windows = await listWindows((id) => silent.push(id));
  const window = windows.find((candidate) =>
    isId(target) ? candidate.id === target : candidate.kind === 'mount' && candidate.mountpoint === shown,
  );
  if (window) {
    const { lines } = await request(window.id, 'unmount', { force: options.force });
    say(lines);
    return;
  }
  const ended = await endSilent(target, silent, options);
  if (ended === 'answers') return unmountWindow(target, options);
  if (ended) return;
  const mount = isId(target)
    ? undefined
    : (await findForgetMounts()).find((one) => one.mountpoint === target);
  if (!mount) throw new Failure(`${shown} is no window of yours; "forget status" lists those there are`);
  if (mount.state === 'alive') throw new Failure(`${shown} is another user's window, or a container's`);
  if (mount.state === 'silent' && !options.force) {
    throw new Failure(`${shown} does not answer, and who serves it is not known; --force takes it away`);
  }
  const why = await clearMount(target);
  if (why) throw new Failure(`${shown} is a mount whose server is gone, and it could not be removed: ${why}`);
  say([`forget: ${shown} was a mount whose server is gone; it is removed`]);
}

/**
 * Where `target` is a window that does not answer: `ended` when it is out of the way, `answers` when it goes on after
 * all. Throws a Failure where it may not be ended, or nothing helped.
 */
async function endSilent(
  target: string,
  silent: string[],
  { force }: { force: boolean },
): Promise<'ended' | 'answers' | undefined> {
  const { clearStuck, describeStuck, stuckWindow } = await import('./stuck.ts');
  for (const id of silent) {
    const window = stuckWindow(id);
    if (!window || (isId(target) ? id !== target : window.guardian?.mountpoint !== target)) continue;
    if (!force) throw new Failure(`${describeStuck(window)}; --force ends it, with what it caught`);
    const { outcome, how } = await clearStuck(window);
    if (outcome === 'stays') throw new Failure(how);
    say([`forget: ${how}`]);
    return outcome;
  }
  return undefined;
}
