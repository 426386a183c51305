import { table } from '../demo/table.ts';
import type { Machine } from './machine.ts';
import type { Measurements } from './measure.ts';
import { median } from './statistics.ts';
import type { Sort } from './targets.ts';
import { workloads } from './workloads.ts';

export interface Results extends Measurements {
  machine: Machine;
  rounds: number;
  targets: { name: string; sort: Sort; about: string }[];
}
export function summary(r: Results): string {
  const rows = workloads
    .filter(({ id }) => r.targets.some(({ name }) => r.figures[name]?.[id]))
    .map((w) => [
      w.title,
      ...r.targets.map(({ name }) => {
        const m = median(r.figures[name]?.[w.id] ?? []);
        return w.unit === 'bandwidth' ? (m / 1e9).toFixed(2) : m.toFixed(1);
      }),
    ]);
  return (
    table(['', ...r.targets.map(({ name }) => name)], rows) +
    '\n' +
    JSON.stringify(Object.fromEntries(Object.entries(r.starts).map(([k, v]) => [k, median(v)])))
  );
}
export const page = summary;
