import { SQLITE_WRITERS } from './list.ts';
import { testWriter } from './writer.ts';

for (const writer of SQLITE_WRITERS) testWriter(writer);
