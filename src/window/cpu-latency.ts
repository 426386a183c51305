/**
 * Has idle processors wait awake while requests come fast. A virtual machine that is told to halt an idle processor at once
 * (haltpoll.guest_halt_poll_ns=0, as some providers of sandboxes do; the kernel's own choice is to poll for 200 us first) takes
 * 15-40 us to wake it, and whoever asks forget is waked once a request: most of what a small file costs there.
 *
 * The means is the kernel's PM QoS (Documentation/power/pm_qos_interface.rst): a request for a latency of 0, held through an open
 * descriptor, so that it ends with this process at the latest. It is root's to make. State: one for the whole process.
 */
import { readFileSync } from 'node:fs';
import { cstring } from '../sys/bytes.ts';
import { O_CLOEXEC, O_WRONLY } from '../sys/constants.ts';
import { open, write } from '../sys/libc.ts';

const DEVICE = '/dev/cpu_dma_latency';
const IDLE = '/sys/devices/system/cpu/cpuidle';
const POLLS_FOR = '/sys/module/haltpoll/parameters/guest_halt_poll_ns';

const TICK_MS = 5;
/** Requests within a tick from which on the time to wake counts. */
const FAST = 20;
const NONE_MS = 10;

const word = (value: number) => Buffer.from(Int32Array.of(value).buffer);
const AWAKE = word(0);
/** PM_QOS_CPU_LATENCY_DEFAULT_VALUE: 2000 s, in microseconds. */
const AS_IT_LIKES = word(2_000_000_000);

/** Since the last tick. */
let requests = 0;
let quietMs = 0;
let timer: NodeJS.Timeout | undefined;
let held = false;
const NO_USE = -1;
/** Of the device; NO_USE where it changes nothing, or this user may not; undefined while nobody has looked. */
let device: number | undefined;

/** To be called with each request. */
export function requested(): void {
  if (device === NO_USE) return;
  requests++;
  timer ??= setInterval(tick, TICK_MS).unref();
}

function tick(): void {
  if (requests >= FAST) hold(true);
  quietMs = requests > 0 ? 0 : quietMs + TICK_MS;
  requests = 0;
  if (quietMs < NONE_MS) return;
  hold(false);
  clearInterval(timer);
  timer = undefined;
}

function hold(awake: boolean): void {
  if (held === awake) return;
  device ??= haltsAtOnce() ? open(cstring(DEVICE), O_WRONLY | O_CLOEXEC, 0) : NO_USE;
  if (device !== NO_USE && write(device, awake ? AWAKE : AS_IT_LIKES, 4) === 4) held = awake;
}

/** Whether idle processors of this machine halt without waiting, and could wait. */
function haltsAtOnce(): boolean {
  try {
    const driver = readFileSync(`${IDLE}/current_driver`, 'latin1').trim();
    return driver === 'haltpoll' && Number(readFileSync(POLLS_FOR, 'latin1')) === 0;
  } catch {
    return false; // another kernel, or no sysfs
  }
}
