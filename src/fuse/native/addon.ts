/**
 * fuse-native's addon: libfuse 2.9 with a callback into Node for each operation. Loaded when a window asks for it.
 *
 * The package's own JavaScript is left aside. Its mount asks for the mount point with stat, and refuses one that is a
 * mount itself, its unmount runs a shell with the path in the command, a timer answers a slow request with ETIMEDOUT,
 * and it passes on neither `use_ino` nor `big_writes` nor a timeout of 0.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { loadLibrary } from '../../sys/shared-library.ts';

/** What package.json pins: record.ts relies on the layout of this release. */
const VERSION = '2.2.6';
const PACKAGE = 'fuse-native';
/** As for koffi (sys/koffi.ts), and nowhere else: root is not to load what somebody has put into a directory above. */
const PLACES = ['../node_modules', '../..'];

/** What each callback is given after the record of the request and the number of the operation. */
export interface Arguments {
  init: [];
  statfs: [path: string];
  getattr: [path: string];
  fgetattr: [path: string, handle: number];
  fsync: [path: string, dataOnly: number, handle: number];
  fsyncdir: [path: string, dataOnly: number, handle: number];
  readdir: [path: string];
  truncate: [path: string, sizeLow: number, sizeHigh: number];
  ftruncate: [path: string, handle: number, sizeLow: number, sizeHigh: number];
  utimens: [path: string, atimeLow: number, atimeHigh: number];
  readlink: [path: string];
  chown: [path: string, uid: number, gid: number];
  chmod: [path: string, mode: number];
  mknod: [path: string, mode: number, device: number];
  setxattr: [path: string, name: string, value: Buffer, position: number, flags: number];
  getxattr: [path: string, name: string, value: Buffer];
  listxattr: [path: string, list: Buffer];
  removexattr: [path: string, name: string];
  open: [path: string, flags: number];
  read: [path: string, handle: number, data: Buffer, size: number, offsetLow: number, offsetHigh: number];
  write: [path: string, handle: number, data: Buffer, size: number, offsetLow: number, offsetHigh: number];
  release: [path: string, handle: number];
  unlink: [path: string];
  rename: [from: string, to: string];
  link: [from: string, to: string];
  symlink: [target: string, path: string];
  mkdir: [path: string, mode: number];
  rmdir: [path: string];
}

/** What its own answer takes after the result, which is 0, a count, or a negative errno. */
interface Answers {
  // The memory that was lent to the callback, and is taken back.
  setxattr: [value: ArrayBufferLike];
  getxattr: [value: ArrayBufferLike];
  listxattr: [list: ArrayBufferLike];
  read: [unused: number, data: ArrayBufferLike];
  write: [unused: number, data: ArrayBufferLike];
  open: [handle: number];
}

export type Operation = keyof Arguments;

export type Callbacks = {
  [K in Operation]: (record: Buffer, operation: number, ...args: Arguments[K]) => void;
};

export type Addon = { readonly [K in Operation as `op_${K}`]: number } & {
  readonly [K in keyof Answers as `fuse_native_signal_${K}`]: (
    record: Buffer,
    result: number,
    ...answer: Answers[K]
  ) => void;
} & {
  /** Lets the libfuse thread of a record go on, with a result and nothing else: that is the same for every operation. */
  fuse_native_signal_init(record: Buffer, result: number): void;
  readonly sizeof_fuse_thread_t: number;
  /**
   * Mounts, and starts the threads that ask. Throws 'fuse failed'; libfuse has said why on standard error. `implemented`
   * has a 1 at the number of each operation that there is a callback for.
   */
  fuse_native_mount(
    mountpoint: string,
    options: string,
    thread: Buffer,
    context: object,
    makeRecord: (size: number) => Buffer,
    callbacks: readonly unknown[],
    implemented: Uint32Array,
  ): void;
};

/** fuse-native cannot be used here; the message says what to do. */
export class DriverUnavailable extends Error {
  constructor(found: string, advice: string) {
    super(`--driver fuse-native: ${found}; ${advice}, or leave the option out`);
    this.name = 'DriverUnavailable';
    this.found = found;
    this.advice = advice;
  }
  readonly found: string;
  readonly advice: string;
}

export interface LoadedAddon {
  addon: Addon;
  version: string;
  /** Which libfuse it runs on, for people. */
  library: string;
}

/** Throws DriverUnavailable. */
export function loadAddon(): LoadedAddon {
  // The package has an addon for it, and record.ts the structures.
  if (process.arch !== 'x64') {
    throw new DriverUnavailable(`it is for x64 alone, and this is ${process.arch}`, 'use an x64 machine');
  }
  const require = createRequire(import.meta.filename);
  const home = PLACES.map((place) => join(import.meta.dirname, place, PACKAGE)).find((path) =>
    existsSync(`${path}/package.json`),
  );
  if (home === undefined) {
    throw new DriverUnavailable(
      `the npm package ${PACKAGE} is not installed`,
      `run "npm install ${PACKAGE}@${VERSION}" where forgetfs is installed`,
    );
  }
  const { version } = require(`${home}/package.json`) as { version: string };
  if (version !== VERSION) {
    throw new DriverUnavailable(
      `${PACKAGE} ${version} is installed, and forget knows ${VERSION}`,
      `run "npm install ${PACKAGE}@${VERSION}" where forgetfs is installed`,
    );
  }
  const build = `${home}/prebuilds/linux-x64`;
  // Its own libfuse.so.2, which a new machine has none of. Loaded first, it is the one that the addon asks for by name.
  let refused = '';
  try {
    loadLibrary(`${build}/libfuse.so`);
  } catch (error) {
    refused = (error as Error).message;
  }
  try {
    const addon = require(`${build}/node.napi.node`) as Addon;
    return { addon, version, library: refused ? "this system's libfuse.so.2" : 'its own libfuse.so.2' };
  } catch (error) {
    const said = [(error as Error).message, refused].filter(Boolean).join('; ').replaceAll('\n', ' ');
    throw new DriverUnavailable(
      `the addon does not load: ${said}`,
      'install libfuse 2 (package libfuse2 or libfuse2t64, fuse-libs on Fedora, fuse2 on Arch)',
    );
  }
}
