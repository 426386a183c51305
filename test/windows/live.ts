/**
 * A workspace that is mounted beside itself, without a window, and its windows by the control socket: the form of the
 * tests here. The lower can be looked at all the while.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { request, type WindowStatus } from '../../src/window/control.ts';
import type { WindowReport } from '../../src/window/report.ts';
import { withWorkspace } from '../cases/window.ts';
import type { Workspace, WorkspaceShape } from '../harness/forget.ts';
import { Machine } from '../harness/machine.ts';
import { environmentOf, forgetFor, idsOf, readableFor, type User, users } from '../harness/users.ts';
import { forgetMounts, MARK, newMark, processesWith, runWatched, signalAll } from '../harness/watchdog.ts';

export interface Live {
  workspace: Workspace;
  /** Where it is mounted. */
  view: string;
  open(name?: string): Promise<string>;
  close(name?: string): Promise<WindowReport>;
  status(): Promise<WindowStatus>;
  forget(...argv: string[]): ReturnType<typeof runWatched>;
  /** A process in the view, of the workspace's user. */
  agent(): Promise<Agent>;
}

export interface LiveOptions {
  /** Of `forget mount`; the directory is what the workspace stands in. */
  options?: (top: string) => readonly string[];
  shape?: WorkspaceShape;
  users?: readonly User[];
}

export function onMount(title: string, body: (live: Live) => Promise<void>, given: LiveOptions = {}): void {
  withWorkspace(
    title,
    async (workspace) => {
      const mark = newMark();
      const machine = workspace.user === 'ordinary' ? new Machine('') : undefined;
      const agents: Agent[] = [];
      try {
        const stage = { workspace, machine, mark };
        await act(stage, given.options?.(workspace.top) ?? [], agents, body);
      } finally {
        for (const agent of agents) await agent.end();
        signalAll(processesWith('FORGET_TEST_MOUNT', mark), 'SIGKILL');
        machine?.end();
        for (const { mountpoint } of forgetMounts([process.pid])) {
          if (mountpoint.startsWith(workspace.top)) execFileSync('umount', ['-l', mountpoint]);
        }
      }
    },
    { users: given.users ?? ['root'], ...(given.shape && { shape: given.shape }) },
  );
}

interface Stage {
  workspace: Workspace;
  /** Where an ordinary user may mount. */
  machine: Machine | undefined;
  mark: string;
}

async function lineOf({ workspace, machine }: Stage, argv: readonly string[]): Promise<string[]> {
  return machine ? machine.line(idsOf(workspace.user).uid, argv) : [...argv];
}

async function act(
  stage: Stage,
  options: readonly string[],
  agents: Agent[],
  body: (live: Live) => Promise<void>,
): Promise<void> {
  const { workspace, machine, mark } = stage;
  const view = join(workspace.top, 'view');
  mkdirSync(view);
  const { uid, gid } = idsOf(workspace.user);
  chownSync(view, uid, gid);
  const forget = async (...argv: string[]) =>
    runWatched(await lineOf(stage, [forgetFor(workspace.user), ...argv]), {
      user: machine ? users[0]! : workspace.user,
      cwd: '/',
      timeout: 20_000,
      env: environmentOf(workspace.user, { FORGET_TEST_MOUNT: mark }),
    });
  const mounted = await forget('mount', '--json', '--no-window', ...options, workspace.path, view);
  assert.equal(mounted.code, 0, mounted.stderr);
  const { id } = JSON.parse(mounted.stdout) as { id: string };
  await body({
    workspace,
    view,
    open: async (name) => (await request(id, 'open', name === undefined ? {} : { name })).name,
    close: async (name) => (await request(id, 'close', name === undefined ? {} : { name })).report,
    status: () => request(id, 'status', {}),
    forget,
    agent: async () => {
      const argv = ['python3', '-u', readableFor(workspace.user, program), view];
      const agent = new Agent(workspace, await lineOf(stage, argv));
      agents.push(agent);
      return agent;
    },
  });
  for (const agent of agents) await agent.end();
  const unmounted = await forget('unmount', view);
  assert.equal(unmounted.code, 0, unmounted.stderr);
  assert.doesNotMatch(unmounted.stderr, /internal error/);
  for (let i = 0; i < 60 && processesWith('FORGET_TEST_MOUNT', mark).length > 0; i++) await delay(50);
  assert.deepEqual(processesWith('FORGET_TEST_MOUNT', mark), [], 'a process is left');
}

const program = fileURLToPath(new URL('./agent.py', import.meta.url));

/** A Python process that goes on from line to line, with all that it has open. */
export class Agent {
  private readonly child;
  private readonly answers;
  private readonly mark = newMark();

  constructor(workspace: Workspace, [command, ...rest]: readonly string[]) {
    workspace.marks.push(this.mark);
    this.child = spawn(command!, rest, {
      cwd: '/',
      env: environmentOf(workspace.user, { [MARK]: this.mark }),
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.answers = createInterface(this.child.stdout)[Symbol.asyncIterator]();
  }

  /** Runs Python in it, and returns what that printed; `failed` is in it for an exception. */
  async does(source: string): Promise<string> {
    this.child.stdin.write(`${JSON.stringify(source)}\n`);
    const { value } = await this.answers.next();
    if (value === undefined) throw new Error('the agent has ended');
    const answer = JSON.parse(value) as { said?: string; failed?: string };
    return answer.said?.trimEnd() ?? `failed ${answer.failed}`;
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null) return;
    this.child.stdin.end();
    await once(this.child, 'exit');
  }
}
