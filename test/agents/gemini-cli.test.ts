import { geminiCli } from '../../scripts/demo/agents.ts';
import { LAST_WORDS } from '../../scripts/demo/task.ts';
import { testAgentInWindow } from './compare.ts';

testAgentInWindow('gemini-cli', geminiCli, LAST_WORDS);
