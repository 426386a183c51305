import { testWriter } from './writer.ts';

const shell = { interpreter: 'sh', program: 'files.sh' };

testWriter({
  ...shell,
  name: 'a shell with sed, tee, truncate, dd, cp, mv, ln, install and touch',
  arguments: ['targets'],
});
testWriter({
  ...shell,
  name: 'a shell with mkdir, cp -a, rsync, mv, find -delete and rm -rf on trees',
  arguments: ['trees'],
});
