/** FUSE requests by opcode of an open window, asked of its control socket, which costs none. */
import { request } from '../../src/window/control.ts';

export type Requests = Record<string, number>;

/** Requests so far of the window with this id. Throws where there is none. */
export async function requestsSoFar(window: string): Promise<Requests> {
  return (await request(window, 'status', {})).requests;
}

/** What came between two readings, without the opcodes of which there was none. */
export function difference(before: Requests, after: Requests): Requests {
  const names = Object.keys(after).sort();
  return Object.fromEntries(
    names.map((name) => [name, after[name]! - (before[name] ?? 0)] as const).filter(([, count]) => count > 0),
  );
}
