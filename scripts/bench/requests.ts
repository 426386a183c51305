/** FUSE requests by opcode of an open window, as `forget status` tells them. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export type Requests = Record<string, number>;

const forget = fileURLToPath(new URL('../../bin/forget', import.meta.url));

/** Requests so far of the window over `workspace` (its real path). Throws where there is none. */
export async function requestsSoFar(workspace: string, env: NodeJS.ProcessEnv): Promise<Requests> {
  const { stdout } = await promisify(execFile)(forget, ['status', '--json'], { env });
  const windows = JSON.parse(stdout) as { workspace: string; requests: Requests }[];
  const found = windows.find((window) => window.workspace === workspace);
  if (!found) throw new Error(`no open window over ${workspace}`);
  return found.requests;
}

/** What came between two readings, without the opcodes of which there was none. */
export function difference(before: Requests, after: Requests): Requests {
  const names = Object.keys(after).sort();
  return Object.fromEntries(
    names.map((name) => [name, after[name]! - (before[name] ?? 0)] as const).filter(([, count]) => count > 0),
  );
}
