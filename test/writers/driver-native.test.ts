/** The writers again, served by libfuse instead of forget's own engine. */
import { testWriter, type Writer } from './writer.ts';

const python = { interpreter: 'python3', program: 'files.py' };
const node = { interpreter: 'node', program: 'files.mjs' };
const shell = { interpreter: 'sh', program: 'files.sh' };

const writers: Writer[] = [
  { ...python, name: "Python's open in every mode", arguments: ['modes'] },
  {
    ...python,
    name: "Python's os.open, pwrite, ftruncate, fchmod and openat",
    arguments: ['descriptors'],
  },
  { ...python, name: 'Python renaming, linking, truncating and stamping files', arguments: ['names'] },
  { ...python, name: 'Python copying, moving, mapping and replacing files', arguments: ['whole'] },
  { ...python, name: 'Python locking files between processes', arguments: ['locks'] },
  {
    ...python,
    name: 'Python making, moving and removing directory trees',
    arguments: ['trees'],
    comparison: { leaveOut: (path) => path === 'names' },
  },
  { ...node, name: "Node's synchronous fs", arguments: ['sync'] },
  { ...node, name: "Node's fs/promises", arguments: ['promises'] },
  { ...node, name: "Node's streams", arguments: ['streams'] },
  { ...node, name: "Node's fs.watch", arguments: ['watching'] },
  { ...node, name: 'Node making, copying and removing directory trees', arguments: ['trees'] },
  {
    ...shell,
    name: 'a shell with sed, tee, truncate, dd, cp, mv, ln, install and touch',
    arguments: ['targets'],
  },
  {
    ...shell,
    name: 'a shell with mkdir, cp -a, rsync, mv, find -delete and rm -rf on trees',
    arguments: ['trees'],
  },
  {
    interpreter: 'python3',
    program: 'databases.py',
    name: 'SQLite',
    comparison: { contentVaries: (path) => path.endsWith('.db') },
  },
  { interpreter: 'sh', program: 'repository.sh', name: 'git' },
  { interpreter: 'sh', program: 'editors.sh', name: 'editors' },
];

for (const writer of writers) {
  testWriter({
    ...writer,
    name: `${writer.name}, through fuse-native,`,
    comparison: { ...writer.comparison, options: ['--quiet', '--driver', 'fuse-native'] },
  });
}
