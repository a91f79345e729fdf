import type { StoredError } from '../retry/outcome.ts';
import type { RetryPolicy } from '../retry/policy.ts';
import type { Errors } from './classification.ts';
import type { Choice, Sample } from './figures.ts';
import type { Life } from './lives.ts';
import { type LedgerOutage, longestOutage } from './outage.ts';
import { type Findings, figuresOf, findingsOf, type Proposal } from './proposals.ts';
import { effectOf, endingAt } from './replay.ts';
import { resourceProposals } from './resource.ts';
import { type AttemptRow, attemptRows, evidenceOf, type RetryCost, retryCost } from './tally.ts';
import { tooSmallText } from './words.ts';

/** What the ledger says about the jobs of one name. Counts are of all jobs, estimated when a part of them was read. */
export interface NameAdvice {
  readonly name: string;
  /** Jobs that ended, those that failed at least once, and those of them that were read. */
  readonly jobs: number;
  readonly failed: number;
  readonly failedRead: number;
  /** The policy that most of them had. */
  readonly policy: RetryPolicy;
  readonly retries: RetryCost;
  /** How often attempt n succeeded, of the jobs that were read. */
  readonly attempts: readonly AttemptRow[];
  /** Those with the most retries first. */
  readonly groups: readonly GroupAdvice[];
  readonly proposals: readonly Proposal[];
  /** What each number of attempts below the present one would have saved and lost. */
  readonly choices: readonly Choice[];
  /** The longest outage that these jobs have met; null when there was none. */
  readonly outage: LedgerOutage | null;
  /** What would be proposed if more jobs had shown it, and how many are needed. */
  readonly tooFew: readonly string[];
  /** Why nothing is proposed but a resource; null unless the ledger is too small. */
  readonly tooSmall: string | null;
}

export interface GroupAdvice {
  readonly fingerprint: string;
  readonly error: Pick<StoredError, 'name' | 'message' | 'code' | 'status'> | null;
  /** Jobs that failed with it, and those of them that completed. */
  readonly jobs: number;
  readonly recovered: number;
  /** How often attempt n succeeded after it. */
  readonly attempts: readonly AttemptRow[];
}

/** So many error groups of a name are told, those with the most retries first. */
const MOST_GROUPS = 20;

const nothingFound: Findings = { proposals: [], tooFew: [], counted: [] };

export function adviseName(name: string, lives: readonly Life[], errors: Errors, sample: Sample): NameAdvice {
  const { factor } = sample;
  const failed = lives.filter(({ firstFailureAt }) => firstFailureAt !== null);
  const retried = failed.filter(({ runs }) => runs.some(({ after }) => after !== null));
  const policy = usualPolicy(failed.length > 0 ? failed : lives);
  const { runs, runMs, recovered } = retryCost(lives);
  const evidence = evidenceOf(retried);
  const findings = evidence.isEnough ? findingsOf(lives, policy, errors, sample) : nothingFound;
  const outage = longestOutage(lives, errors, factor);
  const all = (amount: number): number => Math.round(amount * factor);
  return {
    name,
    jobs: all(lives.length),
    failed: all(failed.length),
    failedRead: failed.length,
    policy,
    retries: { runs: all(runs), runMs: all(runMs), recovered: all(recovered) },
    attempts: attemptRows(lives),
    groups: groupsOf(failed, errors, factor),
    proposals: [...findings.proposals, ...resourceProposals(lives, outage, errors, sample)],
    tooFew: findings.tooFew,
    choices: evidence.isEnough ? choicesOf(lives, findings.counted, policy, sample) : [],
    outage,
    tooSmall: failed.length === 0 || evidence.isEnough ? null : tooSmallText(evidence, sample),
  };
}

/** What fewer attempts would have cost is listed for at most so many of them. */
const MOST_CHOICES = 50;

/** Lost jobs are of all lives; saved runs only of those that are evidence for fewer attempts. */
function choicesOf(
  lives: readonly Life[],
  counted: readonly Life[],
  { maxAttempts }: RetryPolicy,
  sample: Sample,
): Choice[] {
  return Array.from({ length: Math.min(MOST_CHOICES, maxAttempts - 1) }, (_, index) => {
    const { jobsLost } = figuresOf(effectOf(lives, endingAt(index + 1)), sample);
    const { runsSaved } = figuresOf(effectOf(counted, endingAt(index + 1)), sample);
    return { maxAttempts: index + 1, runsSaved, jobsLost };
  });
}

function groupsOf(failed: readonly Life[], errors: Errors, factor: number): GroupAdvice[] {
  const groups = new Set(failed.flatMap(({ runs }) => runs.flatMap(({ group }) => group ?? [])));
  const retriesOf = (group: GroupAdvice): number => group.attempts.reduce((sum, { tried }) => sum + tried, 0);
  return [...groups]
    .map((fingerprint): GroupAdvice => {
      const own = failed.filter(({ runs }) => runs.some(({ group }) => group === fingerprint));
      const { name, message, code, status } = errors[fingerprint] ?? {};
      return {
        fingerprint,
        error: name === undefined ? null : ({ name, message, code, status } as NonNullable<GroupAdvice['error']>),
        jobs: Math.round(own.length * factor),
        recovered: Math.round(own.filter(({ completed }) => completed).length * factor),
        attempts: attemptRows(own, fingerprint),
      };
    })
    .sort((a, b) => retriesOf(b) - retriesOf(a) || b.jobs - a.jobs)
    .slice(0, MOST_GROUPS);
}

function usualPolicy(lives: readonly Life[]): RetryPolicy {
  const byText = Map.groupBy(lives, ({ policy }) => JSON.stringify(policy));
  const [[first]] = [...byText.values()].sort((a, b) => b.length - a.length) as [[Life]];
  return first.policy;
}
