// The action's second step (action.yml): the commands in a window, then the outputs and the job's summary.
// No dependency, and no build: it also runs with a forgetfs of the registry.
import { spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  accessSync,
  appendFileSync,
  constants,
  existsSync,
  mkdtempSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { constants as system } from 'node:os';
import { delimiter, join, resolve } from 'node:path';

const PREFIX = 'FORGET_ACTION_';
const input = (name) => process.env[PREFIX + name] ?? '';
const lines = (name) =>
  input(name)
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);

const FAILED_ON = 3;
const FORGET_FAILED = 125;

const forget = input('PROGRAM');
const workspace = resolve(input('WORKSPACE'));
const temporary = mkdtempSync(join(process.env.RUNNER_TEMP, 'forget-'));
const report = resolve(input('REPORT') || join(temporary, 'report.json'));
const script = join(temporary, 'run.sh');
writeFileSync(script, `${input('RUN')}\n`);

const words = (name) =>
  input(name)
    .split(/[\s,]+/)
    .filter(Boolean);
const failOn = words('FAIL_ON');
const options = [
  `--workspace=${workspace}`,
  `--report=${report}`,
  ...lines('PROTECT').map((glob) => `--protect=${glob}`),
  ...lines('EXEMPT').map((glob) => `--exempt=${glob}`),
  ...words('AGENT').map((agent) => `--agent=${agent}`),
  ...failOn.map((what) => `--fail-on=${what}`),
];
// As the runner does for a step without a shell of its own.
const shell = inPath('bash') ? ['bash', '--noprofile', '--norc', '-eo', 'pipefail'] : ['sh', '-e'];

const code = await run(['exec', ...options, '--', ...shell, script]);
const written = readReport();
output('exit-code', code);
if (written) {
  output('report', report);
  output('protected-paths', written.protected.length);
  for (const [name, count] of Object.entries(written.totals)) output(name, count);
}
if (input('SUMMARY') === 'true' && process.env.GITHUB_STEP_SUMMARY) summarize();
if (code === FORGET_FAILED) error('forget itself failed; its line in the log says why');
if (code === FAILED_ON && failOn.length > 0) {
  error(`fail-on ${failOn.join(', ')}: the summary and the report say what was found`);
}
process.exitCode = code;

/**
 * Runs forget with what the runner gave this step, but the action's own inputs. A runner that cancels a job interrupts this
 * process alone, and kills all of them 10 s later; a shell that is interrupted alone goes on, so forget is terminated.
 */
async function run(argv) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith(PREFIX)));
  const child = spawn(forget, argv, {
    // Where there is no such directory forget says so.
    cwd: existsSync(workspace) ? workspace : undefined,
    env,
    stdio: 'inherit',
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill('SIGTERM'));
  return await new Promise((resolveCode, reject) => {
    child.once('error', reject);
    child.once('close', (status, signal) => resolveCode(status ?? 128 + system.signals[signal]));
  });
}

/** Undefined where forget failed before there was anything to report. */
function readReport() {
  try {
    return JSON.parse(readFileSync(report, 'utf8'));
  } catch (cause) {
    if (cause.code === 'ENOENT') return undefined;
    throw cause;
  }
}

function summarize() {
  const markdown = written
    ? spawnSync(forget, ['report', '--markdown', report], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'inherit'],
      }).stdout
    : `### forget: no report\n\nexit code ${code}; the log says why\n`;
  appendFileSync(process.env.GITHUB_STEP_SUMMARY, markdown);
}

/** A value may hold anything but the delimiter. */
function output(name, value) {
  const delimiterLine = randomUUID();
  appendFileSync(process.env.GITHUB_OUTPUT, `${name}<<${delimiterLine}\n${value}\n${delimiterLine}\n`);
}

function error(text) {
  process.stdout.write(`::error title=forget::${text}\n`);
}

function inPath(program) {
  return (process.env.PATH ?? '').split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
