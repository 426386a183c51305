/**
 * Has the kernel read the directories of a large repository ahead, so that it knows all names and attributes before the
 * agent first asks: `git status` asks for each file by itself (LOOKUP), and a READDIRPLUS brings a directory's at once.
 * And the contents of its small files, where they are not too many: a first search through them asks for each (READ).
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
/** Files whose contents are read: 60 us each, of which this thread has half. */
export const MOST_CONTENTS = 4000;
const MOST_CONTENT_BYTES = 16 << 20;
/** Nodes that become known meanwhile: 1 KiB each here, and some 2 in the kernel. */
const MOST_NODES = 60_000;
/** From then on what the kernel learns is good for long (overlay/watch.ts), and a short command is over. */
const NAMES_AFTER_MS = 70;
/** An agent that begins to search by itself does so earlier; one that asks its model first, seconds later. */
const CONTENTS_AFTER_MS = 500;
const LOOK_EVERY_MS = 50;
const ENDS_WITHIN_MS = 500;

/** The first argument is the workspace, so that the others can be short. */
const BEGIN = `exec </dev/null >/dev/null 2>&1
cd -- "$1" || exit
shift`;

/**
 * To match `*` a shell reads the directory and nothing else of it: `ls` would ask for each of its arguments first, and
 * `find` for the filesystem of each. Then the names that git and ripgrep try in each directory, mostly in vain: that a
 * name is absent no READDIRPLUS tells.
 */
const NAMES = `${BEGIN}
for directory; do : "$directory"/*; done
for directory; do
  for name in .gitignore .ignore .rgignore .git; do [ -e "$directory/$name" ]; done
done`;

/**
 * For the first line, which a shell reads by itself, the kernel reads four pages. Then the attributes again: a read takes
 * the access time back, and git would ask for it of each file.
 */
const CONTENTS = `${BEGIN}
for file; do
  [ -f "$file" ] || continue
  IFS= read -r line <"$file"
  [ -f "$file" ]
done`;

export interface Prefetch {
  /** Ends it, if it still runs. Resolves when it is no longer in the mount, or cannot be ended in time. */
  dismiss(): Promise<void>;
}

export interface PrefetchOptions {
  window: {
    readonly tracked: Tracked;
    readonly lasting: boolean;
    readonly knownNodes: number;
    /** Processes whose reads of the workspace leave the access times of its files. */
    readonly quietReaders: Set<number>;
  };
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
  const begun: Prefetch[] = [];
  const later = (afterMs: number, script: string, pathsOf: (tracked: Tracked) => string[]) => {
    const timer = setTimeout(() => {
      const paths = pathsOf(tracked);
      if (paths.length === 0) return;
      try {
        begun.push(begin(options, script, paths));
      } catch (error) {
        // No process to be had: the first look is slower then, and nothing else.
        if (!(error instanceof SysError)) throw error;
      }
    }, afterMs);
    return timer.unref();
  };
  const timers = [
    later(NAMES_AFTER_MS, NAMES, directoriesOf),
    later(CONTENTS_AFTER_MS, CONTENTS, contentsOf),
  ];
  return {
    dismiss: async () => {
      for (const timer of timers) clearTimeout(timer);
      await Promise.all(begun.map((one) => one.dismiss()));
    },
  };
}

function begin(
  { window, launcher, workspace, adopt }: PrefetchOptions,
  script: string,
  paths: readonly string[],
): Prefetch {
  const pid = spawnAttendant(launcher, [
    ...['--pdeathsig', 'KILL', 'nice', '-n', '19'],
    ...[launcher.shell, '-c', script, 'forget-prefetch', workspace, ...paths],
  ]);
  const running = adopt(pid);
  window.quietReaders.add(pid);
  const most = window.knownNodes + MOST_NODES;
  const end = () => {
    clearInterval(timer);
    window.quietReaders.delete(pid); // which another process may be given
    if (running()) kill(pid, constants.signals.SIGKILL);
  };
  const timer = setInterval(() => {
    if (!running() || window.knownNodes > most) end();
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
function directoriesOf({ directories }: Tracked): string[] {
  const most = Math.min(MOST_DIRECTORIES, Math.floor(watches() / SHARE_OF_WATCHES));
  const taken: string[] = [];
  let bytes = 0;
  for (const directory of directories) {
    bytes += argumentBytes(directory);
    if (taken.length >= most || bytes > MOST_BYTES) break;
    taken.push(directory || '.');
  }
  return taken;
}

/** As arguments; none where there are too many: a part of them would help little. */
function contentsOf({ small, smallBytes }: Tracked): string[] {
  const fit =
    small.length <= MOST_CONTENTS &&
    smallBytes <= MOST_CONTENT_BYTES &&
    small.reduce((sum, path) => sum + argumentBytes(path), 0) <= MOST_BYTES;
  return fit ? small : [];
}

/** With its end, a pointer, and for "." in place of nothing. */
const argumentBytes = (path: string): number => path.length + 2 + 8;

/** What this user may have of them. */
function watches(): number {
  return Number(readFileSync('/proc/sys/fs/inotify/max_user_watches', 'latin1'));
}
