/** What the driver cannot do because libfuse 2.9 or fuse-native's addon cannot; docs/drivers.md explains each. */
export const LIMITS: readonly string[] = [
  'the caller is not known: as root, all is made as root',
  'times are set to the ms, and one of the two alone not at all',
  'no rename flags, fallocate, SEEK_HOLE, O_TMPFILE, times of birth or ACLs',
  'hard links are files of their own to locks and mmap',
  'a removed directory is dead to who stands in it',
  'renaming over an open file is two steps',
  'a request for each name each time',
];
