/** `npm run requests`: counts and compares, by hand. With `--update` the counts become the expected ones. */
import { openDevFuse } from '../harness/dev-fuse.ts';
import { users } from '../harness/users.ts';
import { differences, readExpected, verdict, writeExpected } from './comparison.ts';
import { countLeast } from './count.ts';

await openDevFuse();
if (process.argv.includes('--update')) {
  writeExpected(await countLeast(users[0]!, 3));
} else {
  const expected = readExpected();
  for (const [title, requests] of Object.entries(await countLeast(users[0]!, 1))) {
    const all = Object.entries(requests).map(([opcode, count]) => `${opcode} ${count}`);
    console.log(`${title}: ${all.join(', ') || 'none'}`);
    const found = verdict(title, differences(title, expected, requests));
    if (found) console.log(found);
  }
}
