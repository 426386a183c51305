import { testWriter } from './writer.ts';

testWriter({
  name: 'SQLite with two processes in each journal mode, on old, new and hot databases',
  interpreter: 'python3',
  program: 'databases.py',
  // Two writers take turns as they come: the rows' order differs from run to run.
  comparison: { contentVaries: (path) => path.endsWith('.db') },
});
