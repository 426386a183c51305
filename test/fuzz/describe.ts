/** A finding as a person reads it: how to run it again, what differs, and what happened to the paths involved. */
import type { Finding, LogEntry, Sequence } from './fuzz.ts';

const LINES = 30;

function involved(entry: LogEntry): string[] {
  const { op } = entry;
  const slots = ['slot', 'other']
    .filter((key) => op[key] !== undefined)
    .map((key) => `${op.worker}:${op[key]}`);
  const paths = [op.place, op.to].filter(Array.isArray).map((place) => String(place[1]).split('/').at(-1)!);
  return [...slots, ...paths];
}

function line({ op, mount, plain, names, excused }: LogEntry): string {
  const { n, worker, do: kind, pause: _p, looks: _l, ...rest } = op;
  const found = [names?.place, names?.to].filter((name) => name !== undefined).join(' -> ');
  const result = JSON.stringify(mount)?.slice(0, 120);
  const differs =
    JSON.stringify(plain) === JSON.stringify(mount)
      ? ''
      : ` (plain: ${JSON.stringify(plain)?.slice(0, 120)})`;
  return `  ${n} [${worker}${op.outside ? ' outside' : ''}] ${kind} ${JSON.stringify(rest)} ${found} = ${result}${excused ? ` (${excused})` : differs}`;
}

/** The last operations that touched what the last one did. */
function story(log: readonly LogEntry[]): string[] {
  const last = log.at(-1);
  if (!last) return [];
  const about = new Set(involved(last));
  return log
    .filter((entry) => involved(entry).some((one) => about.has(one)))
    .slice(-LINES)
    .map(line);
}

export function describe(sequence: Sequence, finding: Finding): string {
  const { seed, mode, user, operations } = sequence;
  const excused = Object.entries(finding.excused).map(([rule, times]) => `${rule} ${times}`);
  const slowest =
    finding.settled.length > 0 ? `, seen inside after at most ${Math.max(...finding.settled)} ms` : '';
  const head = `seed ${seed}, ${mode}, ${user}: ${finding.performed} of ${operations.length} operations${slowest}${excused.length > 0 ? ` (${excused.join(', ')})` : ''}`;
  if (finding.wrong.length === 0) return head;
  const again = `npm run fuzz -- --seed ${seed} --operations ${operations.length} --mode ${mode} --user ${user}`;
  return [
    `${head}: WRONG`,
    ...finding.wrong.slice(0, 20),
    `again: ${again}`,
    ...(operations.length <= LINES ? finding.log.map(line) : story(finding.log)),
  ].join('\n');
}
