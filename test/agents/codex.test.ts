import { codex } from '../../scripts/demo/agents.ts';
import { LAST_WORDS } from '../../scripts/demo/task.ts';
import { testAgentInWindow } from './compare.ts';
import { testAgentAtHome } from './home.ts';

testAgentInWindow('codex', codex('danger-full-access'), LAST_WORDS);
// Its sandbox gives the tools .git read-only, so the commit fails, inside a window as outside.
testAgentInWindow(
  'codex with its own sandbox around each tool',
  codex('workspace-write'),
  LAST_WORDS.replace('committed', '(not found)'),
);

testAgentAtHome(codex('danger-full-access'), {
  title: 'Codex',
  caught: [/^~\/\.codex\/sessions\/.*\.jsonl$/, /^~\/\.codex\/state_\d+\.sqlite$/],
  // The skills that come with it.
  real: /^\.codex\/(installation_id$|skills(\/\.system(\/|$)|$))/,
});
