/** On what, and with which versions, a run was made. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { versionsOf } from './packages.ts';

export interface Machine {
  date: string;
  commit: string;
  cpu: string;
  memoryGiB: number;
  system: string;
  kernel: string;
  node: string;
  /** Of the directory with the trees. */
  filesystem: string;
  packages: Record<string, string>;
  /** What an idle processor does: waking a virtual one that halts at once takes 15-40 us, and more than all else decides what FUSE costs. */
  idle: string;
  /** Load average at the start: another's work on the machine makes all figures worse. */
  load: string;
}

const checkout = fileURLToPath(new URL('../..', import.meta.url));

function commit(): string {
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', checkout, ...args], { encoding: 'utf8' }).trim();
  try {
    return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', 'src') ? ' with changes' : '');
  } catch {
    return 'unknown'; // an installed package, or a checkout of another user
  }
}

function whenIdle(): string {
  const [driver, pollsFor] = [
    '/sys/devices/system/cpu/cpuidle/current_driver',
    '/sys/module/haltpoll/parameters/guest_halt_poll_ns',
  ].map((path) => (existsSync(path) ? readFileSync(path, 'latin1').trim() : ''));
  return driver === 'haltpoll' ? `haltpoll, ${pollsFor} ns` : driver || 'no cpuidle driver';
}

export function describeMachine(directory: string, packages: readonly string[]): Machine {
  const processors = cpus();
  const os = readFileSync('/etc/os-release', 'utf8');
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: commit(),
    cpu: `${processors.length} × ${processors[0]?.model ?? 'unknown'}`,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: /^PRETTY_NAME="?(.*?)"?$/m.exec(os)?.[1] ?? 'Linux',
    kernel: release(),
    node: process.version,
    filesystem: execFileSync('findmnt', ['-n', '-o', 'FSTYPE', '-T', directory], { encoding: 'utf8' }).trim(),
    packages: versionsOf(packages),
    idle: whenIdle(),
    load: readFileSync('/proc/loadavg', 'utf8').split(' ').slice(0, 3).join(' '),
  };
}
