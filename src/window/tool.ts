/** Runs a small program of the system for what it says, under a time limit: it may touch a mount that hangs. */
import { spawn } from 'node:child_process';

export interface ToolEnd {
  /** Undefined when the program is not installed; null when it was killed, by the time limit or otherwise. */
  code: number | null | undefined;
  stdout: string;
  stderr: string;
}

/** `input` is a byte string for standard input. Messages come in English. */
export function runTool(argv: string[], options: { input?: string; timeoutMs: number }): Promise<ToolEnd> {
  return new Promise((resolve) => {
    const child = spawn(argv[0]!, argv.slice(1), {
      cwd: '/',
      env: { ...process.env, LC_ALL: 'C' },
      // A process group of its own: what hangs may be the program's child (xargs), which would hold the pipes open.
      detached: true,
    });
    // What waits for a FUSE server can be killed by this signal alone.
    const timer = setTimeout(() => child.pid && process.kill(-child.pid, 'SIGKILL'), options.timeoutMs);
    const end: ToolEnd = { code: undefined, stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      end.stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      end.stderr += text;
    });
    // A program that is missing or ends early does not read its input; its end says so.
    child.stdin.on('error', () => {});
    child.stdin.end(Buffer.from(options.input ?? '', 'latin1'));
    child.on('error', () => {
      clearTimeout(timer);
      resolve(end);
    });
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ ...end, code });
    });
  });
}
