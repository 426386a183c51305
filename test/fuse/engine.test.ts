/**
 * The request loop against garbage, over a socket that keeps message boundaries as /dev/fuse does.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import koffi from 'koffi';
import { Op } from '../../src/fuse/abi.ts';
import { Engine } from '../../src/fuse/engine.ts';
import type { Handler } from '../../src/fuse/handler.ts';
import { EDQUOT, EIO, ENOENT, ENOSPC, ENOSYS, errnoName, SysError } from '../../src/sys/errno.ts';
import { close, fcntl, read, write } from '../../src/sys/libc.ts';

const AF_UNIX = 1;
const SOCK_SEQPACKET = 5;
const F_SETFL = 4;
const O_NONBLOCK = 0o4000;
const socketpair = koffi
  .load(null)
  .func('int socketpair(int family, int type, int protocol, _Out_ int* fds)');

function requestBytes(opcode: number, unique: number, args: Buffer, claimed?: number): Buffer {
  const out = Buffer.alloc(40 + args.length);
  out.writeUInt32LE(claimed ?? out.length, 0);
  out.writeUInt32LE(opcode, 4);
  out.writeUInt32LE(unique, 8);
  args.copy(out, 40);
  return out;
}

/** Sends everything, has the loop work it off, and returns `[unique, error]` of each reply and the defects. */
function serve(
  handler: Partial<Handler>,
  requests: Buffer[],
): { replies: [number, number][]; defects: string[] } {
  const fds = [-1, -1];
  assert.equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
  const [kernel, device] = fds as [number, number];
  fcntl(kernel, F_SETFL, O_NONBLOCK);
  fcntl(device, F_SETFL, O_NONBLOCK);
  const defects: string[] = [];
  const engine = new Engine(device, handler as Handler, {
    defect: (message) => defects.push(message),
    ended: () => {},
  });
  for (const bytes of [...requests, requestBytes(Op.DESTROY, 0, Buffer.alloc(0))]) {
    assert.equal(write(kernel, bytes, bytes.length), bytes.length);
  }
  engine.pump();
  const replies: [number, number][] = [];
  const buffer = Buffer.alloc(4096);
  for (let n = read(kernel, buffer, buffer.length); n > 0; n = read(kernel, buffer, buffer.length)) {
    replies.push([buffer.readUInt32LE(8), buffer.readInt32LE(4)]);
  }
  close(kernel);
  close(device);
  return { replies, defects };
}

const name = Buffer.from('x\0');

test('garbage, short requests and unknown opcodes never end the loop', { timeout: 10_000 }, () => {
  const { replies, defects } = serve({ unlink: () => 0 }, [
    Buffer.from('not a request at all'),
    requestBytes(Op.UNLINK, 1, name, 9999),
    requestBytes(60_000, 2, name),
    requestBytes(Op.FORGET, 3, Buffer.alloc(0)),
    requestBytes(Op.BATCH_FORGET, 4, Buffer.from('ffffffff00000000', 'hex')),
    requestBytes(Op.INTERRUPT, 5, Buffer.alloc(0)),
    requestBytes(Op.UNLINK, 6, name),
  ]);
  assert.deepEqual(replies, [
    [2, -ENOSYS],
    [6, 0],
  ]);
  assert.equal(defects.length, 2, defects.join('\n'));
});

test('whatever a handler throws becomes an errno, and a defect if it was not one', {
  timeout: 10_000,
}, () => {
  const handler: Partial<Handler> = {
    unlink: () => {
      throw new SysError(ENOENT, 'test');
    },
    rmdir: () => {
      throw new TypeError('a bug');
    },
  };
  const { replies, defects } = serve(handler, [
    requestBytes(Op.UNLINK, 1, name),
    requestBytes(Op.RMDIR, 2, name),
    requestBytes(Op.UNLINK, 3, name),
  ]);
  assert.deepEqual(replies, [
    [1, -ENOENT],
    [2, -EIO],
    [3, -ENOENT],
  ]);
  assert.deepEqual(defects, ['RMDIR failed']);
});

for (const error of [ENOSPC, EDQUOT]) {
  test(`${errnoName(error)} is final when space was made, and answered although the round of serving is over`, {
    timeout: 10_000,
  }, async () => {
    const fds = [-1, -1];
    assert.equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    const [kernel, device] = fds as [number, number];
    for (const fd of [kernel, device]) fcntl(fd, F_SETFL, O_NONBLOCK);
    const calls: string[] = [];
    const handler: Partial<Handler> = {
      unlink: () => {
        const until = Date.now() + 25; // longer than a round
        while (Date.now() < until);
        calls.push('try');
        return error;
      },
    };
    const engine = new Engine(device, handler as Handler, { defect: assert.fail, ended: () => {} });
    engine.makeSpace = () => calls.push('make space');
    const bytes = requestBytes(Op.UNLINK, 1, name);
    write(kernel, bytes, bytes.length);
    engine.pump();
    const reply = Buffer.alloc(64);
    while (read(kernel, reply, reply.length) < 0) await delay(5);
    assert.deepEqual(calls, ['try', 'make space', 'try']);
    assert.deepEqual([reply.readUInt32LE(8), reply.readInt32LE(4)], [1, -error]);
    engine.stop();
    close(kernel);
    close(device);
  });
}
