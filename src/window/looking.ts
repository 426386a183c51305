/** The window's side of `forget list`, `diff`, `log` and `keep`. */
import { posix } from 'node:path';
import type { LogEntry } from '../overlay/operations-log.ts';
import { errnoName } from '../sys/errno.ts';
import type { Asker } from './control.ts';
import { Failure } from './failure.ts';
import type { GlobRoot } from './keep-globs.ts';
import type { ListedPath, LookingHandlers, LookingMethods } from './looking-methods.ts';
import type { Server } from './server.ts';

export interface LookedAt {
  /** Byte string. */
  workspace: string;
  /** Protected paths of the workspace read as absent. */
  hide: boolean;
  roots: readonly (GlobRoot & { server: Server })[];
}

const PER_PART = 500;
const MOST_BYTES = 64 << 20;
const FOLLOW_MS = 100;

export function lookingAt(window: LookedAt): LookingHandlers {
  return {
    list: async (_, { part }) => {
      const held = await listed(window);
      for (let at = 0; at < held.length; at += PER_PART) part(held.slice(at, at + PER_PART));
      return { count: held.length };
    },
    content: async ({ root, path, version, most }, asker) => {
      const server = window.roots[Number(root)]?.server;
      const known = version === 'upper' || version === 'lower';
      if (!server || typeof path !== 'string' || !known) throw new Failure('no such file');
      if (version === 'lower' && asker.inside && window.hide) {
        throw new Failure('this window hides what the workspace has from the processes in it');
      }
      const { readVersion } = await import('../overlay/look.ts');
      const limit = Math.max(0, Math.min(MOST_BYTES, Number(most) || 0));
      const send = (bytes: Buffer) => asker.part(bytes.toString('base64'));
      const error = await readVersion(server.overlay, path, version, limit, send);
      if (error) throw new Failure(`${server.overlay.ledger.shown(path)}: ${errnoName(error)}`);
      return {};
    },
    log: ({ follow }, asker) => tellLog(window, follow === true, asker),
    keep: ({ globs, force, dryRun }, { signal }) => {
      const given = Array.isArray(globs) ? globs.filter((glob) => typeof glob === 'string') : [];
      return keepIn(window, given, { force: force === true, dryRun: dryRun === true, signal });
    },
  };
}

/** All that the window holds and that is not kept. */
export async function listed({ roots }: LookedAt): Promise<ListedPath[]> {
  const { heldPaths } = await import('../overlay/look.ts');
  const all: ListedPath[] = [];
  for (const [root, { server, directory, mountpoint }] of roots.entries()) {
    for (const one of await heldPaths(server.overlay)) {
      const seenAt = posix.join(mountpoint, one.path);
      all.push({ ...one, root, seenAt, realPath: posix.join(directory, one.path) });
    }
  }
  return all;
}

/** Throws a Failure, a RuleError or a KeepError, with nothing kept. */
export async function keepIn(
  window: LookedAt,
  globs: readonly string[],
  options: { force: boolean; dryRun: boolean; signal?: AbortSignal },
): Promise<LookingMethods['keep']['result']> {
  const [{ keep }, { matchersFor }, { changesOf }] = await Promise.all([
    import('../overlay/keep.ts'),
    import('./keep-globs.ts'),
    import('../overlay/changes.ts'),
  ]);
  const { roots, workspace } = window;
  for (const glob of globs) {
    if (glob.startsWith('!')) continue;
    const alone = matchersFor([glob], roots, workspace);
    const held = roots.map(({ server }) => changesOf(server.overlay));
    if (held.some((changes, i) => changes.some(({ path }) => alone[i]!(path)))) continue;
    throw new Failure(
      nothingFor(
        glob,
        window,
        held.flatMap((changes, i) => changes.map(({ path }) => shownIn(roots[i]!, path))),
      ),
    );
  }
  const matchers = matchersFor(globs, roots, workspace);
  const parts = roots.map(({ server }, i) => ({ overlay: server.overlay, wanted: matchers[i]! }));
  const running = keep(parts, options);
  for (const { server } of roots) server.busyWith(running);
  return running;
}

const MOST_NAMED = 10;

function nothingFor(glob: string, { roots }: LookedAt, held: readonly string[]): string {
  const kept = roots.flatMap(({ server }) => [...server.overlay.ledger.kept.values()]);
  if (held.length === 0) {
    const why = kept.length > 0 ? 'all that the window holds is kept' : 'the window holds nothing';
    return `nothing matches ${JSON.stringify(glob)}: ${why}`;
  }
  const shown = held.slice(0, MOST_NAMED).join(', ');
  const more = held.length > MOST_NAMED ? ` and ${held.length - MOST_NAMED} more` : '';
  return `nothing matches ${JSON.stringify(glob)}; the window holds ${shown}${more}`;
}

function shownIn({ server }: LookedAt['roots'][number], path: string): string {
  return server.overlay.ledger.shown(path);
}

async function tellLog(
  { roots }: LookedAt,
  follow: boolean,
  { signal, part }: Asker,
): Promise<Record<string, never>> {
  const told = roots.map(() => 0);
  const tell = (settled: boolean) => {
    const entries = roots.flatMap(({ server }, i) => {
      const some = server.overlay.ledger.log.since(told[i]!, settled);
      told[i] = some.at(-1)?.number ?? told[i]!;
      return some;
    });
    entries.sort((a: LogEntry, b: LogEntry) => a.at - b.at);
    for (let at = 0; at < entries.length; at += PER_PART) part(entries.slice(at, at + PER_PART));
  };
  tell(follow);
  if (!follow) return {};
  await new Promise<void>((resolve) => {
    const timer = setInterval(tell, FOLLOW_MS, true);
    timer.unref();
    const end = () => {
      clearInterval(timer);
      tell(false);
      resolve();
    };
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });
  return {};
}
