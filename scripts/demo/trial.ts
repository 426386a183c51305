/** A trial: an agent does the task once in a fresh workspace, and the workspace is looked at before and after. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Agent } from './agents.ts';
import { type AgentResult, prepareHome, runAgent } from './run.ts';
import { changedPaths, createWorkspace, type Entry, git, SESSION, snapshot } from './workspace.ts';

export interface TrialPlan {
  agent: Agent;
  program: readonly string[];
  modelUrl: string;
  /** An existing directory for the workspace, the same in the trials to be compared: paths are in their output. */
  scratch: string;
  /** Empty for a bare run. */
  prefix: readonly string[];
}

export interface Trial {
  result: AgentResult;
  before: Map<string, Entry>;
  after: Map<string, Entry>;
  /** Paths whose bytes, kind, mode, owner, times, links or inode number differ. */
  changed: string[];
  /** The id of the last commit, before and after. */
  headBefore: string;
  head: string;
  /** `git status --porcelain`. */
  uncommitted: string;
}

const TIMEOUT_MS = 60_000;

export async function runTrial(plan: TrialPlan): Promise<Trial> {
  const workspace = join(plan.scratch, 'workspace');
  const home = join(plan.scratch, 'home');
  try {
    createWorkspace(workspace);
    prepareHome(plan.agent, home, plan.modelUrl);
    const before = snapshot(workspace);
    const headBefore = git(workspace, 'rev-parse', 'HEAD');
    const { agent, program, modelUrl, prefix } = plan;
    const paths = { workspace, home, session: SESSION };
    const result = await runAgent({ agent, program, modelUrl, prefix, ...paths, timeout: TIMEOUT_MS });
    const after = snapshot(workspace);
    return {
      result,
      before,
      after,
      changed: changedPaths(before, after),
      headBefore,
      head: git(workspace, 'rev-parse', 'HEAD'),
      uncommitted: git(workspace, 'status', '--porcelain'),
    };
  } finally {
    for (const directory of [workspace, home]) rmSync(directory, { recursive: true, force: true });
  }
}
