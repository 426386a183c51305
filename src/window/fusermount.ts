/**
 * A mount for an ordinary user: fusermount3 (libfuse), which is setuid, mounts and unmounts, and a process in a user
 * namespace of its own makes the upper. The server itself has no capability then, and stays in the user namespace
 * it was started in, so that it sees owners as they are.
 *
 * The protocol is that of libfuse's lib/mount.c: fusermount3 finds one end of a socket by the number in
 * `_FUSE_COMMFD` and sends the descriptor of the mounted /dev/fuse over it.
 */
import { spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { mountFlagsOf } from '../fuse/mount.ts';
import type { UpperFs } from '../overlay/upper.ts';
import { bytesOf, displayName } from '../sys/bytes.ts';
import { MS_NOATIME, MS_NOEXEC, O_NONBLOCK, PR_SET_DUMPABLE } from '../sys/constants.ts';
import { receiveDescriptor, socketpair } from '../sys/descriptor-passing.ts';
import { SysError } from '../sys/errno.ts';
import { close, errno, fcntl, prctl } from '../sys/libc.ts';
import { Failure } from './failure.ts';
import { FUSE_CONF, mayAllowOthers } from './fusermount-check.ts';
import type { Mounter } from './mounter.ts';
import { explainNamespaceFailure } from './namespace.ts';
import { runTool } from './tool.ts';

const F_SETFL = 4;
/** The number under which a child gets its end of the socket. */
const SOCKET_FD = 3;
const ANSWER_MS = 10_000;

export const byFusermount: Mounter = {
  makeUpper: makeUpperApart,
  mount(mountpoint, lower) {
    // Other processes of this user would reach the upper and the lower through /proc/PID/fd otherwise.
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
      throw new SysError(errno(), 'hiding the descriptors of the server');
    const flags = mountFlagsOf(lower);
    const options = ['fsname=forget', 'subtype=forget', 'default_permissions'];
    if (mayAllowOthers()) options.push('allow_other');
    // Always nosuid and nodev; of the others fusermount3 knows these two.
    if (flags & MS_NOEXEC) options.push('noexec');
    if (flags & MS_NOATIME) options.push('noatime');
    const [own, theirs] = socketpair();
    try {
      let said: string;
      try {
        said = runToMount(['-o', options.join(','), '--'], mountpoint, theirs);
      } finally {
        close(theirs);
      }
      const received = receiveDescriptor(own);
      if (!received)
        throw new Failure(`mounting ${displayName(mountpoint)}: ${said || 'fusermount3 sent nothing'}`);
      fcntl(received.fd, F_SETFL, O_NONBLOCK);
      return received.fd;
    } finally {
      close(own);
    }
  },
  // fusermount3 has no such question.
  isBusy: async () => false,
  async unmount(mountpoint) {
    const said = await run(['-u', '--'], mountpoint);
    if (said.includes('Device or resource busy')) return false;
    if (said) throw new Failure(`unmounting ${displayName(mountpoint)}: ${said}`);
    return true;
  },
  detach: (mountpoint) => run(['-u', '-z', '--'], mountpoint).then(() => {}),
  detachCommand: ['fusermount3', '-u', '-z', '--'],
  notices: () =>
    mayAllowOthers()
      ? []
      : [
          `forget: only your own processes can use this mount, not root's or another user's: those get EACCES there. For all: a line "user_allow_other" in ${FUSE_CONF}, or forget mount as root`,
        ],
};

/** Through standard input, since Node gives arguments as UTF-8 and a mount point is bytes. */
const command = (options: string[]) => ['-0', 'fusermount3', ...options];
const environment = () => ({ ...process.env, LC_ALL: 'C', _FUSE_COMMFD: String(SOCKET_FD) });

/** Mounts: nothing is served yet, so it may be waited for. Returns what fusermount3 complained of. */
function runToMount(options: string[], mountpoint: string, socket: number): string {
  const end = spawnSync('xargs', command(options), {
    cwd: '/',
    input: Buffer.from(mountpoint, 'latin1'),
    env: environment(),
    stdio: ['pipe', 'ignore', 'pipe', socket],
    encoding: 'latin1',
    timeout: ANSWER_MS,
    killSignal: 'SIGKILL',
  });
  if (end.error) throw new Failure(`running fusermount3: ${end.error.message}`);
  return complaint(end.status, end.stderr);
}

/** Unmounts, which may take answers of this server. Returns what fusermount3 complained of. */
async function run(options: string[], mountpoint: string): Promise<string> {
  const end = await runTool(['xargs', ...command(options)], { input: mountpoint, timeoutMs: ANSWER_MS });
  return complaint(end.code ?? null, bytesOf(end.stderr));
}

/** Nothing when it did as it was told. */
function complaint(code: number | null, said: string): string {
  if (code === 0) return '';
  // What xargs says when there is no such command.
  if (code === 127) {
    throw new Failure(
      'forget mount as an ordinary user needs fusermount3: install the package fuse3, or run it with sudo; "forget exec -- COMMAND" needs neither',
    );
  }
  return displayName(said.trim()) || `fusermount3 ended with ${code ?? 'a signal'}`;
}

function makeUpperApart(sizeBytes: number): Promise<UpperFs> {
  const program = join(import.meta.dirname, 'make-upper.cjs');
  const [own, theirs] = socketpair();
  const argv = [
    '--user',
    '--mount',
    '--map-current-user',
    '--keep-caps',
    '--',
    process.execPath,
    program,
    `${sizeBytes}`,
  ];
  const child = spawn('unshare', argv, { cwd: '/', stdio: ['ignore', 'ignore', 'pipe', theirs] });
  close(theirs);
  const timer = setTimeout(() => child.kill('SIGKILL'), ANSWER_MS);
  let said = '';
  child.stderr!.setEncoding('latin1').on('data', (text: string) => {
    said += text;
  });
  return new Promise<UpperFs>((resolve, reject) => {
    child.once('error', (error) => {
      child.removeAllListeners('close');
      reject(refusal(error.message));
    });
    child.once('close', () => {
      const received = receiveDescriptor(own);
      if (received) resolve({ fd: received.fd, noswap: received.byte === 1 });
      else reject(refusal(said.trim()));
    });
  }).finally(() => {
    clearTimeout(timer);
    close(own);
  });
}

function refusal(said: string): Failure {
  return new Failure(
    `forget mount as an ordinary user makes its RAM in a user namespace, which failed (${displayName(said) || 'no answer'}): ${explainNamespaceFailure()[0]}`,
  );
}
