/** Runs one agent on the task in a workspace, in an environment made for it: nothing of the person's own. */
import { spawn } from 'node:child_process';
import { delimiter, dirname } from 'node:path';
import type { Agent } from './agents.ts';
import { PROMPT } from './task.ts';
import { GIT_ENV, writeTree } from './workspace.ts';

export interface AgentRun {
  agent: Agent;
  /** What `installAgent` gave. */
  program: readonly string[];
  modelUrl: string;
  workspace: string;
  /** A throwaway directory for the agent's configuration and state; see `prepareHome`. */
  home: string;
  /** What the agent's command line is appended to: `[]` runs it bare. */
  prefix: readonly string[];
  /** The transcript to go on with, relative to the workspace, for an agent that takes one. */
  session: string;
  /** Milliseconds until the agent, and all in its process group, are killed. */
  timeout: number;
}

export interface AgentResult {
  /** null after a signal. */
  code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
  milliseconds: number;
}

/** Writes the agent's configuration into its home, so that the model it asks is the one on loopback. */
export function prepareHome(agent: Agent, home: string, modelUrl: string): void {
  writeTree(home, agent.homeFiles(modelUrl));
}

/** The variables that make a run repeatable and keep it out of the person's own configuration. */
export function agentEnvironment(agent: Agent, home: string, modelUrl: string): Record<string, string> {
  return { HOME: home, NO_COLOR: '1', ...GIT_ENV, [agent.homeVariable]: home, ...agent.env(modelUrl) };
}

export function runAgent(run: AgentRun): Promise<AgentResult> {
  const argv = [...run.prefix, ...run.program, ...run.agent.args(PROMPT, run.session)];
  const started = performance.now();
  const child = spawn(argv[0]!, argv.slice(1), {
    cwd: run.workspace,
    env: environment(run),
    stdio: ['ignore', 'pipe', 'pipe'],
    // A process group of its own, so that the watchdog ends the agent's tools along with it.
    detached: true,
  });
  const killGroup = (): void => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  };
  return new Promise((resolve, reject) => {
    const output: Record<'stdout' | 'stderr', string> = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        output[name] += text;
      });
    }
    const watchdog = setTimeout(() => {
      output.stderr += `\nkilled: still running after ${run.timeout} ms\n`;
      killGroup();
    }, run.timeout);
    const onInterrupt = (): void => {
      killGroup();
      finish();
      reject(new Error('interrupted'));
    };
    process.once('SIGINT', onInterrupt);
    const finish = (): void => {
      clearTimeout(watchdog);
      process.off('SIGINT', onInterrupt);
    };
    child.once('error', (error) => {
      finish();
      reject(new Error(`cannot start ${argv[0]}: ${error.message}`));
    });
    child.once('close', (code, signal) => {
      finish();
      resolve({ code, signal, ...output, milliseconds: Math.round(performance.now() - started) });
    });
  });
}

function environment(run: AgentRun): Record<string, string> {
  const { PATH = '' } = process.env;
  return {
    PATH: [dirname(process.execPath), PATH].join(delimiter),
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    ...agentEnvironment(run.agent, run.home, run.modelUrl),
  };
}
