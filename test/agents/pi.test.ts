import { pi } from '../../scripts/demo/agents.ts';
import { LAST_WORDS } from '../../scripts/demo/task.ts';
import { testAgentInWindow } from './compare.ts';
import { testAgentAtHome } from './home.ts';

testAgentInWindow('the pi agent', pi, LAST_WORDS);

testAgentAtHome(pi, {
  title: 'pi',
  caught: [/^~\/\.pi\/agent\/sessions\/.*\.jsonl$/],
  real: /^\.pi\/agent\/auth\.json$/,
});
