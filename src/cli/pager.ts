/** Text for a person: through their pager on a terminal, and plainly otherwise. */
import { spawn } from 'node:child_process';
import { findCommand } from '../window/command.ts';

/** Resolves when it has been read, or the reader went away. */
export async function page(text: Buffer): Promise<void> {
  const pager = process.stdout.isTTY ? pagerCommand() : undefined;
  if (pager === undefined) return writePlainly(text);
  const child = spawn('sh', ['-c', pager], {
    stdio: ['pipe', 'inherit', 'inherit'],
    // As git: one screen is not paged, colours pass, and the screen stays.
    env: { LESS: 'FRX', LV: '-c', ...process.env },
  });
  // Ctrl-C is for the pager.
  const ignore = () => {};
  process.on('SIGINT', ignore);
  child.stdin.on('error', () => {});
  child.stdin.end(text);
  await new Promise<void>((resolve) => {
    child.once('error', () => resolve());
    child.once('close', () => resolve());
  });
  process.off('SIGINT', ignore);
}

function writePlainly(text: Buffer): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.once('error', () => resolve());
    process.stdout.write(text, () => resolve());
  });
}

function pagerCommand(): string | undefined {
  const chosen = process.env.PAGER;
  if (chosen !== undefined) return chosen === '' || chosen === 'cat' ? undefined : chosen;
  return 'path' in findCommand('less', process.env.PATH, '/') ? 'less' : undefined;
}
