// What tells a read that a disk has to be waited for from one that has all in memory.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { isInMemory } from '../../src/sys/page-cache.ts';
import { filesystemType } from '../../src/sys/statfs.ts';

const MIB = 1 << 20;
/** Magic numbers of ext4, XFS and btrfs (statfs(2)), which say what would have to wait. */
const TELLING = new Set([0xef53, 0x58465342, 0x9123683e]);

/** All of the file goes, and its ends come back, without what the kernel would read along with them. */
const GAP = `
import os
os.fsync(0)
os.posix_fadvise(0, 0, 0, os.POSIX_FADV_DONTNEED)
os.posix_fadvise(0, 0, 0, os.POSIX_FADV_RANDOM)
for at in (0, 6 << 20): assert len(os.pread(0, 2 << 20, at)) == 2 << 20`;

test('a file is in memory until a part of it is not', { timeout: 20_000 }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'cached-'));
  const path = join(directory, 'file');
  writeFileSync(path, Buffer.alloc(8 * MIB, 'x'));
  const fd = openSync(path, 'r+');
  try {
    const tells = TELLING.has(filesystemType(fd)!);
    assert.equal(isInMemory(fd, 0, 8 * MIB), tells, 'as written');
    assert.equal(isInMemory(fd, 5, 1), tells);
    assert.equal(isInMemory(fd, 0, 8 * MIB + 1), false, 'more than there is');
    execFileSync('python3', ['-c', GAP], { stdio: [fd, 'inherit', 'inherit'] });
    assert.equal(isInMemory(fd, 0, 8 * MIB), false, 'with a gap');
    assert.equal(isInMemory(fd, 4 * MIB, 4096), false, 'the gap');
    assert.equal(isInMemory(fd, 0, 2 * MIB), tells, 'before the gap');
    assert.equal(isInMemory(fd, 6 * MIB, 2 * MIB), tells, 'behind it');
  } finally {
    closeSync(fd);
    rmSync(directory, { recursive: true });
  }
});
