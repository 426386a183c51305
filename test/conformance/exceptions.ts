/**
 * Checks that are known to come out otherwise on some target, each with the reason. A check that is named here and
 * passes nevertheless fails the run: the list is exact.
 */
import type { Target } from './targets.ts';

export interface Exception {
  check: string;
  on: (target: Target) => boolean;
  outcome: 'fail' | 'refused';
  reason: string;
}

const inView = (target: Target) => target.driver !== undefined;

export const exceptions: readonly Exception[] = [
  {
    check: 'collapsed_and_inserted_range',
    on: (target) => inView(target) && target.base !== 'overlayfs',
    outcome: 'refused',
    reason:
      "the kernel's FUSE passes on no other fallocate modes than KEEP_SIZE, PUNCH_HOLE and ZERO_RANGE (fs/fuse/file.c)",
  },
  {
    check: 'polling_files',
    on: inView,
    outcome: 'fail',
    reason:
      "the kernel's FUSE files have a poll operation, so epoll takes regular files too (fs/fuse/file.c); poll and select answer alike",
  },
  {
    check: 'file_from_before_is_renamed_without_space',
    on: (target) => inView(target) && target.base === 'small' && target.directory === 'memory',
    outcome: 'fail',
    reason:
      'a protected file of the lower is renamed by a copy in the upper, which is full: ENOSPC, as overlayfs says too',
  },
  {
    check: 'bytes_past_the_end_are_not_written',
    on: (target) => target.base === 'overlayfs' && !inView(target),
    outcome: 'fail',
    reason: "the kernel's tmpfs, which holds this overlayfs's layers, keeps what a map stored behind the end",
  },
];
