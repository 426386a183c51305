import { geminiCli } from '../../scripts/demo/agents.ts';
import { LAST_WORDS } from '../../scripts/demo/task.ts';
import { testAgentInWindow } from './compare.ts';
import { testAgentAtHome } from './home.ts';

testAgentInWindow('gemini-cli', geminiCli, LAST_WORDS);

testAgentAtHome(geminiCli, {
  title: 'Gemini CLI',
  caught: [/^~\/\.gemini\/tmp\/.*\/chats\/.*\.jsonl$/, /^~\/\.gemini\/projects\.json$/],
  real: /^\.gemini\/installation_id$/,
});
