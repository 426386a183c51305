import { testWriter } from './writer.ts';

const python = { interpreter: 'python3', program: 'files.py' };

testWriter({ ...python, name: "Python's open in every mode", arguments: ['modes'] });
testWriter({
  ...python,
  name: "Python's os.open, pwrite, ftruncate, fchmod and openat",
  arguments: ['descriptors'],
});
testWriter({
  ...python,
  name: 'Python renaming, linking, truncating and stamping files',
  arguments: ['names'],
});
testWriter({ ...python, name: 'Python copying, moving, mapping and replacing files', arguments: ['whole'] });
testWriter({ ...python, name: 'Python locking files between processes', arguments: ['locks'] });
testWriter({
  ...python,
  name: 'Python making, moving and removing directory trees',
  arguments: ['trees'],
  // The program moves the directory away; its protected file stays in the lower, and so the directory with it.
  comparison: { leaveOut: (path) => path === 'names' },
});
