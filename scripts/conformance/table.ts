/**
 * `npm run conformance [-- part-of-a-target's-name]`: runs the table of checks on every target, for root and for an
 * ordinary user, and writes the table of docs/conformance.md between its marks. With a part of a name, only those
 * targets run, and what did not pass is printed instead.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Check,
  listChecks,
  oracleOf,
  type Run,
  runTarget,
  type Target,
  targets,
  wantedChecks,
} from '../../test/conformance/targets.ts';
import { type Judged, judge } from '../../test/conformance/verdict.ts';
import { openDevFuse } from '../../test/harness/dev-fuse.ts';
import { checkout, type User, users } from '../../test/harness/users.ts';

const PAGE = join(checkout, 'docs/conformance.md');
const [BEGIN, END] = ['<!-- table -->', '<!-- /table -->'];
const SIGNS = { pass: '✓', 'same refusal': '=', exception: 'n', wrong: '**✗**' };

interface Column {
  target: Target;
  user: User;
  judged: Map<string, Judged>;
  filesystem: string;
}

async function runAll(checks: readonly Check[], part: string): Promise<Column[]> {
  const columns: Column[] = [];
  for (const user of users) {
    const oracles = new Map<Target, Run>();
    for (const target of targets.filter((one) => one.name.includes(part))) {
      const begun = Date.now();
      const oracle = oracles.get(oracleOf(target)) ?? (await runTarget(checks, oracleOf(target), user));
      oracles.set(oracleOf(target), oracle);
      const run = oracle.target === target ? oracle : await runTarget(checks, target, user);
      const judged = judge(wantedChecks(checks, target, user), run, oracle);
      const wrong = judged.filter((one) => one.verdict === 'wrong');
      const seconds = Math.round((Date.now() - begun) / 1000);
      process.stdout.write(`${target.name}, as ${user}: ${judged.length} checks, ${seconds} s\n`);
      for (const one of wrong) process.stdout.write(`  ${one.check.name}: ${one.detail}\n`);
      columns.push({
        target,
        user,
        judged: new Map(judged.map((one) => [one.check.name, one])),
        filesystem: run.filesystem,
      });
    }
  }
  return columns;
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

function letter(index: number): string {
  return String.fromCharCode(65 + index);
}

function legend(columns: readonly Column[]): string[] {
  const rows = columns.map(({ target, user, judged, filesystem }, index) => {
    const count = (verdict: Judged['verdict']) =>
      String([...judged.values()].filter((one) => one.verdict === verdict).length);
    return line([
      letter(index),
      `${target.name}, as ${user === 'root' ? 'root' : 'an ordinary user'}`,
      filesystem,
      count('pass'),
      count('same refusal'),
      count('exception'),
      count('wrong'),
    ]);
  });
  return [
    line([
      '',
      'target',
      'filesystem',
      'passes ✓',
      'refused as on the plain directory =',
      'named exception n',
      'fails ✗',
    ]),
    line(['---', '---', '---', '---:', '---:', '---:', '---:']),
    ...rows,
  ];
}

/** What is not simply passed, each with why; columns with the same text stand together. */
function remarks(columns: readonly Column[]): string[] {
  const texts = new Map<string, string[]>();
  columns.forEach(({ judged }, index) => {
    for (const { check, verdict, detail, reason } of judged.values()) {
      if (verdict === 'pass') continue;
      const why =
        verdict === 'same refusal'
          ? `the base cannot do it either: ${detail}`
          : (reason ?? `**fails**: ${detail}`);
      const text = `\`${check.name}\`: ${why}`;
      texts.set(text, [...(texts.get(text) ?? []), letter(index)]);
    }
  });
  return [...texts].map(([text, letters]) => `- ${text} (${letters.join(', ')})`);
}

function rows(checks: readonly Check[], columns: readonly Column[]): string[] {
  const head = [line(['check', '', ...columns.map((_, index) => letter(index))])];
  head.push(line(['---', '---', ...columns.map(() => ':-:')]));
  return head.concat(
    checks.map((check) => {
      const signs = columns.map(({ judged, user }) => {
        const found = judged.get(check.name);
        if (found === undefined) return check.root && user !== 'root' ? 'r' : '';
        return SIGNS[found.verdict];
      });
      return line([`\`${check.name}\``, check.says.replaceAll('|', '\\|'), ...signs]);
    }),
  );
}

function page(checks: readonly Check[], columns: readonly Column[]): string {
  return [
    `${checks.length} named checks (\`test/conformance/checks\`), each a fact of POSIX or of Linux, run by \`npm run conformance\`:`,
    '',
    ...legend(columns),
    '',
    'What is not a ✓:',
    '',
    ...remarks(columns),
    '',
    "An `r` marks checks that act as several users or need root's powers: they run as root alone. No sign: the check runs on another base (`space` on the small one, `crowd` on disk).",
    '',
    ...rows(checks, columns),
  ].join('\n');
}

function writePage(text: string): void {
  const old = existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : `# Conformance\n\n${BEGIN}\n${END}\n`;
  const [begin, end] = [old.indexOf(BEGIN), old.indexOf(END)];
  const [head, tail] =
    begin < 0
      ? [`${old.trimEnd()}\n\n## The table\n\n`, '\n']
      : [old.slice(0, begin), old.slice(end + END.length)];
  writeFileSync(PAGE, `${head}${BEGIN}\n${text}\n${END}${tail}`);
}

await openDevFuse();
const part = process.argv[2] ?? '';
const checks = await listChecks();
const columns = await runAll(checks, part);
if (part === '') writePage(page(checks, columns));
const wrong = columns.flatMap(({ judged }) => [...judged.values()].filter((one) => one.verdict === 'wrong'));
process.exitCode = wrong.length > 0 ? 1 : 0;
