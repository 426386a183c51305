/**
 * The chart of docs/performance.md: for each workload a row, for each target a mark at its time against native, on a
 * logarithmic axis. Plain SVG, whose colours follow the reader's light or dark theme.
 */
import { ratio } from './figures.ts';
import { type Results, ratioOf } from './page.ts';
import { type Workload, workloads } from './workloads.ts';

const WIDTH = 880;
const LEFT = 230;
const RIGHT = 30;
const TOP = 88;
const ROW = 25;
const BOTTOM = 44;
const LEAST = 0.5;
const MOST = 64;
const TICKS = [0.5, 1, 2, 4, 8, 16, 32, 64];

/** By target: a mark that is told apart without its colour too. */
const marks: Record<string, { class: string; shape: (x: number, y: number) => string }> = {
  forget: { class: 'forget', shape: (x, y) => `<circle cx="${x}" cy="${y}" r="6"/>` },
  'forget-user': { class: 'forget open', shape: (x, y) => `<circle cx="${x}" cy="${y}" r="5"/>` },
  'forget-fuse-native': { class: 'driver', shape: (x, y) => polygon(x, y, [0, -6, 6, 5, -6, 5]) },
  overlayfs: { class: 'kernel', shape: (x, y) => `<path d="M${x} ${y - 7}v14"/>` },
  'fuse-overlayfs': { class: 'peer a', shape: (x, y) => polygon(x, y, [0, -6, 6, 0, 0, 6, -6, 0]) },
  bindfs: { class: 'peer b', shape: (x, y) => `<rect x="${x - 4}" y="${y - 4}" width="8" height="8"/>` },
  mergerfs: { class: 'peer c', shape: (x, y) => `<path d="M${x - 4} ${y - 4}l8 8m0-8l-8 8"/>` },
  'unionfs-fuse': { class: 'peer d', shape: (x, y) => `<path d="M${x - 5} ${y}h10m-5-5v10"/>` },
};

const STYLE = `
  text { font: 12px system-ui, sans-serif; fill: #1f2328 }
  .title { font-size: 15px; font-weight: 600 }
  .small, .tick { font-size: 11px; fill: #59636e }
  .grid { stroke: #d1d9e0; stroke-width: 1 }
  .one { stroke: #1f2328; stroke-width: 1.5 }
  .goal { fill: #1a7f37; opacity: .16 }
  .mark { stroke-width: 2; fill: none }
  .forget { stroke: #0969da; fill: #0969da }
  .open { fill: #ffffff }
  .driver { stroke: #8250df }
  .kernel { stroke: #1a7f37; stroke-width: 3 }
  .peer { stroke: #9a6700 }
  .a { fill: #9a6700 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc }
    .small, .tick { fill: #9198a1 }
    .grid { stroke: #3d444d }
    .one { stroke: #f0f6fc }
    .goal { fill: #3fb950; opacity: .22 }
    .forget { stroke: #4493f8; fill: #4493f8 }
    .open { fill: #0d1117 }
    .driver { stroke: #ab7df8 }
    .kernel { stroke: #3fb950 }
    .peer { stroke: #d29922 }
    .a { fill: #d29922 }
  }
`;

function polygon(x: number, y: number, corners: readonly number[]): string {
  const points = corners.map((value, i) => (i % 2 === 0 ? x : y) + value);
  return `<polygon points="${points.join(' ')}"/>`;
}

/** Times the bare directory's; for a bandwidth its inverse, so that more is always slower. */
function slowness(results: Results, target: string, workload: Workload): number {
  const value = ratioOf(results, target, workload);
  return workload.unit === 'bandwidth' ? 1 / value : value;
}

function across(value: number): number {
  const clamped = Math.min(Math.max(value, LEAST), MOST);
  const part = Math.log2(clamped / LEAST) / Math.log2(MOST / LEAST);
  return Math.round((LEFT + part * (WIDTH - LEFT - RIGHT)) * 10) / 10;
}

export function chart(results: Results): string {
  // A call from the kernel's own cache and one to a daemon are no ratio that a person feels.
  const rows = workloads.filter(
    ({ id, unit }) => unit !== 'call' && results.targets.some(({ name }) => results.figures[name]?.[id]),
  );
  const height = TOP + rows.length * ROW + BOTTOM;
  const targets = results.targets.filter(({ name }) => marks[name]);
  const bottom = TOP + rows.length * ROW;
  const parts = [
    `<text class="title" x="16" y="24">Time against the bare directory</text>`,
    `<text class="small" x="${WIDTH - RIGHT}" y="24" text-anchor="end">further left is better · green: the goal for forget</text>`,
    legend(targets.map(({ name }) => name)),
    ...TICKS.flatMap((tick) => [
      `<path class="${tick === 1 ? 'one' : 'grid'}" d="M${across(tick)} ${TOP - 4}V${bottom}"/>`,
      `<text class="tick" x="${across(tick)}" y="${bottom + 16}" text-anchor="middle">${ratio(tick)}</text>`,
    ]),
    `<text class="small" x="16" y="${bottom + 34}">${footer(results)}</text>`,
    ...rows.flatMap((workload, i) => row(results, workload, TOP + i * ROW + ROW / 2)),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="Time against the bare directory, by workload and filesystem">
<style>${STYLE}</style>
${parts.join('\n')}
</svg>
`;
}

function footer({ machine, rounds }: Results): string {
  return `medians of ${rounds} rounds in turn, ${machine.cpu.replace(/\s+/g, ' ')}, Linux ${machine.kernel.split('-')[0]}, ${machine.filesystem}, ${machine.date}`;
}

function row(results: Results, workload: Workload, y: number): string[] {
  const goal = workload.goal && (workload.unit === 'bandwidth' ? 1 / workload.goal : workload.goal);
  const parts = [`<text x="${LEFT - 14}" y="${y + 4}" text-anchor="end">${workload.title}</text>`];
  if (goal) {
    const x = across(LEAST);
    parts.push(
      `<rect class="goal" x="${x}" y="${y - 9}" width="${(across(goal) - x).toFixed(1)}" height="18"/>`,
    );
  }
  // forget comes last, and so on top.
  for (const { name } of [...results.targets].reverse()) {
    const mark = marks[name];
    const value = slowness(results, name, workload);
    if (!mark || !Number.isFinite(value)) continue;
    const told = `${name}: ${ratio(value)}`;
    parts.push(`<g class="mark ${mark.class}"><title>${told}</title>${mark.shape(across(value), y)}</g>`);
  }
  return parts;
}

function legend(names: readonly string[]): string {
  let x = 22;
  let y = 48;
  const parts: string[] = [];
  for (const name of names) {
    const width = 24 + name.length * 6.6;
    if (x + width > WIDTH - RIGHT) {
      x = 22;
      y += 20;
    }
    const mark = marks[name]!;
    parts.push(
      `<g class="mark ${mark.class}">${mark.shape(x, y - 4)}</g><text x="${x + 11}" y="${y}">${name}</text>`,
    );
    x += width;
  }
  return parts.join('\n');
}
