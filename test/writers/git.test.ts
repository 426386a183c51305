import { testWriter } from './writer.ts';

testWriter({
  name: 'git with branches and tags named like logs and memory',
  interpreter: 'sh',
  program: 'repository.sh',
});
