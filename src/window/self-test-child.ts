/** The self-test of `forget mount`, which starts no command that could make it. */
import { spawn } from 'node:child_process';
import { Failure } from './failure.ts';
import { canariesScript, type Outcome, outcomesIn } from './gate.ts';

/** `$2` from octal escapes. A command substitution takes newlines from the end, but the path ends in a name of ours. */
const UNESCAPE = 'path=$(printf %b "$2") && set -- "$1" "$path" || exit';

const ANSWER_WITHIN_MS = 30_000;

/**
 * Runs the test in a shell, which has no descriptor of the device. `path` is the canary's in the view, a byte string,
 * absolute. Undefined where the shell ended before it was through; throws a Failure when there is no answer in time.
 */
export function testInChild(path: string, token: string): Promise<Outcome | undefined> {
  // Node's own arguments are text; the shell makes bytes of it.
  const escaped = path.replace(
    /[^A-Za-z0-9/._-]/g,
    (c) => `\\0${c.charCodeAt(0).toString(8).padStart(3, '0')}`,
  );
  const child = spawn('/bin/sh', ['-c', `${UNESCAPE}\n${canariesScript(2, 1)}`, 'forget', token, escaped], {
    cwd: '/',
    env: {},
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return new Promise((resolve, reject) => {
    let said = '';
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      child.stdout.destroy();
      child.unref();
      reject(new Failure('the self-test failed: the filesystem does not answer; nothing was started'));
    }, ANSWER_WITHIN_MS);
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString('latin1');
    });
    child.once('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.once('close', () => {
      clearTimeout(timer);
      resolve(outcomesIn(said, 1)?.[0]);
    });
  });
}
