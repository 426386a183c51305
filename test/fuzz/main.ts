/**
 * `npm run fuzz -- [--seed N] [--operations M] [--mode MODE] [--user USER] [--minutes X] [--no-shrink]`: runs seeds
 * one after the other over modes and users until one is wrong or the time is over. A seed given runs once.
 */
import { parseArgs } from 'node:util';
import { openDevFuse } from '../harness/dev-fuse.ts';
import { type User, users } from '../harness/users.ts';
import { describe } from './describe.ts';
import { generate, MODES, type Mode, runSequence } from './fuzz.ts';
import { shrink } from './shrink.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    operations: { type: 'string', default: '400' },
    mode: { type: 'string' },
    user: { type: 'string' },
    minutes: { type: 'string', default: '1' },
    shrink: { type: 'boolean', default: true },
  },
  allowNegative: true,
});

function oneOf<T extends string>(
  value: string | undefined,
  allowed: readonly T[],
  option: string,
): readonly T[] {
  if (value === undefined) return allowed;
  const found = allowed.filter((one) => one === value);
  if (found.length === 0) throw new Error(`--${option} is one of ${allowed.join(', ')}`);
  return found;
}

const modes: readonly Mode[] = oneOf(values.mode, MODES, 'mode');
const as: readonly User[] = oneOf(values.user, users, 'user');
const until = Date.now() + Number(values.minutes) * 60_000;
let seed = values.seed === undefined ? Date.now() % 1_000_000_000 : Number(values.seed);
let failed = false;

await openDevFuse();
do {
  for (const mode of modes) {
    for (const user of as) {
      const sequence = generate(seed, Number(values.operations), mode, user);
      const finding = await runSequence(sequence);
      console.log(describe(sequence, finding));
      if (finding.wrong.length === 0) continue;
      failed = true;
      if (!values.shrink) continue;
      const smaller = await shrink(sequence, finding);
      console.log(describe(smaller.sequence, smaller.finding));
    }
  }
  seed++;
} while (values.seed === undefined && !failed && Date.now() < until);
process.exitCode = failed ? 1 : 0;
