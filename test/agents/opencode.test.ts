import { opencode } from '../../scripts/demo/agents.ts';
import { users } from '../harness/users.ts';
import { testAgentAtHome } from './home.ts';

const expected = {
  title: 'opencode',
  caught: [/^~\/\.local\/share\/opencode\/opencode\.db/, /^~\/\.local\/share\/opencode\/log/],
  // Its configuration gets a line with a schema; the cache stands for the programs that it may download.
  real: /^\.config\/opencode(\/|$)|^\.cache(\/opencode(\/bin)?)?$/,
};

// It takes four times as long as the others, which are run as both users.
testAgentAtHome(opencode, expected, users.slice(0, 1));
