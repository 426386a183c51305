/**
 * Runs a real agent as a person does: `forget exec -- agent`, its home where it is by default, and nothing said about it.
 * After the window the whole home directory is what it was, but for what the preset leaves real.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Agent } from '../../scripts/demo/agents.ts';
import { startMockModel } from '../../scripts/demo/mock-model.ts';
import { agentEnvironment, prepareHome } from '../../scripts/demo/run.ts';
import { LAST_WORDS, PROMPT, task } from '../../scripts/demo/task.ts';
import { createWorkspace } from '../../scripts/demo/workspace.ts';
import { identityDifferences, part, snapshot, type Tree } from '../harness/tree.ts';
import { forgetFor, idsOf, temporaryDirectory, type User, users } from '../harness/users.ts';
import { describeProcess, markedProcesses, type RunResult, runWatched } from '../harness/watchdog.ts';
import { install } from './compare.ts';

export interface AtHome {
  /** As forget names it at the start. */
  title: string;
  /** Paths below the home directory, as the report shows them, of which the window must have caught some. */
  caught: RegExp[];
  /** What the agent may leave: paths relative to the home directory. */
  real: RegExp;
  /** Directories outside of the home in which the preset covers all. */
  besides?: string[];
}

/** A home with nothing but settings, or one in which the agent has run before, bare. */
type Before = 'a new home' | 'a home with a session';

export function testAgentAtHome(
  agent: Agent,
  expected: AtHome,
  by: readonly User[] = users,
  befores: readonly Before[] = ['a new home'],
): void {
  for (const user of by) {
    for (const before of befores) {
      const name = `${expected.title} is recognised, and leaves ${before} as it was, as ${user}`;
      // The first run installs the agent.
      test(name, { timeout: 400_000 }, (context) => runAtHome(context, agent, user, expected, before));
    }
  }
}

async function runAtHome(
  context: TestContext,
  agent: Agent,
  user: User,
  { title, caught, real, besides = [] }: AtHome,
  earlier: Before,
): Promise<void> {
  const program = install(context, agent, user);
  if (program === undefined) return;
  const top = temporaryDirectory('home', user);
  const [home, workspace, temporary] = ['ada', 'work', 'tmp'].map((name) => join(top, name)) as [
    string,
    string,
    string,
  ];
  const model = await startMockModel(task, agent.toolCall);
  try {
    for (const directory of [home, temporary]) mkdirSync(directory);
    prepareHome(agent, join(home, agent.defaultHome), model.url);
    const { [agent.homeVariable]: _, ...env } = agentEnvironment(agent, home, model.url);
    const startAfresh = (): void => {
      rmSync(workspace, { recursive: true, force: true });
      createWorkspace(workspace);
      const { uid, gid } = idsOf(user);
      execFileSync('chown', ['-R', `${uid}:${gid}`, home, workspace, temporary]);
    };
    const answer = async (prefix: readonly string[]): Promise<RunResult> => {
      const result = await runWatched([...prefix, ...program, ...agent.args(PROMPT)], {
        user,
        cwd: workspace,
        env: { ...env, XDG_CONFIG_HOME: '', TMPDIR: temporary, CLAUDE_CODE_TMPDIR: temporary },
        timeout: 120_000,
      });
      const told = `${result.stdout}${result.stderr}`;
      assert.equal(result.code, 0, told);
      assert.ok(told.includes(LAST_WORDS), told);
      return result;
    };
    startAfresh();
    if (earlier === 'a home with a session') {
      await answer([]);
      startAfresh();
    }
    const before = snapshot(home);
    const beside = besides.map(contentsOf);
    const report = join(top, 'report.json');
    const result = await answer([forgetFor(user), 'exec', '--report', report, '--']);
    assert.match(result.stderr, new RegExp(`^forget: covering ${title}: `, 'm'));
    const paths = (JSON.parse(readFileSync(report, 'utf8')) as { protected: { path: string }[] }).protected;
    for (const path of caught) {
      assert.ok(
        paths.some((record) => path.test(record.path)),
        `nothing was caught at ${path}: ${JSON.stringify(paths.map((record) => record.path))}`,
      );
    }
    assert.deepEqual(unexplained(identityDifferences(before, snapshot(home)), real), []);
    besides.forEach((directory, i) => {
      assert.deepEqual(identityDifferences(beside[i]!, contentsOf(directory)), [], directory);
    });
    assert.deepEqual(markedProcesses(result.mark).map(describeProcess), [], 'processes left behind');
    assert.deepEqual(model.unanswered, [], 'requests that the mock model does not know');
  } finally {
    await model.close();
    rmSync(top, { recursive: true, force: true });
  }
}

/** What stands below a directory; a missing one is as good as an empty one. */
function contentsOf(directory: string): Tree {
  return existsSync(directory) ? part(snapshot(directory), Boolean) : new Map();
}

/** Lines about neither what is real nor the times of a directory in which something real stands. */
function unexplained(lines: readonly string[], real: RegExp): string[] {
  const told = lines.map((line) => {
    const [quoted] = /^"(?:[^"\\]|\\.)*"/.exec(line)!;
    return { line, path: JSON.parse(quoted) as string };
  });
  const parents = new Set(
    told
      .filter(({ path }) => real.test(path))
      .map(({ path }) => path.slice(0, Math.max(0, path.lastIndexOf('/')))),
  );
  return told
    .filter(({ path, line }) => !real.test(path) && !(parents.has(path) && /": [cm]time /.test(line)))
    .map(({ line }) => line);
}
