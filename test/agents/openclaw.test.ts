import { openclaw } from '../../scripts/demo/agents.ts';
import { users } from '../harness/users.ts';
import { testAgentAtHome } from './home.ts';

const expected = {
  title: 'OpenClaw',
  caught: [
    /^~\/\.openclaw\/agents\/main\/agent\/openclaw-agent\.sqlite$/,
    /^~\/\.openclaw\/state\/openclaw\.sqlite$/,
    // The second where the first is another user's.
    /^(\/tmp\/openclaw|.*\/tmp\/openclaw-\d+)\/openclaw-[\d-]+\.log$/,
  ],
  // Links to the skills that come with it; an empty directory, made so that it can be covered.
  real: /^\.openclaw\/plugin-skills(\/|$)|^\.cache(\/openclaw)?$/,
  besides: ['/tmp/openclaw'],
};

// As one user alone: it is large (830 MB with its node), and takes four times as long as the others.
testAgentAtHome(openclaw, expected, users.slice(0, 1), ['a new home', 'a home with a session']);
