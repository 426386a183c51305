import { AGENT_WRITERS } from './list.ts';
import { testWriter } from './writer.ts';

for (const writer of AGENT_WRITERS) testWriter(writer);
