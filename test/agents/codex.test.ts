import { codex } from '../../scripts/demo/agents.ts';
import { LAST_WORDS } from '../../scripts/demo/task.ts';
import { testAgentInWindow } from './compare.ts';

testAgentInWindow('codex', codex('danger-full-access'), LAST_WORDS);
// Its sandbox gives the tools .git read-only, so the commit fails, inside a window as outside.
testAgentInWindow(
  'codex with its own sandbox around each tool',
  codex('workspace-write'),
  LAST_WORDS.replace('committed', '(not found)'),
);
