import { NODE_WRITERS } from './list.ts';
import { testWriter } from './writer.ts';

for (const writer of NODE_WRITERS) testWriter(writer);
