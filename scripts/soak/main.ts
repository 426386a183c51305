/**
 * `npm run soak -- [--minutes 30] [--user root|ordinary] [--processes 8] [--seed TEXT]`: prints a line for each sample,
 * and what went wrong. Exit code 1 where anything did.
 */
import { parseArgs } from 'node:util';
import { openDevFuse } from '../../test/harness/dev-fuse.ts';
import type { User } from '../../test/harness/users.ts';
import { growthOf } from './samples.ts';
import { soak } from './soak.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    user: { type: 'string', default: process.getuid!() === 0 ? 'root' : 'ordinary' },
    processes: { type: 'string', default: '8' },
    seed: { type: 'string', default: `${Date.now()}` },
  },
});
const mib = (bytes: number) => (bytes / (1 << 20)).toFixed(1);

await openDevFuse();
console.log(`seed ${values.seed}\nseconds  RSS (MiB)  descriptors  nodes  requests`);
const { samples, wrong, ...beside } = await soak({
  seconds: Number(values.minutes) * 60,
  user: values.user as User,
  processes: Number(values.processes),
  seed: values.seed,
  sampleEverySeconds: 10,
  onSample: ({ seconds, rss, descriptors, nodes, requests }) =>
    console.log([seconds, mib(rss), descriptors, nodes, requests].join('  ')),
});
const growth = growthOf(samples);
console.log(
  `beside: ${JSON.stringify(beside)}\nsecond and last third, medians: RSS ${growth.rss.map(mib).join(' and ')} MiB, ` +
    `${growth.descriptors.join(' and ')} descriptors, ${growth.nodes.join(' and ')} nodes`,
);
for (const line of wrong) console.log(`WRONG: ${line}`);
console.log(wrong.length === 0 ? 'all went well' : `${wrong.length} things went wrong`);
process.exitCode = wrong.length === 0 ? 0 : 1;
