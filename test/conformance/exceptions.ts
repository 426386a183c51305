/**
 * Checks that are known to come out otherwise on some target, each with the reason. A check that is named here and
 * passes nevertheless fails the run: the list is exact.
 */
import type { User } from '../harness/users.ts';
import type { Target } from './targets.ts';

export interface Exception {
  check: string;
  on: (target: Target, user: User) => boolean;
  outcome: 'fail' | 'refused';
  reason: string;
}

const inView = (target: Target) => target.driver !== undefined;

/** What libfuse 2.9 or fuse-native's addon cannot do; docs/drivers.md explains each. */
function ofFuseNative(reason: string, checks: Partial<Record<Exception['outcome'], string[]>>, who?: User) {
  const on = (target: Target, user: User) =>
    target.driver?.name === 'fuse-native' && (who === undefined || who === user);
  return (['fail', 'refused'] as const).flatMap((outcome) =>
    (checks[outcome] ?? []).map((check): Exception => ({ check, on, outcome, reason })),
  );
}

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
  ...ofFuseNative(
    'the addon does not say who asks: all is done, and made, as root',
    {
      fail: [
        'owner_without_rights_is_refused',
        'descriptor_keeps_its_rights',
        'supplementary_groups_count',
        'sticky_directory_protects_from_others',
        'sticky_directory_protects_directories',
        'new_files_are_their_makers',
        'setuid_goes_with_a_write',
        'setgid_directory_hands_down_its_group',
        'trusted_attributes_are_roots',
      ],
    },
    'root',
  ),
  ...ofFuseNative('the addon keeps times to set in ms', {
    fail: [
      'times_are_kept_to_the_nanosecond',
      'times_of_links_directories_and_descriptors',
      'setting_times_changes_ctime',
      'times_are_set_by_whom_they_may',
      'symlinks_are_not_followed_by_what_names_them',
      'open_unlinked_file_is_read_and_written',
    ],
  }),
  ...ofFuseNative("libfuse 2.9's utimens sets both times or neither", { fail: ['one_time_is_set_alone'] }),
  ...ofFuseNative('libfuse 2.9 has no STATX, which tells the time of birth', {
    fail: ['time_of_birth_is_told'],
  }),
  ...ofFuseNative("libfuse 2.9's rename takes no flags: EINVAL", {
    fail: ['noreplace_refuses_what_is_there', 'exchange_swaps_two_names'],
    refused: ['whiteout_is_left_behind'],
  }),
  ...ofFuseNative('the addon has no fallocate: EOPNOTSUPP', {
    fail: ['allocation_makes_room_and_size', 'punched_hole_gives_its_space_back', 'limit_of_file_size'],
    refused: ['zeroed_range'],
  }),
  ...ofFuseNative('libfuse 2.9 has no LSEEK: to the kernel all is data', {
    fail: ['holes_are_found', 'existing_sparse_file_stays_sparse'],
  }),
  ...ofFuseNative('libfuse 2.9 has no TMPFILE: EOPNOTSUPP', {
    refused: [
      'nameless_file_is_read_and_written',
      'nameless_file_is_given_a_name',
      'nameless_file_may_be_for_good',
      'nameless_files_have_their_refusals',
    ],
  }),
  ...ofFuseNative(
    'libfuse 2.9 does not ask the kernel to apply ACLs',
    { fail: ['default_acl_is_handed_down', 'acl_lets_a_named_user_in'] },
    'root',
  ),
  ...ofFuseNative(
    'libfuse 2.9 does not ask the kernel to apply ACLs, which it then refuses in a user namespace',
    { refused: ['default_acl_is_handed_down', 'acl_and_mode_agree'] },
    'ordinary',
  ),
  ...ofFuseNative('libfuse 2.9 gives each name of a file an inode in the kernel', {
    fail: ['locks_stay_across_changes_of_the_file'],
  }),
  ...ofFuseNative('libfuse 2.9 asks by path, and a removed directory has none: ENOENT', {
    fail: [
      'deleted_working_directory_is_empty',
      'deleted_existing_working_directory_is_empty',
      'descriptor_of_a_removed_directory',
    ],
  }),
  ...ofFuseNative('libfuse 2.9 takes an open file out of the way before another gets its name', {
    fail: ['replacing_is_never_seen_half'],
  }),
];
