// Runs inside what is measured, one for each mount: takes steps as JSON lines and answers each with what it took. The
// same for every target, so that starting a program costs all of them the same.
import { spawnSync } from 'node:child_process';
import { closeSync, lstatSync, mkdirSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';

const BLOCK = 1 << 20;
const block = Buffer.alloc(BLOCK, 'x');
const now = () => Number(process.hrtime.bigint()) / 1e6;

const steps = {
  /** Returns the window this runs in, if it does. */
  window() {
    return process.env.FORGET_WINDOW;
  },
  run({ argv, cwd }) {
    const { status, signal, error, stderr } = spawnSync(argv[0], argv.slice(1), {
      cwd,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    if (error) throw error;
    if (status !== 0) throw new Error(`${argv.join(' ')}: exit ${status ?? signal}: ${stderr}`);
  },
  read({ path }) {
    const fd = openSync(path, 'r');
    while (readSync(fd, block, 0, BLOCK) > 0);
    closeSync(fd);
  },
  write({ path, bytes }) {
    const fd = openSync(path, 'wx');
    for (let left = bytes; left > 0; left -= BLOCK) writeSync(fd, block, 0, Math.min(BLOCK, left));
    closeSync(fd);
  },
  create({ directory, count, bytes }) {
    mkdirSync(directory);
    const content = block.subarray(0, bytes);
    for (let i = 0; i < count; i++) writeFileSync(`${directory}/file-${i}`, content);
  },
  /** Returns each call's own time. */
  stat({ paths }) {
    return paths.map((path) => {
      const begun = now();
      lstatSync(path);
      return now() - begun;
    });
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { step, ...args } = JSON.parse(line);
  const begun = now();
  let answer;
  try {
    const value = steps[step](args);
    answer = { ms: now() - begun, value };
  } catch (error) {
    answer = { error: String(error?.message ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
