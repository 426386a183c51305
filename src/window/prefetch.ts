/**
 * Has the kernel read the directories of a large repository ahead, so that it knows all names and attributes before the
 * agent first asks: `git status` asks for each file by itself (LOOKUP), and a READDIRPLUS brings a directory's at once.
 *
 * Only somebody inside the mount makes the kernel read, and this process would wait there for its own answer. So it is
 * a shell, at the lowest priority. It ends by itself, with the window, with this process, or when it has found more
 * than was to be expected: of untracked files there may be any number.
 */
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { SysError } from '../sys/errno.ts';
import { kill } from '../sys/spawn.ts';
import { spawnAttendant } from './attendant.ts';
import type { Launcher } from './command.ts';
import type { Tracked } from './tracked.ts';

/** Fewer are looked through in the time that it takes to begin. */
const WORTHWHILE_FILES = 1000;
/** Each costs a watch, of which a user has some 10,000 to 1,000,000 for all programs. */
const MOST_DIRECTORIES = 5000;
const SHARE_OF_WATCHES = 8;
/** Of arguments, which may be a quarter of the stack's limit (execve(2)). */
const MOST_BYTES = 256 << 10;
/** Nodes that become known meanwhile: 1 KiB each here, and some 2 in the kernel. */
const MOST_NODES = 60_000;
/** From then on what the kernel learns is good for long (overlay/watch.ts), and a short command is over. */
const AFTER_MS = 70;
const LOOK_EVERY_MS = 50;
const ENDS_WITHIN_MS = 500;

/**
 * The first argument is the workspace, so that the others can be short. To match `*` a shell reads the directory and
 * nothing else of it: `ls` would ask for each of its arguments first, and `find` for the filesystem of each. Then the
 * names that git and ripgrep try in each directory, mostly in vain: that a name is absent no READDIRPLUS tells.
 */
const SCRIPT = `exec </dev/null >/dev/null 2>&1
cd -- "$1" || exit
shift
for directory; do : "$directory"/*; done
for directory; do
  for name in .gitignore .ignore .rgignore .git; do [ -e "$directory/$name" ]; done
done`;

export interface Prefetch {
  /** Ends it, if it still runs. Resolves when it is no longer in the mount, or cannot be ended in time. */
  dismiss(): Promise<void>;
}

export interface PrefetchOptions {
  window: { readonly tracked: Tracked; readonly lasting: boolean; readonly knownNodes: number };
  launcher: Launcher;
  /** Byte string: where the workspace is seen. */
  workspace: string;
  /** Takes charge of reaping the process; says whether it has not ended yet. */
  adopt(pid: number): () => boolean;
}

/** Begins a little later, if the repository is worth it. */
export function prefetchLater(options: PrefetchOptions): Prefetch {
  const { tracked, lasting } = options.window;
  if (tracked.files < WORTHWHILE_FILES || !lasting) return { async dismiss() {} };
  let begun: Prefetch | undefined;
  const timer = setTimeout(() => {
    try {
      begun = begin(options);
    } catch (error) {
      // No process to be had: the first look is slower then, and nothing else.
      if (!(error instanceof SysError)) throw error;
    }
  }, AFTER_MS);
  timer.unref();
  return {
    dismiss: async () => {
      clearTimeout(timer);
      await begun?.dismiss();
    },
  };
}

function begin({ window, launcher, workspace, adopt }: PrefetchOptions): Prefetch {
  const directories = withinBounds(window.tracked.directories);
  const pid = spawnAttendant(launcher, [
    ...['--pdeathsig', 'KILL', 'nice', '-n', '19'],
    ...[launcher.shell, '-c', SCRIPT, 'forget-prefetch', workspace, ...directories],
  ]);
  const running = adopt(pid);
  const most = window.knownNodes + MOST_NODES;
  const end = () => {
    clearInterval(timer);
    if (running()) kill(pid, constants.signals.SIGKILL);
  };
  const timer = setInterval(() => {
    if (!running()) clearInterval(timer);
    else if (window.knownNodes > most) end();
  }, LOOK_EVERY_MS);
  timer.unref();
  return {
    dismiss: async () => {
      end();
      for (let waited = 0; running() && waited < ENDS_WITHIN_MS; waited += 5) await sleep(5);
    },
  };
}

/** Relative to the workspace, as arguments. */
function withinBounds(directories: ReadonlySet<string>): string[] {
  const most = Math.min(MOST_DIRECTORIES, Math.floor(watches() / SHARE_OF_WATCHES));
  const taken: string[] = [];
  let bytes = 0;
  for (const directory of directories) {
    bytes += directory.length + 3 + 8;
    if (taken.length >= most || bytes > MOST_BYTES) break;
    taken.push(directory || '.');
  }
  return taken;
}

/** What this user may have of them. */
function watches(): number {
  return Number(readFileSync('/proc/sys/fs/inotify/max_user_watches', 'latin1'));
}
