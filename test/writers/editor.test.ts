import { testWriter } from './writer.ts';

testWriter({ name: 'vim in each way it saves', interpreter: 'sh', program: 'editors.sh' });
