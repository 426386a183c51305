// Writers of every sort again, with libfuse in place of forget's own engine.
import { testWriter, type Writer } from './writer.ts';

const writers: Writer[] = [
  { name: "Python's open in every mode", interpreter: 'python3', program: 'files.py', arguments: ['modes'] },
  {
    name: "Python's os.open, pwrite, ftruncate, fchmod and openat",
    interpreter: 'python3',
    program: 'files.py',
    arguments: ['descriptors'],
  },
  {
    name: 'Python renaming, linking, truncating and stamping files',
    interpreter: 'python3',
    program: 'files.py',
    arguments: ['names'],
    // Whole milliseconds.
    differs: /^times: /,
  },
  { name: "Node's fs/promises", interpreter: 'node', program: 'files.mjs', arguments: ['promises'] },
  {
    name: 'a shell with sed, tee, truncate, dd, cp, mv, ln, install and touch',
    interpreter: 'sh',
    program: 'files.sh',
    arguments: ['targets'],
    // Whole milliseconds, and no time alone.
    differs: /^\d{4}-\d\d-\d\d |^981173106 |^1 2$/,
  },
  {
    name: 'a shell with mkdir, cp -a, rsync, mv, find -delete and rm -rf on trees',
    interpreter: 'sh',
    program: 'files.sh',
    arguments: ['trees'],
  },
  { name: 'git', interpreter: 'sh', program: 'repository.sh' },
  {
    name: 'SQLite with two processes in each journal mode',
    interpreter: 'python3',
    program: 'databases.py',
    // Two writers take turns as they come.
    comparison: { contentVaries: (path) => path.endsWith('.db') },
  },
];

for (const writer of writers) {
  testWriter({
    ...writer,
    name: `${writer.name}, through fuse-native,`,
    comparison: { ...writer.comparison, options: ['--quiet', '--driver', 'fuse-native'] },
  });
}
