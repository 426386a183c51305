/**
 * The lower by path, for work beside the requests (looking, keeping): what stands at a path of the view, whether or not
 * the view shows it. One component at a time from the root's descriptor, no symlink followed, never through the mount.
 */
import { scratchCstring } from '../sys/bytes.ts';
import { O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_PATH, O_RDONLY } from '../sys/constants.ts';
import { ENOENT } from '../sys/errno.ts';
import { close, errno, openat } from '../sys/libc.ts';
import { eachEntry } from './listing.ts';
import type { Overlay } from './overlay.ts';

const DIRECTORY = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/** A directory of the lower, opened when it is first asked for, and closed by its owner. */
export class LowerDirectory {
  private readonly parent: LowerDirectory | null;
  private readonly name: string;
  private fd: number | undefined;

  /** `root` is the lower's root, which stays the caller's. */
  constructor(parent: LowerDirectory | null, name: string, root?: number) {
    this.parent = parent;
    this.name = name;
    this.fd = root;
  }

  /** A path descriptor, or -errno where the lower has no such directory. */
  descriptor(): number {
    if (this.fd === undefined) {
      const above = this.parent?.descriptor() ?? -ENOENT;
      if (above < 0) this.fd = above;
      else {
        const fd = openat(above, scratchCstring(this.name), DIRECTORY, 0);
        this.fd = fd < 0 ? -errno() : fd;
      }
    }
    return this.fd;
  }

  /** Names in it, or -errno. */
  names(): string[] | number {
    const dir = this.descriptor();
    if (dir < 0) return dir;
    const fd = openat(dir, scratchCstring('.'), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return -errno();
    const names: string[] = [];
    const error = eachEntry(fd, (name) => names.push(name));
    close(fd);
    return error ? -error : names;
  }

  close(): void {
    if (this.parent && this.fd !== undefined && this.fd >= 0) close(this.fd);
    this.fd = undefined;
  }
}

/** Calls `use` with a path descriptor of the directory at `path` ('' is the root), or with -errno. */
export function withLowerDirectory<T>(root: number, path: string, use: (fd: number) => T): T {
  const chain = [new LowerDirectory(null, '', root)];
  for (const name of path === '' ? [] : path.split('/')) chain.push(new LowerDirectory(chain.at(-1)!, name));
  try {
    return use(chain.at(-1)!.descriptor());
  } finally {
    for (const directory of chain) directory.close();
  }
}

/** Directory and last name of a path. */
export function splitPath(path: string): [directory: string, name: string] {
  const slash = path.lastIndexOf('/');
  return slash < 0 ? ['', path] : [path.slice(0, slash), path.slice(slash + 1)];
}

/** A descriptor of the lower's file at `path`, for reading; or -errno. A fifo's other end is not waited for. */
export function openLowerFile(root: number, path: string): number {
  const [directory, name] = splitPath(path);
  return withLowerDirectory(root, directory, (dir) => {
    if (dir < 0) return dir;
    const fd = openat(dir, scratchCstring(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    return fd < 0 ? -errno() : fd;
  });
}

/** A readable descriptor of a lower directory, as the server, to be closed by the caller; or -errno. */
export function openLowerDirectory(o: Overlay, path: string): number {
  o.identity.actAsServer();
  return withLowerDirectory(o.lowerFd, path, (dir) => {
    if (dir < 0) return dir;
    const fd = openat(dir, scratchCstring('.'), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    return fd < 0 ? -errno() : fd;
  });
}
