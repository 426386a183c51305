/** What the main thread and the FUSE worker say to each other. */
import type { Caught, PathRecord, WindowError } from '../overlay/ledger.ts';
import type { RuleLine } from '../overlay/rules.ts';

/** What the worker serves. Descriptors belong to the whole process. */
export interface WorkerStart {
  device: number;
  /** Where the view stands: a byte string, absolute. */
  rootPath: string;
  /** `O_PATH` on the root of the lower. */
  lower: number;
  upper: { fd: number; noswap: boolean };
  /** The main thread counts it up when there is a message: the worker sleeps in poll(2), not in its event loop. */
  wake: number;
  rules: readonly RuleLine[];
  ignoreCase: boolean;
  hide: boolean;
  readonly: boolean;
  fixed: readonly string[];
  /** Paths that the report leaves out. */
  unreported: readonly string[];
}

export type ToWorker = { kind: 'ask' } | { kind: 'serve'; start: WorkerStart } | { kind: 'stop' };

/** State of a window at one moment; sizes in bytes. */
export interface WindowState {
  caught: Caught;
  paths: PathRecord[];
  moved: { path: string; why: string }[];
  errors: WindowError[];
  upper: { used: number; limit: number; noswap: boolean };
  requests: Record<string, number>;
  nodes: number;
  descriptors: number;
}

export type FromWorker =
  | { kind: 'serving' }
  | { kind: 'state'; state: WindowState }
  /** Notifications for the kernel, each to be written to the device by a thread that is not the worker's. */
  | { kind: 'notify'; messages: Uint8Array[] }
  | { kind: 'defect'; message: string }
  /** The loop is over and held files are settled: the last account, if there ever was an overlay. */
  | { kind: 'ended'; state?: WindowState };
