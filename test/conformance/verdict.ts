/** What the results of a run mean: a target is judged by its oracle and by the named exceptions. */
import { type Exception, exceptions } from './exceptions.ts';
import type { Check, Result, Run } from './targets.ts';

export type Verdict = 'pass' | 'same refusal' | 'exception' | 'wrong';

export interface Judged {
  check: Check;
  verdict: Verdict;
  /** What the check said, or why there is no result. */
  detail: string;
  reason?: string;
}

function exceptionFor(check: string, { target, user }: Run): Exception | undefined {
  return exceptions.find((one) => one.check === check && one.on(target, user));
}

function judgeOne(check: Check, run: Run, result: Result | undefined, oracle: Result | undefined): Judged {
  const exception = exceptionFor(check.name, run);
  if (result === undefined) return { check, verdict: 'wrong', detail: 'has no result' };
  const { outcome, detail } = result;
  if (exception !== undefined) {
    const verdict = exception.outcome === outcome ? 'exception' : 'wrong';
    return { check, verdict, detail: `${outcome}: ${detail}`, reason: exception.reason };
  }
  // A remark of a check that passes ("mounted nosuid") or a refusal is right if the plain directory gives the same.
  const same = oracle === undefined || (oracle.outcome === outcome && oracle.detail === detail);
  if (outcome === 'pass') {
    return same || detail === '' ? { check, verdict: 'pass', detail } : { check, verdict: 'wrong', detail };
  }
  if (outcome === 'refused' && same) return { check, verdict: 'same refusal', detail };
  return { check, verdict: 'wrong', detail: `${outcome}: ${detail}` };
}

/** Each check that was wanted of a run; `oracle` is the run on the plain directory of the same base, by the same user. */
export function judge(wanted: readonly Check[], run: Run, oracle: Run): Judged[] {
  const find = (from: Run, name: string) => from.results.find((one) => one.name === name);
  const itself = run.target.driver === undefined;
  return wanted.map((check) => {
    const judged = judgeOne(check, run, find(run, check.name), itself ? undefined : find(oracle, check.name));
    if (judged.verdict !== 'wrong' && run.changedBelow.includes(check.name)) {
      return { ...judged, verdict: 'wrong', detail: 'the lower is not what it was before' };
    }
    return judged;
  });
}
