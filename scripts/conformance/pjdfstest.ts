/**
 * `npm run pjdfstest -- DIRECTORY`: pjdfstest, fetched and built by hand in DIRECTORY, as root on the plain directory and in
 * both parts of a window; writes the score and each failing test into docs/conformance.md. Takes ten minutes.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const checkout = fileURLToPath(new URL('../..', import.meta.url));
const page = join(checkout, 'docs/conformance.md');
const [FROM, TO] = ['<!-- pjdfstest -->', '<!-- /pjdfstest -->'];

/**
 * Why a test fails, by its file and number, for each failure that is known. Nothing is known to fail: an entry here
 * is a limit that a person has looked into.
 */
const REASONS: Record<string, string> = {};

interface Score {
  assertions: number;
  /** As `rename/22.t 7 - tried ...`. */
  failed: string[];
  /** Marked TODO by pjdfstest itself for Linux, and failing: they are no failures of the filesystem. */
  expected: number;
  /** Marked TODO, and passing. */
  unexpected: number;
}

function scoreOf(tap: string): Score {
  const score: Score = { assertions: 0, failed: [], expected: 0, unexpected: 0 };
  let file = '';
  for (const line of tap.split('\n')) {
    file = /tests\/(\S+\.t) \.\./.exec(line)?.[1] ?? file;
    const assertion = /^(not )?ok (\d+)(.*)$/.exec(line);
    if (!assertion) continue;
    const [, not, number, rest] = assertion;
    score.assertions += 1;
    if (/# TODO/.test(rest!)) score[not ? 'expected' : 'unexpected'] += 1;
    else if (not) score.failed.push(`${file} ${number}${rest}`);
  }
  return score;
}

/**
 * The tests, told that they run on ext4 wherever they run: by the filesystem's type they would leave out rename/22.t
 * (a rename changes ctime) on anything but ext4, ufs and zfs, 29 assertions.
 */
function testsForExt4(built: string, into: string): string {
  cpSync(join(built, 'pjdfstest'), join(into, 'pjdfstest'));
  cpSync(join(built, 'tests'), join(into, 'tests'), { recursive: true });
  const conf = join(into, 'tests/conf');
  writeFileSync(conf, `${readFileSync(conf, 'utf8')}\nfs=EXT4\n`);
  return join(into, 'tests');
}

function run(argv: readonly string[], cwd: string): string {
  const [program, ...rest] = argv;
  const result = spawnSync(program!, rest, { cwd, encoding: 'utf8', maxBuffer: 1 << 26 });
  if (result.error) throw result.error;
  // prove says 1 when a test failed, and that is a score like any other.
  if (result.status !== 0 && result.status !== 1) throw new Error(`${argv.join(' ')}: ${result.stderr}`);
  return result.stdout;
}

function row(place: string, score: Score): string {
  const passed = score.assertions - score.failed.length;
  return `| ${place} | ${score.assertions} | ${passed} | ${score.failed.length} | ${score.expected} | ${score.unexpected} |`;
}

function failures(place: string, score: Score): string[] {
  return score.failed.map((line) => {
    const test = line.split(' ', 2).join(' ');
    return `- ${place}, \`${line}\`: ${REASONS[test] ?? 'not looked into yet'}`;
  });
}

function publish(scores: readonly (readonly [string, Score])[], version: string): void {
  const kernel = readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim();
  const failed = scores.flatMap(([place, score]) => failures(place, score));
  const section = [
    `pjdfstest ${version}, as root, Linux ${kernel}:`,
    '',
    '| | assertions | passed | failed | TODO, failing | TODO, passing |',
    '|---|---|---|---|---|---|',
    ...scores.map(([place, score]) => row(place, score)),
    '',
    ...(failed.length > 0 ? failed : ['No test fails.']),
  ].join('\n');
  const text = readFileSync(page, 'utf8');
  const [start, end] = [text.indexOf(FROM), text.indexOf(TO)];
  if (start < 0 || end < start) throw new Error(`${page} has no ${FROM} ... ${TO}`);
  writeFileSync(page, `${text.slice(0, start + FROM.length)}\n${section}\n${text.slice(end)}`);
}

function main(argument: string | undefined): void {
  if (argument === undefined) throw new Error('the directory in which pjdfstest was built is missing');
  if (process.getuid?.() !== 0) throw new Error('pjdfstest runs as root');
  const built = resolve(argument);
  const version = run(['git', '-C', built, 'log', '-1', '--format=%h of %as'], built).trim();
  const top = mkdtempSync(join(tmpdir(), 'forget-pjdfstest-'));
  try {
    const tests = testsForExt4(built, top);
    const prove = ['prove', '--recurse', '--verbose', '--merge', tests];
    const [plain, workspace] = [join(top, 'plain'), join(top, 'workspace')];
    for (const directory of ['plain', 'workspace/memory/work', 'workspace/work']) {
      mkdirSync(join(top, directory), { recursive: true });
    }
    const inside = [join(checkout, 'bin/forget'), 'exec', '--quiet', '-w', workspace, '--'];
    const scores: [string, Score][] = [];
    for (const [place, directory, prefix] of [
      ['the plain directory', plain, []],
      ['unprotected part', join(workspace, 'work'), inside],
      ['protected part', join(workspace, 'memory/work'), inside],
    ] as const) {
      const score = scoreOf(run([...prefix, ...prove], directory));
      process.stdout.write(`${place}: ${score.assertions} assertions, ${score.failed.length} fail\n`);
      process.stdout.write(score.failed.map((line) => `  ${line}\n`).join(''));
      scores.push([place, score]);
    }
    publish(scores, version);
  } finally {
    rmSync(top, { recursive: true, force: true });
  }
}

main(process.argv[2]);
