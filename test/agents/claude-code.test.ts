import { claudeCode } from '../../scripts/demo/agents.ts';
import { testAgentAtHome } from './home.ts';

testAgentAtHome(claudeCode, {
  title: 'Claude Code',
  caught: [
    /^~\/\.claude\/projects\/[^/]+\/[^/]+\.jsonl$/,
    /^~\/\.claude\/sessions$/,
    /^~\/\.claude\/plugins\/store$/,
  ],
  // Beside its home: what it keeps of the machine and of itself.
  real: /^\.claude\.json$|^\.claude\/plugins$/,
});
