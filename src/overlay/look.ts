/**
 * Looking at what a window holds: a list of its changes as plain data, and both versions of a file. In slices, since
 * whoever uses the mount is served by the same thread.
 */
import { monotonicMs } from '../sys/clock.ts';
import { S_IFLNK, S_IFMT } from '../sys/constants.ts';
import { EINVAL, EISDIR, ENOENT } from '../sys/errno.ts';
import { close, pread } from '../sys/libc.ts';
import { slowly } from '../sys/pool.ts';
import { Stat } from '../sys/stat.ts';
import {
  type Change,
  findRenames,
  inView,
  lowerTarget,
  openUpperSide,
  upperTarget,
  walkChanges,
} from './changes.ts';
import { type FileType, typeName } from './keep-outcome.ts';
import { openLowerFile } from './lower-path.ts';
import { Node } from './node.ts';
import type { Overlay } from './overlay.ts';

/** One of the two versions of a path. */
export interface Side {
  type: FileType;
  /** Permissions alone. */
  mode: number;
  size: number;
  /** Of a symlink: a byte string. */
  target?: string;
}

/** A path that the window holds. */
export interface HeldPath {
  /** Byte string, relative to its root. */
  path: string;
  /** As people read it. */
  shown: string;
  kind: Change['kind'];
  /** As people read it. */
  renamedFrom?: string;
  /** Byte string. */
  renamedFromPath?: string;
  /** In the window; null where it is deleted. */
  upper: Side | null;
  /** In the workspace; null where nothing is there. */
  lower: Side | null;
  /** Who changed it last. */
  program?: { pid: number; command: string };
}

/** Requests wait no longer than this behind a slice. */
const SLICE_MS = 4;

const nextRound = () => new Promise<void>((resolve) => setImmediate(resolve));

export async function heldPaths(o: Overlay): Promise<HeldPath[]> {
  const changes: Change[] = [];
  let until = monotonicMs() + SLICE_MS;
  for (const change of walkChanges(o)) {
    changes.push(change);
    if (monotonicMs() < until) continue;
    await nextRound();
    until = monotonicMs() + SLICE_MS;
  }
  const out: HeldPath[] = [];
  for (const change of findRenames(changes)) {
    out.push(describe(o, change));
    if (monotonicMs() < until) continue;
    await nextRound();
    until = monotonicMs() + SLICE_MS;
  }
  return out;
}

function describe(o: Overlay, change: Change): HeldPath {
  const { path, kind, renamedFrom: from, lower } = change;
  const program = o.ledger.lastProgram(path);
  return {
    path,
    shown: o.ledger.shown(path),
    kind,
    ...(from !== undefined && { renamedFrom: o.ledger.shown(from), renamedFromPath: from }),
    upper: upperSide(o, change),
    lower: lower && side(lower.mode, lower.size, () => lowerTarget(o, change)),
    ...(program && { program: { pid: program.pid, command: program.command } }),
  };
}

const st = new Stat();

function upperSide(o: Overlay, { node }: Change): Side | null {
  if (!node?.inUpper || st.at(o.upper.fd, o.upper.name(node.upper)) !== 0) return null;
  return side(st.mode, st.size, () => upperTarget(o, node));
}

function side(mode: number, size: number, target: () => string | number): Side {
  const out: Side = { type: typeName(mode), mode: mode & 0o7777, size };
  if ((mode & S_IFMT) !== S_IFLNK) return out;
  const to = target();
  return typeof to === 'string' ? { ...out, target: to } : out;
}

const PIECE = 256 << 10;

/**
 * Hands over the content of a regular file, as far as `most` bytes, in pieces: of the window's version, or of the
 * workspace's. Returns 0 or an errno.
 */
export async function readVersion(
  o: Overlay,
  path: string,
  which: 'upper' | 'lower',
  most: number,
  piece: (bytes: Buffer) => void,
): Promise<number> {
  if (path.split('/').some((name) => name === '' || name === '.' || name === '..')) return EINVAL;
  const fd = openVersion(o, path, which);
  if (fd < 0) return -fd;
  try {
    const unread = st.of(fd);
    if (unread) return unread;
    if (typeName(st.mode) !== 'file') return EISDIR;
    for (let at = 0; at < most; ) {
      const bytes = Buffer.allocUnsafeSlow(Math.min(PIECE, most - at));
      const { result, error } = await slowly(pread, [fd, bytes, bytes.length, at]);
      if (result < 0) return error;
      if (result === 0) break;
      piece(bytes.subarray(0, result));
      at += result;
    }
    return 0;
  } finally {
    close(fd);
  }
}

function openVersion(o: Overlay, path: string, which: 'upper' | 'lower'): number {
  o.identity.actAsServer();
  if (which === 'lower') return openLowerFile(o.lowerFd, path);
  const node = inView(o, path);
  return node instanceof Node && node.inUpper ? openUpperSide(o, { path, node }) : -ENOENT;
}
