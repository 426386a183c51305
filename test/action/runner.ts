/**
 * What a GitHub runner does with a composite action, as far as this one needs it: the steps of action.yml, one after the
 * other, with the files and variables that a step is given. The real thing cannot be run here.
 */
import assert from 'node:assert/strict';
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { parse } from 'yaml';
import type { Workspace } from '../harness/forget.ts';
import type { Machine } from '../harness/machine.ts';
import { checkout, environmentOf, idsOf, temporaryDirectory, type User } from '../harness/users.ts';
import { runWatched } from '../harness/watchdog.ts';

interface Step {
  id: string;
  shell: string;
  run: string;
  env?: Record<string, string>;
}

export interface Action {
  inputs: Record<string, { required?: boolean; default?: string }>;
  outputs: Record<string, { value: string }>;
  runs: { using: string; steps: Step[] };
}

export function readAction(path: string): Action {
  return parse(readFileSync(join(path, 'action.yml'), 'utf8')) as Action;
}

const INSTALLED = ['action.yml', 'bin', 'dist', 'package.json', 'scripts/action', 'share'];
const MODULES = ['node_modules/koffi', 'node_modules/@koromix'];

/** The action as the runner checks it out, with what an earlier step of the job has installed. */
export function installedAction(user: User): string {
  const path = temporaryDirectory('action', user);
  for (const part of [...INSTALLED, ...MODULES]) {
    if (existsSync(join(checkout, part))) cpSync(join(checkout, part), join(path, part), { recursive: true });
  }
  return path;
}

export interface ActionOptions {
  action: string;
  /** On top of what the runner sets. */
  env?: Record<string, string>;
  /** Programs that stand before the system's in PATH, by name: lines of sh. */
  programs?: Record<string, string>;
  /** Where the steps run, if not here. Needs root. */
  machine?: Machine;
  timeout?: number;
  /** Called with each step's process as soon as it has one. */
  started?: (step: string, pid: number) => void;
}

export interface ActionResult {
  code: number | null;
  /** What the log shows: both outputs of each step. */
  log: string;
  outputs: Record<string, string>;
  summary: string;
  marks: string[];
}

/** Runs the action in a job whose GITHUB_WORKSPACE is the workspace. */
export async function runAction(
  workspace: Workspace,
  given: Record<string, string>,
  options: ActionOptions,
): Promise<ActionResult> {
  const { user } = workspace;
  const action = readAction(options.action);
  const job = temporaryDirectory('job', user);
  const { uid, gid } = idsOf(user);
  const make = (name: string, content?: string): string => {
    const path = join(job, name);
    if (content === undefined) mkdirSync(path);
    else writeFileSync(path, content);
    chownSync(path, uid, gid);
    return path;
  };
  const programs = make('programs');
  for (const [name, script] of Object.entries(options.programs ?? {})) {
    chmodSync(make(`programs/${name}`, `#!/bin/sh\n${script}\n`), 0o755);
  }
  const summary = make('summary', '');
  const temporary = make('temporary');
  const inputs = inputsOf(action, given);
  const stepOutputs: Record<string, Record<string, string>> = {};
  const value = (text: string): string =>
    text.replace(/\$\{\{ (\w+)\.([\w-]+)(?:\.outputs\.([\w-]+))? \}\}/g, (all, context, name, output) => {
      if (context === 'inputs' && output === undefined) return inputs[name] ?? assert.fail(all);
      if (context === 'steps' && output !== undefined) return stepOutputs[name]?.[output] ?? '';
      assert.fail(`the runner of this test does not know ${all}`);
    });

  const result: ActionResult = { code: 0, log: '', outputs: {}, summary: '', marks: [] };
  for (const step of action.runs.steps) {
    const output = make(`output-${step.id}`, '');
    const script = make(`${step.id}.sh`, step.run);
    assert.equal(step.shell, 'sh');
    // Entering another mount namespace leaves the working directory.
    const line = ['sh', '-c', 'cd "$1" && exec sh -e "$2"', 'sh', workspace.path, script];
    const { code, stdout, stderr, mark } = await runWatched(
      options.machine ? await options.machine.line(uid, line) : line,
      {
        user: options.machine ? 'root' : user,
        cwd: workspace.path,
        timeout: options.timeout ?? 60_000,
        env: {
          ...environmentOf(user),
          PATH: [programs, environmentOf(user).PATH].join(delimiter),
          CI: 'true',
          GITHUB_ACTIONS: 'true',
          GITHUB_ACTION_PATH: options.action,
          GITHUB_WORKSPACE: workspace.path,
          GITHUB_OUTPUT: output,
          GITHUB_STEP_SUMMARY: summary,
          RUNNER_TEMP: temporary,
          RUNNER_ENVIRONMENT: 'github-hosted',
          ...Object.fromEntries(Object.entries(step.env ?? {}).map(([name, text]) => [name, value(text)])),
          ...options.env,
        },
        started: (pid, begun) => {
          workspace.marks.push(begun);
          options.started?.(step.id, pid);
        },
      },
    );
    result.log += stdout + stderr;
    result.code = code;
    result.marks.push(mark);
    stepOutputs[step.id] = outputsIn(readFileSync(output, 'utf8'));
    if (code !== 0) break;
  }
  for (const [name, { value: text }] of Object.entries(action.outputs)) result.outputs[name] = value(text);
  result.summary = readFileSync(summary, 'utf8');
  return result;
}

function inputsOf(action: Action, given: Record<string, string>): Record<string, string> {
  for (const name of Object.keys(given)) assert.ok(action.inputs[name], `the action has no input ${name}`);
  return Object.fromEntries(
    Object.entries(action.inputs).map(([name, { required, default: usual }]) => {
      assert.ok(!required || given[name] !== undefined, `input ${name} is required`);
      return [name, given[name] ?? usual ?? ''];
    }),
  );
}

/** Lines `name=value`, and values of several lines between delimiters. */
function outputsIn(text: string): Record<string, string> {
  const outputs: Record<string, string> = {};
  const lines = text.split('\n');
  for (let line = lines.shift(); line !== undefined; line = lines.shift()) {
    const [, name, delimiterLine] = /^([\w-]+)<<(.+)$/.exec(line) ?? [];
    if (name !== undefined) {
      const end = lines.indexOf(delimiterLine!);
      outputs[name] = lines.splice(0, end).join('\n');
      lines.shift();
    } else if (line !== '') {
      const at = line.indexOf('=');
      assert.ok(at > 0, `not an output: ${line}`);
      outputs[line.slice(0, at)] = line.slice(at + 1);
    }
  }
  return outputs;
}
