/** The middle of the values, or the mean of the two in the middle; NaN where there is none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** `×1.3`, `×0.52`, `×12`. */
export function ratio(value: number): string {
  return `×${value < 0.995 ? value.toFixed(2) : value < 9.95 ? value.toFixed(1) : value.toFixed(0)}`;
}

export function ratioText(value: number): string {
  return Number.isFinite(value) ? ratio(value) : '–';
}

/** Milliseconds as a person reads them: `9.3 ms`, `120 ms`, `3.4 s`. */
export function time(ms: number): string {
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  return ms < 995 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** A median with its unit; a dash where there is none. */
export function figure({ unit }: { unit: 'time' | 'call' | 'bandwidth' }, value: number): string {
  if (!Number.isFinite(value)) return '–';
  if (unit === 'bandwidth') return `${(value / 1e9).toFixed(2)} GB/s`;
  return unit === 'call' ? `${value.toFixed(value < 10 ? 1 : 0)} µs` : time(value);
}
