/**
 * Unix sockets in the abstract namespace (unix(7)): a name and no file, which the kernel takes back when the last
 * descriptor is closed, however the process ended. One namespace a network namespace; anyone may bind or connect
 * to a name, so both ends have to look at their peer (peer.ts).
 *
 * Node takes a name that begins with a NUL too, and pads it with NULs to the full 108 bytes (libuv's older calls
 * have no length), which is another name. So the descriptors are made here and handed to node:net.
 */
import { readFileSync } from 'node:fs';
import { O_CLOEXEC, O_NONBLOCK } from './constants.ts';
import { koffi } from './koffi.ts';
import { close, errno } from './libc.ts';

const lib = koffi.load(null);
const socket: (domain: number, type: number, protocol: number) => number = lib.func(
  'int socket(int domain, int type, int protocol)',
);
const bind: (fd: number, address: Buffer, length: number) => number = lib.func(
  'int bind(int fd, void* address, uint length)',
);
const listen: (fd: number, backlog: number) => number = lib.func('int listen(int fd, int backlog)');
const connect: (fd: number, address: Buffer, length: number) => number = lib.func(
  'int connect(int fd, void* address, uint length)',
);

const AF_UNIX = 1;
// The flags SOCK_CLOEXEC and SOCK_NONBLOCK are those of open(2).
const SOCK_STREAM = 1;
const BACKLOG = 128;

/** A descriptor on which the socket `\0name` listens, or a negative errno: EADDRINUSE where someone has the name. */
export function listenAbstract(name: string): number {
  return withSocket((fd) => {
    const address = addressOf(name);
    return bind(fd, address, address.length) < 0 || listen(fd, BACKLOG) < 0 ? -errno() : fd;
  });
}

/**
 * A descriptor connected to `\0name`, or a negative errno: ECONNREFUSED where nobody listens, EAGAIN where the
 * listener has not accepted its last BACKLOG connections. It does not wait.
 */
export function connectAbstract(name: string): number {
  return withSocket((fd) => {
    const address = addressOf(name);
    return connect(fd, address, address.length) < 0 ? -errno() : fd;
  });
}

/** `use` returns the socket, or a negative errno, on which it is closed. */
function withSocket(use: (fd: number) => number): number {
  const fd = socket(AF_UNIX, SOCK_STREAM | O_CLOEXEC | O_NONBLOCK, 0);
  if (fd < 0) return -errno();
  const result = use(fd);
  if (result < 0) close(fd);
  return result;
}

/** `struct sockaddr_un`, as long as the name is. */
function addressOf(name: string): Buffer {
  const address = Buffer.alloc(3 + name.length);
  address.writeUInt16LE(AF_UNIX);
  address.latin1Write(name, 3);
  return address;
}

/**
 * The names on which somebody listens in this network namespace. Whose they are, and whether a name with a newline
 * pretends to be two, only connecting tells. Throws as readFileSync does.
 */
export function abstractListeners(): string[] {
  const names = new Set<string>();
  // Num RefCount Protocol Flags Type St Inode Path, the flag being SO_ACCEPTCON; @ stands for NUL.
  const line = /^[0-9a-f]+: [0-9a-f]+ [0-9a-f]+ 00010000 0001 [0-9a-f]+ +\d+ @(.+)$/gm;
  for (const [, name] of readFileSync('/proc/net/unix', 'latin1').matchAll(line)) names.add(name!);
  return [...names];
}
