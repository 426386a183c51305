/**
 * Tells a signal that was sent to the whole process group from one that was sent to forget alone. The first has
 * reached the command already (a harness calls killpg, a shell's `kill %1`), and passing it on would deliver it
 * twice, which many agents take for "now at once"; the second must be passed on. Node does not say who a signal
 * came for. The witness is an idle process in the same group with every signal blocked: one sent to the group
 * stays pending there, for all to read in /proc.
 */
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { kill } from '../sys/spawn.ts';

export interface Witness {
  /** Has the group got `signal` since the last call? Undefined when there is no witness to ask. */
  saw(signal: number): boolean | undefined;
  /** Tells the witness that this child has ended. */
  reaped(pid: number): void;
  pids(): number[];
  /** Ends the process; its zombie is left to the reaper. */
  end(): void;
}

/** Short commands do without: most end sooner, and need not pay for a second process. */
const START_AFTER_MS = 200;

/** `spawn` starts the idle process and returns its pid. */
export function startWitness(spawn: () => number): Witness {
  let pid: number | undefined;
  /** What earlier witnesses saw and nobody has asked for yet, as a mask. */
  let earlier = 0n;
  const old = new Set<number>();
  const retire = (): void => {
    if (pid === undefined) return;
    kill(pid, constants.signals.SIGKILL);
    old.add(pid);
    pid = undefined;
  };
  const timer = setTimeout(() => {
    pid = spawn();
  }, START_AFTER_MS);
  timer.unref();
  return {
    saw(signal) {
      if (pid === undefined) return undefined;
      const pending = /^ShdPnd:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
      const bit = 1n << BigInt(signal - 1);
      const all = earlier | BigInt(`0x${pending?.[1] ?? '0'}`);
      if ((all & bit) === 0n) return false;
      earlier = all & ~bit;
      // What is pending cannot be taken back from outside, so the next signal needs a new witness.
      retire();
      pid = spawn();
      return true;
    },
    reaped(child) {
      old.delete(child);
      if (child === pid) pid = undefined;
    },
    pids: () => [...old, ...(pid === undefined ? [] : [pid])],
    end() {
      clearTimeout(timer);
      retire();
    },
  };
}
