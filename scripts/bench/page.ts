/** docs/performance.md and the table on the terminal, from a run's figures. Pure. */
import { table } from '../demo/table.ts';
import { figure, median, ratio, ratioText } from './figures.ts';
import type { Machine } from './machine.ts';
import { LARGE_FILES, SMALL_FILES, STREAM_BYTES } from './material.ts';
import { meaning } from './meaning.ts';
import type { Measurements } from './measure.ts';
import type { Requests } from './requests.ts';
import type { Sort } from './targets.ts';
import { type Workload, workloads } from './workloads.ts';

export interface Results extends Measurements {
  machine: Machine;
  rounds: number;
  targets: { name: string; sort: Sort; about: string }[];
}

/** The medians of everything, for a terminal. */
export function summary(results: Results): string {
  const { targets } = results;
  const rows = measured(results).map((workload) => [
    workload.title,
    ...targets.map(({ name }) => figure(workload, medianOf(results, name, workload))),
  ]);
  const starts = Object.entries(results.starts).map(([name, times]) => [
    name,
    `${median(times).toFixed(0)} ms`,
  ]);
  return [
    ...(rows.length > 0 ? [table(['', ...targets.map(({ name }) => name)], rows)] : []),
    ...(starts.length > 0 ? [table(['start', ''], starts)] : []),
  ].join('\n\n');
}

export function page(results: Results): string {
  const { machine, rounds } = results;
  return `# Performance

<!-- Written by npm run bench. Change scripts/bench, not this. -->

What forget costs, beside the bare directory and beside other overlays, each in turn within one run. Medians of
${rounds} rounds, on ${machine.filesystem}, ${machine.date}, commit ${machine.commit}.

![Time against the bare directory, by workload](performance.svg)

## In one table

${ratioTable(results)}

× is the time against the bare directory (for reading and writing: the bandwidth against its). "First" is in a mount
that is a second old (an agent takes as long to start, and forget reads ahead meanwhile what git tracks, of the larger
tree the names alone), with the real directory in the page cache; "warm" is the same command again. A file's first \`stat\` is of one
that was not read ahead. ✓ and ✗: the goal of the design for \`forget\` is reached or not. "Ahead" compares with the best
other FUSE filesystem; the kernel's overlayfs needs no daemon and is shown as the bound. A dash: it could not do it, see
below. What takes a target more than half a minute was done once.

## What it means

${meanings(results)}

## Starting

${startTable(results)}

## Requests

Time on a busy machine says little; what the kernel asks of forget is the same each time, and is compared with
committed numbers in each test run (\`test/requests\`). FORGET is left out: nobody waits for it. A third run and all later
ones of what is warm ask for nothing: only the access times of what was read for the first time are asked for once.

${requestTable(results)}

## The machine

${machineTable(results)}

## Again

\`\`\`
npm run bench                                # all of it, as root, some 40 minutes; writes this page
npm run bench -- --quick                     # one round without the large tree; prints the table
npm run bench -- --only native,forget --workloads rg,status --rounds 9
npm run bench -- --directory /dev/shm        # on a tmpfs: what the disk hides shows
\`\`\`

Peers come from Debian, with their default options, mounted by root; what is missing is installed. Run it on a machine
that does nothing else. As root the trees are on a filesystem of the run's own, ext4 with a journal in a file in /var/tmp, past
the page cache of the one below. ${SMALL_FILES.toLocaleString('en')} files of source-like sizes are a git repository, the other tree has
${LARGE_FILES.toLocaleString('en')}. Files are streamed ${STREAM_BYTES >> 20} MiB at a time in blocks of 1 MiB.

Where idle processors halt at once ("haltpoll, 0 ns" above), forget as root has them wait awake while requests come
fast ([decisions.md](decisions.md#idle-processors-wait-awake)). Native and the peers run on the machine as it is.
${failures(results)}`;
}

function measured(results: Results): Workload[] {
  return workloads.filter(({ id }) => results.targets.some(({ name }) => results.figures[name]?.[id]));
}

function medianOf(results: Results, target: string, { id }: Workload): number {
  return median(results.figures[target]?.[id] ?? []);
}

/** Against native: 2 is twice the time, or twice the bandwidth. NaN where either is missing. */
export function ratioOf(results: Results, target: string, workload: Workload): number {
  return medianOf(results, target, workload) / medianOf(results, 'native', workload);
}

/** The FUSE peer that did this best, and its figure; undefined where none did it. */
function bestPeer(results: Results, workload: Workload): { name: string; value: number } | undefined {
  const done = results.targets
    .filter(({ sort }) => sort === 'peer')
    .map(({ name }) => ({ name, value: medianOf(results, name, workload) }))
    .filter(({ value }) => Number.isFinite(value))
    .sort((a, b) => a.value - b.value);
  return workload.unit === 'bandwidth' ? done.at(-1) : done[0];
}

/** How far forget is ahead of the best peer: 2 is half the time, or twice the bandwidth. */
function lead(results: Results, workload: Workload): { name: string; factor: number } | undefined {
  const peer = bestPeer(results, workload);
  const own = medianOf(results, 'forget', workload);
  if (!peer || !Number.isFinite(own)) return undefined;
  return {
    name: peer.name,
    factor: workload.unit === 'bandwidth' ? own / peer.value : peer.value / own,
  };
}

function reached(results: Results, workload: Workload): string {
  if (workload.goal === undefined) return '';
  const own = ratioOf(results, 'forget', workload);
  if (!Number.isFinite(own)) return '';
  const good = workload.unit === 'bandwidth' ? own >= workload.goal : own <= workload.goal;
  return ` ${good ? '✓' : '✗'} ${workload.unit === 'bandwidth' ? '≥' : '≤'} ${workload.goal}`;
}

function ratioTable(results: Results): string {
  const others = results.targets.filter(({ name }) => name !== 'native' && name !== 'forget');
  const heading = [
    '',
    'native',
    'forget',
    '× (goal)',
    'ahead of the best peer',
    ...others.map(({ name }) => name),
  ];
  const rows = measured(results).map((workload) => {
    const ahead = lead(results, workload);
    return [
      workload.title,
      figure(workload, medianOf(results, 'native', workload)),
      `**${figure(workload, medianOf(results, 'forget', workload))}**`,
      `${ratioText(ratioOf(results, 'forget', workload))}${reached(results, workload)}`,
      ahead ? `${ratio(ahead.factor)} (${ahead.name})` : '–',
      ...others.map(({ name }) => ratioText(ratioOf(results, name, workload))),
    ];
  });
  return markdown(heading, rows);
}

function meanings(results: Results): string {
  const lines = measured(results).map((workload) => {
    const sentence = meaning(workload.id, {
      native: medianOf(results, 'native', workload),
      forget: medianOf(results, 'forget', workload),
      peer: bestPeer(results, workload),
    });
    return `- **${workload.title}.** ${sentence}`;
  });
  return lines.join('\n');
}

function startTable({ starts }: Results): string {
  const rows = ['root', 'user']
    .filter((who) => starts[`forget, ${who}`])
    .map((who) => {
      const [node, forget] = [median(starts[`node, ${who}`]!), median(starts[`forget, ${who}`]!)];
      const goal = who === 'root' ? 2 : 3;
      const mark = `${forget <= goal * node ? '✓' : '✗'} ≤ ${goal}`;
      return [who, `${node.toFixed(0)} ms`, `${forget.toFixed(0)} ms`, `${ratio(forget / node)} ${mark}`];
    });
  if (rows.length === 0) return 'Not measured in this run.';
  const sentence =
    'An empty command in a window of its own, beside an empty Node program: what a person waits before the agent starts, and a script pays for each window.';
  return `${markdown(['as', '`node -e 0`', '`forget exec -- true`', '×'], rows)}\n\n${sentence}`;
}

function requestTable(results: Results): string {
  const counted = results.requests.forget ?? {};
  const rows = measured(results)
    .filter(({ id }) => counted[id])
    .map(({ id, title }) => [
      title,
      requestText(counted[id]![0]!),
      requestText(counted[id]!.at(-1)!, counted[id]!.length),
    ]);
  return markdown(['', 'requests', 'when done once more, later'], rows);
}

function requestText(requests: Requests, times?: number): string {
  if (times === 1) return '';
  const shown = Object.entries(requests).filter(([opcode]) => !/FORGET|INTERRUPT/.test(opcode));
  const sorted = shown.sort(([, a], [, b]) => b - a);
  return sorted.map(([opcode, count]) => `${opcode} ${count.toLocaleString('en')}`).join(', ') || 'none';
}

function machineTable({ machine, targets }: Results): string {
  const rows: [string, string][] = [
    ['processor', machine.cpu],
    ['memory', `${machine.memoryGiB} GiB`],
    ['system', `${machine.system}, Linux ${machine.kernel}`],
    ['Node', machine.node],
    ['trees on', machine.filesystem],
    ['idle processors', machine.idle],
    ['load before', machine.load],
    ...Object.entries(machine.packages),
  ];
  const about = targets.map(({ name, about }) => `- \`${name}\`: ${about}`).join('\n');
  return `${markdown(['', ''], rows)}\n\n${about}`;
}

function failures(results: Results): string {
  if (results.failures.length === 0) return '';
  const lines = results.failures.map(
    ({ target, scene, error }) => `- ${target}: ${scene}: \`${error.split('\n')[0]!.slice(0, 160)}\``,
  );
  return `\n## What could not be done\n\n${lines.join('\n')}\n`;
}

function markdown(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(heading), line(heading.map(() => '---')), ...rows.map(line)].join('\n');
}
