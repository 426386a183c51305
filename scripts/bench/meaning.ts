/** What a figure means for the person whose agent runs in the mount: a sentence for each workload. */
import { figure, ratio, time } from './figures.ts';
import { LARGE_FILES, SMALL_FILES } from './material.ts';
import { STORM_FILES } from './workloads.ts';

export interface Told {
  native: number;
  forget: number;
  peer: { name: string; value: number } | undefined;
}

const small = SMALL_FILES.toLocaleString('en');
const large = LARGE_FILES.toLocaleString('en');
const gigabyte = 1e9;

/** Below this nobody notices a wait (Nielsen: a tenth of a second feels immediate). */
const UNNOTICED_MS = 100;

function extra({ native, forget }: Told): string {
  const more = forget - native;
  if (more <= 0) return 'no wait is added';
  return more < UNNOTICED_MS
    ? `${time(more)} more than bare, which nobody notices`
    : `${time(more)} more than bare`;
}

function against({ forget, peer }: Told): string {
  return peer ? ` (${peer.name}: ${time(peer.value)}, ${ratio(peer.value / forget)} as long)` : '';
}

const sentences: Record<string, (told: Told) => string> = {
  'status-first': (t) =>
    `The agent's first look at a repository of ${small} files takes ${time(t.forget)}, ${extra(t)}${against(t)}.`,
  'status-warm': (t) =>
    `Each later one, dozens in an hour of work: ${time(t.forget)}, ${extra(t)}${against(t)}.`,
  'rg-first': (t) =>
    `The first search through all sources reads every file through forget: ${time(t.forget)}, ${extra(t)}${against(t)}.`,
  'rg-warm': (t) =>
    `Agents search all the time, and after the first the kernel answers by itself: ${time(t.forget)}, ${extra(t)}${against(t)}.`,
  'find-first': (t) => `The first walk over all names: ${time(t.forget)}, ${extra(t)}${against(t)}.`,
  'find-warm': (t) =>
    `Each later walk (a file watcher, a test runner, \`ls -R\`): ${time(t.forget)}, ${extra(t)}${against(t)}.`,
  'stat-first': (t) =>
    `The price of one question to forget: ${t.forget.toFixed(0)} µs, where the kernel alone takes ${t.native.toFixed(1)} µs.`,
  'stat-warm': (t) =>
    `Asked again, the kernel answers from its cache, and there is nothing left to pay: ${t.forget.toFixed(1)} µs against ${t.native.toFixed(1)} µs.`,
  tar: (t) =>
    `To pack everything for the first time, a backup or a container's build context: ${time(t.forget)}, ${extra(t)}${against(t)}.`,
  cp: (t) =>
    `To unpack or copy ${small} files into the workspace: ${time(t.forget)}, ${extra(t)}${against(t)}; ${perFile(t, SMALL_FILES)} a file.`,
  rm: (t) => `To clear a build directory of ${small} files: ${time(t.forget)}, ${extra(t)}${against(t)}.`,
  create: (t) =>
    `A compiler or code generator that writes ${STORM_FILES.toLocaleString('en')} small files: ${time(t.forget)}, ${extra(t)}${against(t)}; ${perFile(t, STORM_FILES)} a file.`,
  clone: (t) => `A clone of the repository into the workspace: ${time(t.forget)}, ${extra(t)}${against(t)}.`,
  'npm-ci': (t) =>
    `Installing a small project's dependencies from the cache: ${time(t.forget)}, ${extra(t)}${against(t)}.`,
  'read-cold': (t) =>
    `A large file that is on the disk alone: ${figure({ unit: 'bandwidth' }, t.forget)}, bare ${figure({ unit: 'bandwidth' }, t.native)}; the disk decides.`,
  'read-first': (t) =>
    `A gigabyte that the machine has in memory, read in the window for the first time: ${seconds(t.forget)}, bare ${seconds(t.native)}.`,
  'read-warm': (t) =>
    `The same gigabyte read again, which forget never hears of: ${seconds(t.forget)}, bare ${seconds(t.native)}.`,
  write: (t) =>
    `A gigabyte written to the workspace (a build, a dataset): ${seconds(t.forget)}, bare ${seconds(t.native)}; in the lower when the call returns.`,
  'status-first-50k': (t) =>
    `The first look at a monorepo of ${large} files: ${time(t.forget)}, ${extra(t)}${against(t)}.`,
  'status-warm-50k': (t) => `Each later one there: ${time(t.forget)}, ${extra(t)}${against(t)}.`,
  'rg-first-50k': (t) => `The first search through it: ${time(t.forget)}, ${extra(t)}${against(t)}.`,
  'rg-warm-50k': (t) => `Each later one: ${time(t.forget)}, ${extra(t)}${against(t)}.`,
  'find-first-50k': (t) => `The first walk over its names: ${time(t.forget)}, ${extra(t)}${against(t)}.`,
  'find-warm-50k': (t) => `Each later walk: ${time(t.forget)}, ${extra(t)}${against(t)}.`,
};

/** Figures in the workload's own unit: milliseconds, microseconds a call, bytes a second. */
export function meaning(workload: string, told: Told): string {
  if (!Number.isFinite(told.forget) || !Number.isFinite(told.native)) return 'Not measured in this run.';
  return sentences[workload]!(told);
}

function perFile({ forget }: Told, files: number): string {
  return `${((forget * 1000) / files).toFixed(0)} µs`;
}

function seconds(bytesASecond: number): string {
  return time((gigabyte / bytesASecond) * 1000);
}
