import { EDITOR_WRITERS } from './list.ts';
import { testWriter } from './writer.ts';

for (const writer of EDITOR_WRITERS) testWriter(writer);
