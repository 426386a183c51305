// What travels by pages arrives whole or not at all. The device is a pipe here: it tells what it was given.
import assert from 'node:assert/strict';
import { mkdtempSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { PagePipe } from '../../src/fuse/page-pipe.ts';
import { F_SETPIPE_SZ, O_NONBLOCK } from '../../src/sys/constants.ts';
import { close, fcntl, pipe2, read } from '../../src/sys/libc.ts';

const content = Buffer.from(Array.from({ length: 700_000 }, (_, i) => (i * 7919) >> 5));
const directory = mkdtempSync(join(tmpdir(), 'pages-'));
writeFileSync(join(directory, 'file'), content);
const file = openSync(join(directory, 'file'), 'r');
after(() => {
  close(file);
  rmSync(directory, { recursive: true });
});

const HEADER = Buffer.from('sixteen bytes of');

function withDevice(body: (pages: PagePipe, device: number, arrived: () => Buffer) => void): void {
  const before = readdirSync('/proc/self/fd').length;
  const ends = Buffer.alloc(8);
  assert.equal(pipe2(ends, O_NONBLOCK), 0);
  const [out, device] = [ends.readInt32LE(0), ends.readInt32LE(4)];
  fcntl(device, F_SETPIPE_SZ, 1 << 20);
  const buffer = Buffer.alloc(1 << 20);
  const pages = new PagePipe();
  try {
    body(pages, device, () => Buffer.from(buffer.subarray(0, Math.max(0, read(out, buffer, buffer.length)))));
  } finally {
    pages.close();
    close(out);
    close(device);
  }
  assert.equal(readdirSync('/proc/self/fd').length, before, 'descriptors are left');
}

test('header and data arrive together, from wherever in the file', () => {
  withDevice((pages, device, arrived) => {
    for (const [offset, size] of [
      [0, 524_288],
      [4096, 131_072],
      [4095, 2],
      [1, 600_000],
      [699_999, 1],
    ] as const) {
      assert.ok(pages.send(device, HEADER, file, offset, size), `${size} from ${offset}`);
      const wanted = Buffer.concat([HEADER, content.subarray(offset, offset + size)]);
      assert.ok(arrived().equals(wanted), `${size} from ${offset}`);
    }
  });
});

test('what cannot be sent whole leaves nothing on the way, and the next answer is right', () => {
  withDevice((pages, device, arrived) => {
    const sendsOne = (what: string) => {
      assert.equal(arrived().length, 0, what);
      assert.ok(pages.send(device, HEADER, file, 0, 5), what);
      assert.ok(arrived().equals(Buffer.concat([HEADER, content.subarray(0, 5)])), what);
    };
    const fails = (to: number, from: number, offset: number, size: number) =>
      assert.equal(pages.send(to, HEADER, from, offset, size), false);
    fails(device, file, 600_000, 131_072);
    sendsOne('a file that is shorter than that');
    fails(file, file, 0, 200_000);
    sendsOne('a device that takes nothing');
    fails(device, -1, 0, 1);
    sendsOne('a file that is not there');
    fails(device, file, 0, 1 << 30);
    sendsOne('more than a pipe takes');
  });
});
