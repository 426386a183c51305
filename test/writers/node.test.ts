import { testWriter } from './writer.ts';

const node = { interpreter: 'node', program: 'files.mjs' };

testWriter({ ...node, name: "Node's synchronous fs", arguments: ['sync'] });
testWriter({ ...node, name: "Node's fs/promises", arguments: ['promises'] });
testWriter({ ...node, name: "Node's streams", arguments: ['streams'] });
testWriter({ ...node, name: "Node's fs.watch", arguments: ['watching'] });
testWriter({ ...node, name: 'Node making, copying and removing directory trees', arguments: ['trees'] });
