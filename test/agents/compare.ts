/**
 * Runs a real agent on the demo's task, bare and inside a window, at the same path one after the other. The agent's
 * home stands in the workspace and is protected, so that all the state a real agent keeps (transcripts, databases,
 * locks) is written through the window and must be gone after it.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Agent } from '../../scripts/demo/agents.ts';
import { AgentUnavailable, installAgent } from '../../scripts/demo/install.ts';
import { startMockModel } from '../../scripts/demo/mock-model.ts';
import { agentEnvironment, prepareHome } from '../../scripts/demo/run.ts';
import { PROMPT, task } from '../../scripts/demo/task.ts';
import { createWorkspace, SESSION } from '../../scripts/demo/workspace.ts';
import { isProtectedByDefault } from '../harness/protected.ts';
import { equalityDifferences, identityDifferences, part, snapshot, type Tree } from '../harness/tree.ts';
import { checkout, forgetFor, idsOf, temporaryDirectory, type User, users } from '../harness/users.ts';
import { describeProcess, markedProcesses, type RunResult, runWatched } from '../harness/watchdog.ts';

const HOME = '.agent-home';
const MEMORY_WRITES = ['memory/notes.md', 'memory/learned.md', 'DELIVERABLES.md'];

const isProtected = (path: string): boolean =>
  path === HOME || path.startsWith(`${HOME}/`) || isProtectedByDefault(path);
const isUnprotected = (path: string): boolean => !isProtected(path);

interface Run extends RunResult {
  before: Tree;
  after: Tree;
}

/**
 * The same statement for each agent, so that none is held to less than another. `lastWords` is what it says, bare and
 * inside, at the end.
 */
export function testAgentInWindow(title: string, agent: Agent, lastWords: string): void {
  for (const user of users) {
    const name = `${title} runs inside a window as outside, as ${user}, and all its state is gone after it`;
    // The first run installs the agent.
    test(name, { timeout: 400_000 }, (context) => compare(context, agent, user, lastWords));
  }
}

async function compare(context: TestContext, agent: Agent, user: User, lastWords: string): Promise<void> {
  const program = install(context, agent, user);
  if (program === undefined) return;
  const top = temporaryDirectory('agent', user);
  const model = await startMockModel(task, agent.toolCall);
  try {
    const run = (prefix: readonly string[]) => runOnce(agent, user, top, program, model.url, prefix);
    const bare = await run([]);
    const inside = await run([forgetFor(user), 'exec', '--quiet', '--protect', `/${HOME}/`, '--']);

    assert.equal(bare.stdout.trim(), lastWords, bare.stderr);
    assert.equal(bare.code, 0);
    const changed = identityDifferences(bare.before, bare.after).join('\n');
    for (const path of MEMORY_WRITES)
      assert.match(changed, new RegExp(`^"${path}": `, 'm'), 'bare, it writes this');
    assert.match(changed, /\.jsonl": /, 'bare, it writes a transcript');

    assert.equal(inside.stdout, bare.stdout, inside.stderr);
    assert.deepEqual([inside.code, inside.signal], [bare.code, bare.signal]);
    const [before, after] = [part(inside.before, isProtected), part(inside.after, isProtected)];
    assert.deepEqual(identityDifferences(before, after), [], 'the protected part of the lower');
    const unprotected = equalityDifferences(
      part(bare.after, isUnprotected),
      part(inside.after, isUnprotected),
      // git's index holds inode numbers and times, which differ between any two runs.
      (path, field) => path === '.git/index' && field === 'content',
    );
    assert.deepEqual(unprotected, [], 'the unprotected part, bare against inside');
    assert.notEqual(
      inside.after.get('src/greeting.js')?.content,
      inside.before.get('src/greeting.js')?.content,
    );
    assert.deepEqual(markedProcesses(inside.mark).map(describeProcess), [], 'processes left behind');
    assert.deepEqual(model.unanswered, [], 'requests that the mock model does not know');
  } finally {
    await model.close();
    rmSync(top, { recursive: true, force: true });
  }
}

/** Skips the test where the agent is not to be had; test/run.ts makes that a failure where CI=true. */
export function install(context: TestContext, agent: Agent, user: User): string[] | undefined {
  let program: string[];
  try {
    program = installAgent(agent, (line) => context.diagnostic(line));
  } catch (error) {
    if (!(error instanceof AgentUnavailable)) throw error;
    context.skip(error.message);
    return undefined;
  }
  if (forgetFor(user).startsWith(checkout)) return program;
  // The ordinary user cannot read this checkout, and so neither the agent in it.
  const file = program.pop()!;
  const [installed, inside] = file.split('/node_modules/', 2) as [string, string];
  const copy = temporaryDirectory('program', user);
  execFileSync('cp', ['-a', '--', installed, copy]);
  return [...program, join(copy, basename(installed), 'node_modules', inside)];
}

async function runOnce(
  agent: Agent,
  user: User,
  top: string,
  program: readonly string[],
  modelUrl: string,
  prefix: readonly string[],
): Promise<Run> {
  const workspace = join(top, 'workspace');
  const temporary = join(top, 'tmp');
  const home = join(workspace, HOME);
  for (const directory of [workspace, temporary]) rmSync(directory, { recursive: true, force: true });
  mkdirSync(temporary);
  createWorkspace(workspace);
  prepareHome(agent, home, modelUrl);
  const { uid, gid } = idsOf(user);
  execFileSync('chown', ['-R', `${uid}:${gid}`, workspace, temporary]);
  const before = snapshot(workspace);
  const result = await runWatched([...prefix, ...program, ...agent.args(PROMPT, SESSION)], {
    user,
    cwd: workspace,
    env: { ...agentEnvironment(agent, home, modelUrl), TMPDIR: temporary },
  });
  return { ...result, before, after: snapshot(workspace) };
}
