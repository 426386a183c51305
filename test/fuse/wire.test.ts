/**
 * The wire format against bytes that were written down by hand from include/uapi/linux/fuse.h, so that an offset
 * that moves is seen here and not in a lost file.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Op } from '../../src/fuse/abi.ts';
import { dispatch } from '../../src/fuse/dispatch.ts';
import type { Caller, Handler } from '../../src/fuse/handler.ts';
import { handshake } from '../../src/fuse/handshake.ts';
import { encodeDevice, Reply } from '../../src/fuse/reply.ts';
import { Request } from '../../src/fuse/request.ts';
import { O_NOATIME } from '../../src/sys/constants.ts';
import { EINVAL, ENOSYS, EPROTO } from '../../src/sys/errno.ts';
import { Stat } from '../../src/sys/stat.ts';

const hex = (text: string) => Buffer.from(text.replace(/\s+/g, ''), 'hex');

/** A request with the given arguments behind a header: node 0x11, uid 0x3e9, gid 0x3ea, pid 0x4d2, unique 0x0102. */
function requestOf(opcode: number, args: Buffer): Request {
  const request = new Request();
  const header = hex(
    `00000000 00000000 0201000000000000 1100000000000000 e9030000 ea030000 d2040000 00000000`,
  );
  header.writeUInt32LE(header.length + args.length, 0);
  header.writeUInt32LE(opcode, 4);
  request.restore(Buffer.concat([header, args]));
  return request;
}

/** Calls the handler's method that the request stands for, and returns its name and arguments. */
function decoded(
  opcode: number,
  args: Buffer,
  extendedSetxattr = true,
): { outcome: number; call: unknown[] } {
  const call: unknown[] = [];
  const handler = new Proxy({} as Handler, {
    get:
      (_target, name) =>
      (...values: unknown[]) => {
        call.push(name, ...structuredClone(values.filter((value) => !(value instanceof Reply))));
        return 0;
      },
  });
  const caller: Caller = { uid: 0, gid: 0, pid: 0, umask: 0 };
  const outcome = dispatch(requestOf(opcode, args), caller, new Reply(), handler, extendedSetxattr);
  return { outcome, call };
}

const caller = { uid: 1001, gid: 1002, pid: 1234, umask: 0 };

test('a request gives its header fields, and is well formed only if its length is the one it says', () => {
  const request = requestOf(Op.GETATTR, Buffer.alloc(16));
  assert.equal(request.opcode, 3);
  assert.equal(request.nodeid, 0x11);
  assert.equal(request.uniqueLow, 0x0102);
  assert.equal(request.uniqueHigh, 0);
  assert.deepEqual([request.uid, request.gid, request.pid], [1001, 1002, 1234]);
  assert.equal(request.wellFormed, true);
  request.length -= 1;
  assert.equal(request.wellFormed, false);
  request.length = 12;
  assert.equal(request.wellFormed, false);
});

test('names are taken as bytes, one character each', () => {
  assert.deepEqual(decoded(Op.LOOKUP, hex('61 ff 0a c3a9 00')).call, ['lookup', 0x11, 'a\xff\n\xc3\xa9']);
});

test('MKNOD, MKDIR and TMPFILE carry mode, device and umask', () => {
  assert.deepEqual(decoded(Op.MKNOD, hex('a4810000 05010000 12000000 00000000 6600')).call, [
    'mknod',
    0x11,
    'f',
    0o100644,
    0x105,
    { ...caller, umask: 0o22 },
  ]);
  assert.deepEqual(decoded(Op.MKDIR, hex('ed010000 3f000000 6400')).call, [
    'mkdir',
    0x11,
    'd',
    0o755,
    { ...caller, umask: 0o77 },
  ]);
  assert.deepEqual(decoded(Op.TMPFILE, hex('02800000 80810000 12000000 00000000 00')).call, [
    'tmpfile',
    0x11,
    0o100600,
    { ...caller, umask: 0o22 },
  ]);
});

test('SETATTR carries negative times, nanoseconds, owner, mode and a size above 4 GiB', () => {
  const args = hex(`
    7f000000 00000000  0000000000000000  0000000001000000  0000000000000000
    ffffffffffffffff   0100000000000000  0000000000000000
    01000000 ff c99a 3b 00000000  a4010000 00000000  e8030000 e9030000 00000000`);
  const { call } = decoded(Op.SETATTR, args);
  assert.deepEqual(call[2], {
    valid: 0x7f,
    size: 2 ** 32,
    mode: 0o644,
    uid: 1000,
    gid: 1001,
    atime: -1,
    atimeNsec: 1,
    mtime: 1,
    mtimeNsec: 999999999,
  });
});

test('SYMLINK gives name and target, RENAME2 both names, the new directory and the flags', () => {
  assert.deepEqual(decoded(Op.SYMLINK, hex('6c00 2e2e2f7400')).call, ['symlink', 0x11, 'l', '../t', caller]);
  assert.deepEqual(decoded(Op.RENAME2, hex('2200000000000000 01000000 00000000 6100 6200')).call, [
    'rename',
    0x11,
    'a',
    0x22,
    'b',
    1,
    caller,
  ]);
});

test('READ, LSEEK, FALLOCATE and COPY_FILE_RANGE give offsets beyond 4 GiB', () => {
  const read = hex('0000000000000000 0010000001000000 00000100 00000000 0000000000000000 00000400 00000000');
  assert.deepEqual(decoded(Op.READ, read).call, ['read', 0x11, 2 ** 32 + 4096, 65536, O_NOATIME, caller]);
  const seek = hex('0000000000000000 0000000002000000 03000000 00000000');
  assert.deepEqual(decoded(Op.LSEEK, seek).call, ['lseek', 0x11, 2 ** 33, 3]);
  const punch = hex('0000000000000000 0010000000000000 0020000000000000 03000000 00000000');
  assert.deepEqual(decoded(Op.FALLOCATE, punch).call, ['fallocate', 0x11, 4096, 8192, 3, caller]);
  const copy = hex(`0000000000000000 0100000000000000 3300000000000000 0000000000000000 0200000000000000
    0300000000000000 0000000000000000`);
  assert.deepEqual(decoded(Op.COPY_FILE_RANGE, copy).call, ['copyFileRange', 0x11, 1, 0x33, 2, 3, caller]);
});

test('SETXATTR has 16 bytes of arguments with SETXATTR_EXT and 8 without', () => {
  const tail = '757365722e6100 7631';
  const long = decoded(Op.SETXATTR, hex(`02000000 01000000 00000000 00000000 ${tail}`), true);
  const short = decoded(Op.SETXATTR, hex(`02000000 01000000 ${tail}`), false);
  for (const { call } of [long, short]) {
    assert.deepEqual(
      [call[0], call[2], Buffer.from(call[3] as Uint8Array).toString(), call[4]],
      ['setxattr', 'user.a', 'v1', 1],
    );
  }
});

test('a request without the bytes it needs is EINVAL, and one that nobody knows is ENOSYS', () => {
  const names = [
    Op.LOOKUP,
    Op.UNLINK,
    Op.RMDIR,
    Op.SYMLINK,
    Op.MKNOD,
    Op.MKDIR,
    Op.RENAME,
    Op.RENAME2,
    Op.LINK,
  ];
  for (const opcode of [...names, Op.READ, Op.WRITE, Op.SETATTR, Op.SETXATTR, Op.GETXATTR, Op.READDIRPLUS]) {
    assert.deepEqual(decoded(opcode, Buffer.alloc(0)), { outcome: EINVAL, call: [] }, `opcode ${opcode}`);
  }
  // A name that nothing ends, an empty one, and a WRITE that promises more than it brings.
  assert.equal(decoded(Op.LOOKUP, hex('6162')).outcome, EINVAL);
  assert.equal(decoded(Op.LOOKUP, hex('00')).outcome, EINVAL);
  const write = hex(
    '0000000000000000 0000000000000000 ff000000 00000000 0000000000000000 00000000 00000000 61',
  );
  assert.equal(decoded(Op.WRITE, write).outcome, EINVAL);
  for (const opcode of [0, Op.OPEN, Op.OPENDIR, Op.CREATE, Op.FLUSH, Op.IOCTL, Op.SETLK, 54, 99, 4096]) {
    assert.deepEqual(decoded(opcode, Buffer.alloc(64)), { outcome: ENOSYS, call: [] }, `opcode ${opcode}`);
  }
});

/** A record as statx(2) fills it. */
function someStat(): Stat {
  const st = new Stat();
  const b = st.bytes;
  b.writeUInt32LE(0xfff, 0); // mask
  b.writeUInt32LE(4096, 4);
  b.writeUInt32LE(3, 16); // nlink
  b.writeUInt32LE(1001, 20);
  b.writeUInt32LE(1002, 24);
  b.writeUInt16LE(0o100640, 28);
  b.writeBigUInt64LE(0x1_0000_0007n, 32); // ino
  b.writeBigUInt64LE(5n, 40);
  b.writeBigUInt64LE(8n, 48);
  for (const [at, sec, nsec] of [
    [64, -2n, 1],
    [80, 3n, 2],
    [96, 4n, 3],
    [112, 5n, 4],
  ] as const) {
    b.writeBigInt64LE(sec, at);
    b.writeUInt32LE(nsec, at + 8);
  }
  b.writeUInt32LE(1, 128);
  b.writeUInt32LE(259, 132);
  return st;
}

const ATTR = `
  0700000001000000 0500000000000000 0800000000000000
  feffffffffffffff 0500000000000000 0400000000000000
  01000000 04000000 03000000 a0810000 03000000 e9030000 ea030000 03011000 00100000 00000000`;

function sent(reply: Reply, error = 0): string {
  return reply.bytes.toString('hex', 0, reply.finish(0x0102, 0, error));
}

test('a reply to GETATTR is header, validity and struct fuse_attr', () => {
  const reply = new Reply();
  reply.begin();
  reply.putAttrOut(3600, someStat());
  assert.equal(
    sent(reply),
    hex(`78000000 00000000 0201000000000000 100e000000000000 00000000 00000000 ${ATTR}`).toString('hex'),
  );
});

test('a reply to LOOKUP is struct fuse_entry_out, and for nothing a node id of 0', () => {
  const reply = new Reply();
  reply.begin();
  reply.putEntry(0x42, { entry: 3600, attr: 1 }, someStat());
  const out = `90000000 00000000 0201000000000000 4200000000000000 0000000000000000
    100e000000000000 0100000000000000 00000000 00000000`;
  assert.equal(sent(reply), hex(out + ATTR).toString('hex'));
  reply.begin();
  reply.putEntry(0, { entry: 1, attr: 0 }, null);
  assert.equal(sent(reply).length, 0x90 * 2);
  assert.equal(sent(reply).slice(32, 48), '0000000000000000');
});

test('an error is a bare header with a negative number, whatever was put before', () => {
  const reply = new Reply();
  reply.begin();
  reply.putAttrOut(1, someStat());
  assert.equal(sent(reply, 2), hex('10000000 feffffff 0201000000000000').toString('hex'));
});

test('directory entries are padded to 8 bytes, with the padding zero, and end where the limit is', () => {
  const reply = new Reply();
  reply.begin();
  reply.bytes.fill(0xee);
  assert.equal(reply.putDirent(7, 3, 8, 'abc\xff', 100), true);
  assert.equal(reply.putDirent(8, 4, 4, 'x', 40), false);
  assert.equal(
    sent(reply).slice(32),
    hex('0700000000000000 0300000000000000 04000000 08000000 616263ff 00000000').toString('hex'),
  );
});

test('device numbers travel as the kernel encodes them', () => {
  assert.equal(encodeDevice(1, 5), 0x105);
  assert.equal(encodeDevice(259, 1), 0x10301);
  assert.equal(encodeDevice(1, 259), 0x100103);
});

test('INIT takes what it wants of the offer, and refuses a kernel without no-open support', () => {
  const args = Buffer.alloc(64);
  args.writeUInt32LE(7, 0);
  args.writeUInt32LE(45, 4);
  args.writeUInt32LE(0x20000, 8);
  args.writeUInt32LE(0xffffffff, 12);
  const reply = new Reply();
  reply.begin();
  assert.deepEqual(handshake(requestOf(Op.INIT, args), reply), { minor: 45, extendedSetxattr: true });
  const out = Buffer.from(sent(reply), 'hex');
  assert.equal(out.length, 16 + 64);
  const flags = out.readUInt32LE(28);
  // Writeback cache (bit 16), O_TRUNC in open (3) and remote locks (1, 10) must never be taken.
  assert.equal(flags & ((1 << 16) | (1 << 3) | (1 << 1) | (1 << 10)), 0);
  assert.equal(out.readUInt32LE(36), 1 << 20, 'max_write');
  assert.equal(out.readUInt16LE(44), 256, 'max_pages');
  args.writeUInt32LE((0xffffffff & ~(1 << 17)) >>> 0, 12);
  assert.equal(handshake(requestOf(Op.INIT, args), new Reply()), EPROTO);
  args.writeUInt32LE(22, 4);
  assert.equal(handshake(requestOf(Op.INIT, args), new Reply()), EPROTO);
});
