/**
 * The mount namespace of a window, and what a machine may have set against it. The calling thread alone gets the
 * namespace, and hands it to the processes that it spawns.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import { cstring } from '../sys/bytes.ts';
import { CLONE_NEWNS, MS_PRIVATE, MS_REC } from '../sys/constants.ts';
import { EPERM, SysError } from '../sys/errno.ts';
import { errno, mount, unshare } from '../sys/libc.ts';
import type { CommandSpec } from './command.ts';

export interface NamespaceKind {
  uid: number;
  /** The machine's own user namespace, where root is the real root. */
  initialUserNamespace: boolean;
  /** CAP_SYS_ADMIN over the current user namespace: mounts are possible. */
  mayMount: boolean;
  /** Lines of /proc/self/uid_map, e.g. `["1000 1000 1"]`. */
  uidMap: string[];
  /** What a command must lose here so that it cannot unmount the view. */
  drop: Exclude<CommandSpec['drop'], 'nothing'>;
}

/** PROC_USER_INIT_INO of include/linux/proc_ns.h: an identity map alone may be a container's. */
const INITIAL_USER_NAMESPACE = 'user:[4026531837]';
const CAP_SYS_ADMIN = 21n;

export function namespaceKind(): NamespaceKind {
  const uid = process.geteuid!();
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/thread-self/status', 'latin1'));
  return {
    uid,
    initialUserNamespace: readlinkSync('/proc/self/ns/user') === INITIAL_USER_NAMESPACE,
    mayMount: effective !== null && ((BigInt(`0x${effective[1]}`) >> CAP_SYS_ADMIN) & 1n) === 1n,
    uidMap: readFileSync('/proc/self/uid_map', 'latin1')
      .split('\n')
      .map((line) => line.trim().replace(/ +/g, ' '))
      .filter(Boolean),
    drop: uid === 0 ? 'mount-capabilities' : 'all-capabilities',
  };
}

/**
 * Moves the calling thread into a mount namespace of its own, whose mounts nobody else sees. Throws SysError; its
 * message says what to do.
 */
export function privateMountNamespace(): void {
  if (unshare(CLONE_NEWNS) !== 0) throw failure(errno(), 'making a private mount namespace');
  if (mount(cstring('none'), cstring('/'), null, MS_REC | MS_PRIVATE, null) !== 0) {
    throw failure(errno(), 'making the mounts private');
  }
}

function failure(number: number, doing: string): SysError {
  const error = new SysError(number, doing);
  if (number === EPERM) error.message += `\n${explainNamespaceFailure().join('\n')}`;
  return error;
}

/** Why no namespace is to be had here, and what to change: one finding a line, the likeliest first. */
export function explainNamespaceFailure(): string[] {
  const findings: string[] = [];
  const kind = namespaceKind();
  if (setting('kernel/unprivileged_userns_clone') === '0' && kind.uid !== 0) {
    findings.push(
      'this kernel bars user namespaces (kernel.unprivileged_userns_clone=0): ' +
        'run "sysctl kernel.unprivileged_userns_clone=1" as root, or run forget as root',
    );
  }
  if (setting('user/max_user_namespaces') === '0') {
    findings.push(
      'user namespaces are limited to none (user.max_user_namespaces=0): ' +
        'run "sysctl user.max_user_namespaces=10000" as root, or run forget as root',
    );
  }
  if (setting('kernel/apparmor_restrict_unprivileged_userns') === '1' && kind.uid !== 0) {
    findings.push(
      'AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns=1, the default of Ubuntu ' +
        '23.10 and later): run "sysctl kernel.apparmor_restrict_unprivileged_userns=0" as root, ' +
        'or run forget as root',
    );
  }
  if (setting('user/max_mnt_namespaces') === '0') {
    findings.push(
      'mount namespaces are limited to none (user.max_mnt_namespaces=0): ' +
        'run "sysctl user.max_mnt_namespaces=10000" as root',
    );
  }
  if (seccompFilters()) {
    findings.push(
      'a seccomp filter is in force, as in a container: start the container with the capability SYS_ADMIN and ' +
        '/dev/fuse (docker run --cap-add SYS_ADMIN --device /dev/fuse --security-opt apparmor=unconfined)',
    );
  }
  if (findings.length === 0) {
    findings.push(
      kind.uid === 0
        ? 'root lacks CAP_SYS_ADMIN here, as in a container: start the container with the capability SYS_ADMIN and /dev/fuse'
        : 'user namespaces are not allowed here, or unshare(1) is missing or older than util-linux 2.36: ' +
            'install util-linux, or run forget as root',
    );
  }
  return findings;
}

/** A sysctl's value, or undefined where this kernel has no such setting. */
function setting(name: string): string | undefined {
  try {
    return readFileSync(`/proc/sys/${name}`, 'latin1').trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'EACCES') return undefined;
    throw error;
  }
}

function seccompFilters(): boolean {
  return /^Seccomp:\s*2$/m.test(readFileSync('/proc/self/status', 'latin1'));
}
