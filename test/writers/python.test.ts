import { PYTHON_WRITERS } from './list.ts';
import { testWriter } from './writer.ts';

for (const writer of PYTHON_WRITERS) testWriter(writer);
