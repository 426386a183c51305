export const chart = (_: unknown): string => '';
