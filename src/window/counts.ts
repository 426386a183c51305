/** Sums of what is counted by name. */
export function addCounts<T extends Record<keyof T, number>>(a: T, b: T): T {
  const sum = { ...a } as Record<string, number>;
  for (const [name, count] of Object.entries<number>(b)) sum[name] = (sum[name] ?? 0) + count;
  return sum as T;
}
