import { SHELL_WRITERS } from './list.ts';
import { testWriter } from './writer.ts';

for (const writer of SHELL_WRITERS) testWriter(writer);
