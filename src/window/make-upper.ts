/**
 * Makes an upper and hands its descriptor over on descriptor 3: `make-upper BYTES`. A process of its own, in a user
 * namespace, where an ordinary user may make a tmpfs; the server of a mount that others see must stay outside, where
 * it knows every owner by his real number (fusermount.ts).
 */
import { writeSync } from 'node:fs';
import { makeUpper } from '../overlay/upper.ts';
import { sendDescriptor } from '../sys/descriptor-passing.ts';

const SOCKET_FD = 3;

try {
  const { fd, noswap } = makeUpper(Number(process.argv[2]));
  sendDescriptor(SOCKET_FD, fd, noswap ? 1 : 0);
} catch (error) {
  writeSync(2, `${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
