import { pi } from '../../scripts/demo/agents.ts';
import { LAST_WORDS } from '../../scripts/demo/task.ts';
import { testAgentInWindow } from './compare.ts';

testAgentInWindow('the pi agent', pi, LAST_WORDS);
