import { GIT_WRITERS } from './list.ts';
import { testWriter } from './writer.ts';

for (const writer of GIT_WRITERS) testWriter(writer);
