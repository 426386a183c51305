/** Descriptors that travel between processes over a Unix socket: socketpair(2), and SCM_RIGHTS of unix(7). */

import { O_CLOEXEC } from './constants.ts';
import { EAGAIN, SysError } from './errno.ts';
import { koffi } from './koffi.ts';
import { addressOf, errno } from './libc.ts';

const lib = koffi.load(null);
const socketpairInto: (domain: number, type: number, protocol: number, pair: Buffer) => number = lib.func(
  'int socketpair(int domain, int type, int protocol, void* pair)',
);
const recvmsg: (fd: number, message: Buffer, flags: number) => number = lib.func(
  'int64_t recvmsg(int fd, void* message, int flags)',
);
const sendmsg: (fd: number, message: Buffer, flags: number) => number = lib.func(
  'int64_t sendmsg(int fd, void* message, int flags)',
);

const shutdownSocket: (fd: number, how: number) => number = lib.func('int shutdown(int fd, int how)');

const AF_UNIX = 1;
// The flag SOCK_CLOEXEC is that of open(2).
const SOCK_STREAM = 1;
const SHUT_RDWR = 2;
const SOL_SOCKET = 1;
const SCM_RIGHTS = 1;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
const MSG_CMSG_CLOEXEC = 0x40000000;

/**
 * One `struct msghdr` of 64-bit Linux and all that it points to, in one buffer: header, iovec, control message, the
 * byte of data.
 */
const HEADER_BYTES = 56;
const CONTROL_LENGTH_AT = 40;
const IOVEC_AT = HEADER_BYTES;
const CONTROL_AT = IOVEC_AT + 16;
/** CMSG_LEN and CMSG_SPACE of one int: a 64-bit length, level, type, the int, padding. */
const CONTROL_LENGTH = 20n;
const CONTROL_SPACE = 24;
const DATA_AT = CONTROL_AT + CONTROL_SPACE;

function newMessage(): Buffer {
  const message = Buffer.alloc(DATA_AT + 1);
  const at = addressOf(message);
  message.writeBigUInt64LE(at + BigInt(IOVEC_AT), 16);
  message.writeBigUInt64LE(1n, 24);
  message.writeBigUInt64LE(at + BigInt(CONTROL_AT), 32);
  message.writeBigUInt64LE(BigInt(CONTROL_SPACE), CONTROL_LENGTH_AT);
  message.writeBigUInt64LE(at + BigInt(DATA_AT), IOVEC_AT);
  message.writeBigUInt64LE(1n, IOVEC_AT + 8);
  return message;
}

/** Both ends close-on-exec. Throws SysError. */
export function socketpair(): [number, number] {
  const pair = Buffer.alloc(8);
  if (socketpairInto(AF_UNIX, SOCK_STREAM | O_CLOEXEC, 0, pair) < 0) {
    throw new SysError(errno(), 'making a pair of sockets');
  }
  return [pair.readInt32LE(0), pair.readInt32LE(4)];
}

/** Ends the connection for both sides, and wakes a thread that waits in a read of it. */
export const shutdown = (fd: number): number => shutdownSocket(fd, SHUT_RDWR);

/**
 * A descriptor that has been sent already, close-on-exec, and the byte that came with it; undefined where none was.
 * Does not wait. Throws SysError.
 */
export function receiveDescriptor(socket: number): { fd: number; byte: number } | undefined {
  const message = newMessage();
  const n = recvmsg(socket, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && errno() !== EAGAIN) throw new SysError(errno(), 'receiving a descriptor');
  // The kernel writes back how much control data there was.
  if (n <= 0 || message.readBigUInt64LE(CONTROL_LENGTH_AT) < CONTROL_LENGTH) return undefined;
  if (message.readInt32LE(CONTROL_AT + 8) !== SOL_SOCKET) return undefined;
  if (message.readInt32LE(CONTROL_AT + 12) !== SCM_RIGHTS) return undefined;
  return { fd: message.readInt32LE(CONTROL_AT + 16), byte: message[DATA_AT]! };
}

/** Sends a descriptor along with one byte. Throws SysError. */
export function sendDescriptor(socket: number, fd: number, byte: number): void {
  const message = newMessage();
  message.writeBigUInt64LE(CONTROL_LENGTH, CONTROL_AT);
  message.writeInt32LE(SOL_SOCKET, CONTROL_AT + 8);
  message.writeInt32LE(SCM_RIGHTS, CONTROL_AT + 12);
  message.writeInt32LE(fd, CONTROL_AT + 16);
  message[DATA_AT] = byte;
  if (sendmsg(socket, message, MSG_NOSIGNAL) < 0) throw new SysError(errno(), 'sending a descriptor');
}
