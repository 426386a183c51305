/** Runs a small program of the system for what it says, under a time limit: it may touch a mount that hangs. */
import { spawn } from 'node:child_process';

export interface ToolEnd {
  /** Undefined when the program is not installed; null when it was killed, by the time limit or otherwise. */
  code: number | null | undefined;
  stdout: string;
  stderr: string;
}

/** From the kill to the end, which does not come for one that waits for a request that somebody has read. */
const DEATH_MS = 300;

/** `input` is a byte string for standard input. Messages come in English. Resolves shortly after the time limit at the latest. */
export function runTool(argv: string[], options: { input?: string; timeoutMs: number }): Promise<ToolEnd> {
  return new Promise((resolve) => {
    const child = spawn(argv[0]!, argv.slice(1), {
      cwd: '/',
      env: { ...process.env, LC_ALL: 'C' },
      // A process group of its own: what hangs may be the program's child (xargs), which would hold the pipes open.
      detached: true,
    });
    const end: ToolEnd = { code: undefined, stdout: '', stderr: '' };
    const settle = (code: ToolEnd['code']) => {
      clearTimeout(timer);
      resolve({ ...end, code });
    };
    const giveUp = () => {
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
      child.unref();
      settle(null);
    };
    let timer = setTimeout(() => {
      killGroup(child.pid);
      timer = setTimeout(giveUp, DEATH_MS);
    }, options.timeoutMs);
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      end.stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      end.stderr += text;
    });
    // A program that is missing or ends early does not read its input; its end says so.
    child.stdin.on('error', () => {});
    child.stdin.end(Buffer.from(options.input ?? '', 'latin1'));
    child.on('error', () => settle(undefined));
    child.on('close', settle);
  });
}

function killGroup(leader: number | undefined): void {
  try {
    if (leader !== undefined) process.kill(-leader, 'SIGKILL');
  } catch (error) {
    // All of it has ended, and a process that left the group holds the pipes.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
