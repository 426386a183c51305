/**
 * `npm run demo`: a real agent does the same task twice on the same workspace, once bare and once under
 * `forget exec`, and this prints what each run left on disk. Needs no model and, once the agent is installed, no
 * network. Exit code 0 when forget kept its promise, 1 when it did not, 2 when the demo could not be run.
 */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pi } from './agents.ts';
import { installAgent } from './install.ts';
import { startMockModel } from './mock-model.ts';
import { table } from './table.ts';
import { PROMPT, task } from './task.ts';
import { runTrial, type Trial } from './trial.ts';
import { brokenPromises, isProtected } from './verdict.ts';

const forget = fileURLToPath(new URL('../../bin/forget', import.meta.url));
/** `forget exec` failed itself, before the agent ran: see its message, not the agent. */
const FORGET_FAILED = 125;

async function main(): Promise<number> {
  const program = installAgent(pi, console.log);
  const model = await startMockModel(task, pi.toolCall);
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'forget-demo-')));
  try {
    const trial = (prefix: readonly string[]): Promise<Trial> =>
      runTrial({ agent: pi, program, modelUrl: model.url, scratch, prefix });
    console.log(`A person asks the agent (pi, scripted by a mock model on loopback):\n\n  ${PROMPT}\n`);
    const bare = await trial([]);
    printRun('$ pi --print "..."', bare);
    const window = await trial([forget, 'exec', '--']);
    printRun('$ forget exec -- pi --print "..."', window);
    if (window.result.code === FORGET_FAILED) return 2;
    console.log(`What each run left on disk:\n\n${comparison(bare, window)}\n`);
    const broken = brokenPromises(bare, window);
    for (const line of broken) console.log(`BROKEN: ${line}`);
    if (broken.length > 0) return 1;
    console.log(
      'Both agents read the memory, said the same, and left the same source and the same commit.\n' +
        'Under forget exec every protected path is what it was: bytes, mode, owner, times, inode number.',
    );
    return 0;
  } finally {
    await model.close();
    rmSync(scratch, { recursive: true, force: true });
  }
}

function printRun(command: string, { result }: Trial): void {
  const seconds = (result.milliseconds / 1000).toFixed(1);
  const ended = result.signal ? `ended by ${result.signal}` : `exit code ${result.code}`;
  const output = [result.stdout, result.stderr].map((text) => text.trim()).filter((text) => text !== '');
  const indented = output.join('\n').replace(/^(?=.)/gm, '  ');
  console.log(`${command}   (${ended}, ${seconds} s)\n${indented}\n`);
}

/** One row for each file and for the last commit; a * marks what forget protects by default. */
function comparison(bare: Trial, window: Trial): string {
  const paths = [...new Set([...bare.before.keys(), ...bare.after.keys(), ...window.after.keys()])].sort();
  const isFile = (path: string): boolean =>
    [bare.before, bare.after, window.after].some((entries) => entries.get(path)?.kind === 'file');
  const rows = paths
    .filter(isFile)
    .map((path) => [
      `${isProtected(path) ? '*' : ' '} ${path}`,
      bytes(bare.before.get(path)?.size),
      changeOf(path, bare),
      changeOf(path, window),
    ]);
  const commits = [
    '  last commit',
    bare.headBefore.slice(0, 7),
    bare.head.slice(0, 7),
    window.head.slice(0, 7),
  ];
  return table(['* = protected', 'before', 'after, bare', 'after, forget exec'], [...rows, commits]);
}

function changeOf(path: string, { before, after, changed }: Trial): string {
  const [old, now] = [before.get(path), after.get(path)];
  if (!old && !now) return '-';
  if (!changed.includes(path)) return 'unchanged';
  const change = !old ? 'created' : !now ? 'deleted' : 'modified';
  return `${change.padEnd(9)} ${bytes(now?.size)}`.trimEnd();
}

function bytes(size: number | undefined): string {
  return size === undefined ? '-' : `${size} B`;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`demo: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 2;
}
