/** `npm run requests`: counts and compares, by hand. With `--update` the counts become the expected ones. */
import { openDevFuse } from '../harness/dev-fuse.ts';
import { users } from '../harness/users.ts';
import { differences, readExpected, thisKernel, verdict, writeExpected } from './comparison.ts';
import { countRequests } from './count.ts';

await openDevFuse();
const counted = await countRequests(users[0]!);
if (process.argv.includes('--update')) {
  writeExpected(counted);
} else {
  const { kernel, counts } = readExpected();
  for (const [title, requests] of Object.entries(counted)) {
    const all = Object.entries(requests).map(([opcode, count]) => `${opcode} ${count}`);
    console.log(`${title}: ${all.join(', ') || 'none'}`);
    const found = verdict(title, differences(counts[title] ?? {}, requests, kernel === thisKernel()));
    if (found) console.log(found);
  }
}
