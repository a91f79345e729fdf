import type { DeadReason, Job, JobState, Mulligan, OutcomeKind, RunRecord, Stats } from '../../src/index.ts';
import { isTerminal } from '../../src/job.ts';
import type { RetryStats } from '../../src/observe/stats.ts';
import { delayBefore } from '../../src/retry/jitter.ts';

/*
 * What must be true of a queue's books when everything has ended, whatever happened to its processes on the way:
 * nothing is lost, nothing is settled twice, and the ledger, the job and the totals tell the same story. It reads
 * through the public API alone, so it holds for every store.
 */

/** All that a queue says about itself. */
export interface Books {
  readonly jobs: readonly Job[];
  readonly ledgers: ReadonlyMap<string, readonly RunRecord[]>;
  readonly stats: Stats;
}

export interface CheckOptions {
  /** The ids that `enqueue` answered. Others may exist: an enqueue that failed may have stored its job. */
  readonly acknowledged: Iterable<string>;
  /** Dead jobs that were brought back on purpose; nobody else may run again after a death. */
  readonly redriven?: Iterable<string>;
  /** When clocks step, times that were read before and after a step cannot be compared. */
  readonly clocks?: 'steady' | 'stepping';
}

/** Reads the books and throws when they are not right. */
export async function checkLedgers(mulligan: Pick<Mulligan, 'jobs' | 'stats'>, options: CheckOptions): Promise<Books> {
  const books = await readBooks(mulligan);
  const faults = faultsIn(books, options);
  if (faults.length === 0) return books;
  const shown = faults.slice(0, 20).join('\n  ');
  throw new Error(`the books are not right; ${faults.length} faults, the first of them:\n  ${shown}`);
}

const PAGE = 5_000;

export async function readBooks(mulligan: Pick<Mulligan, 'jobs' | 'stats'>): Promise<Books> {
  const jobs: Job[] = [];
  const ledgers = new Map<string, RunRecord[]>();
  for (;;) {
    const last = jobs.at(-1);
    const page = await mulligan.jobs.list({ limit: PAGE, ...(last && { after: last.id }) });
    const rows = await Promise.all(page.map(({ id }) => mulligan.jobs.runs(id)));
    for (const [index, job] of page.entries()) ledgers.set(job.id, rows[index] as RunRecord[]);
    jobs.push(...page);
    if (page.length < PAGE) return { jobs, ledgers, stats: await mulligan.stats() };
  }
}

/** Every fault in the books, in words; none when they are right. */
export function faultsIn(books: Books, options: CheckOptions): string[] {
  const { jobs, ledgers, stats } = books;
  const redriven = new Set(options.redriven);
  const steady = options.clocks !== 'stepping';
  const faults: string[] = [...lost(jobs, options.acknowledged)];
  for (const job of jobs) {
    const rows = ledgers.get(job.id) as readonly RunRecord[];
    const complain = (fault: string): void => void faults.push(`job ${job.id} (${job.name}): ${fault}`);
    checkNumbers(rows, job, complain);
    checkEnd(rows, job, complain);
    checkAbsorbed(rows, redriven.has(job.id), complain);
    checkCounts(rows, job, complain);
    checkDelays(rows, job, complain);
    checkTimes(rows, steady, complain);
  }
  faults.push(...wrongTotals(jobs, ledgers, stats, 'stats'));
  for (const name of new Set(jobs.map((job) => job.name))) {
    const own = jobs.filter((job) => job.name === name);
    faults.push(...wrongTotals(own, ledgers, stats.names[name] as RetryStats, `stats of ${name}`));
  }
  return faults;
}

type Complain = (fault: string) => void;

function lost(jobs: readonly Job[], acknowledged: Iterable<string>): string[] {
  const faults: string[] = [];
  const stored = new Set<string>();
  for (const { id } of jobs) {
    if (stored.has(id)) faults.push(`job ${id} is stored twice`);
    stored.add(id);
  }
  for (const id of acknowledged) if (!stored.has(id)) faults.push(`job ${id} was acknowledged, and is lost`);
  return faults;
}

/** Runs are numbered from 1 without gaps, and every one of them is on the ledger. */
function checkNumbers(rows: readonly RunRecord[], job: Job, complain: Complain): void {
  for (const [index, { run }] of rows.entries()) {
    if (run !== index + 1) complain(`expected run ${index + 1} on its ledger, found run ${run}`);
  }
  if (rows.length !== job.runs) complain(`it was started ${job.runs} times, its ledger has ${rows.length} runs`);
}

/** It has ended, and its last run says the same. */
function checkEnd(rows: readonly RunRecord[], job: Job, complain: Complain): void {
  const { state, deadReason, worker, leaseEndsAt, finishedAt } = job;
  const last = rows.at(-1);
  if (!isTerminal(state)) {
    complain(`it has not ended: ${state}`);
    return;
  }
  if (worker !== null || leaseEndsAt !== null) complain(`it has ended, and is still held by ${worker}`);
  if (finishedAt === null) complain('it has ended at no time');
  if (state === 'completed' && last?.decision.kind !== 'complete') complain('completed by no run');
  if (state !== 'dead' && deadReason !== null) complain(`${state}, and dead of ${deadReason}`);
  if (state === 'dead' && (last?.decision.kind !== 'dead' || last.decision.reason !== deadReason)) {
    complain(`dead of ${deadReason}, and its last run decided ${last?.decision.kind}`);
  }
}

/** An end is an end: no run comes after it, but for a redrive's. */
function checkAbsorbed(rows: readonly RunRecord[], redriven: boolean, complain: Complain): void {
  for (const { run, decision } of rows.slice(0, -1)) {
    if (decision.kind === 'complete' || decision.kind === 'cancel') complain(`ran again after run ${run} ended it`);
    if (decision.kind === 'dead' && !redriven) complain(`ran again after run ${run} buried it`);
  }
  if (rows.filter(({ outcome }) => outcome === 'completed').length > 1) complain('completed more than once');
}

const countedOutcomes: readonly OutcomeKind[] = ['completed', 'failed', 'crashed'];

/** Attempts and crashes are what the ledger adds up to, within their caps; a death has the reason that follows. */
function checkCounts(rows: readonly RunRecord[], job: Job, complain: Complain): void {
  const { attempts, crashes, runs, deadReason, policy } = job;
  const present = lives(rows).at(-1) as readonly RunRecord[];
  let counted = 0;
  for (const row of present) {
    const { run, attempt, outcome } = row;
    if (attempt !== counted + 1) complain(`run ${run} says it was attempt ${attempt}, after ${counted} counted runs`);
    if (row.counted !== mustCount(row)) complain(`run ${run} ${outcome}, and was ${row.counted ? '' : 'not '}counted`);
    if (row.counted) counted++;
  }
  const crashed = present.filter(({ outcome }) => outcome === 'crashed').length;
  if (counted !== attempts) complain(`${attempts} attempts, and ${counted} counted runs on its ledger`);
  if (crashed !== crashes) complain(`${crashes} crashes, and ${crashed} crashed runs on its ledger`);
  if (attempts > runs) complain(`${attempts} attempts in ${runs} runs`);
  if (attempts > policy.maxAttempts) complain(`${attempts} attempts of ${policy.maxAttempts}`);
  // A suspect that never crashed alone has twice as many.
  const most = 2 * policy.maxCrashes;
  if (crashes > most) complain(`${crashes} crashes of ${most}`);
  if (crashes === most && deadReason !== 'poison') complain(`crashed ${crashes} times, and is no poison`);
  if (deadReason !== null && !isEarned(deadReason, job, present)) complain(`dead of ${deadReason} for no reason`);
}

function mustCount({ outcome, decision }: RunRecord): boolean {
  if (decision.kind === 'cancel') return true;
  // A death may spare the attempt (beyond the deadline, or for want of a handler).
  return decision.kind === 'dead' ? decision.counted : countedOutcomes.includes(outcome);
}

function isEarned(reason: DeadReason, { attempts, crashes, policy }: Job, rows: readonly RunRecord[]): boolean {
  const outcome = rows.at(-1)?.outcome;
  switch (reason) {
    case 'poison':
      return outcome === 'crashed' && crashes >= policy.maxCrashes;
    case 'exhausted':
      return (outcome === 'failed' || outcome === 'crashed') && attempts === policy.maxAttempts;
    case 'unrecoverable':
      return outcome === 'failed';
    case 'deadline':
      return policy.deadlineMs !== null;
    case 'no-handler':
      return outcome === 'released';
    case 'runs':
      return rows.length >= policy.maxRuns;
  }
}

/** A redrive that gives all attempts again begins a new life on the same ledger. */
function lives(rows: readonly RunRecord[]): readonly (readonly RunRecord[])[] {
  const ends = rows.flatMap(({ decision }, index) =>
    decision.kind === 'dead' && rows[index + 1]?.attempt === 1 ? [index + 1] : [],
  );
  return [0, ...ends].map((start, index) => rows.slice(start, ends[index]));
}

const LARGEST_RANDOM = 1 - Number.EPSILON;

/** Each wait that the policy chose lies between what the policy can choose. */
function checkDelays(rows: readonly RunRecord[], { policy }: Job, complain: Complain): void {
  for (const life of lives(rows)) {
    let previousMs: number | null = null;
    for (const { run, attempt, decision } of life) {
      if (decision.kind !== 'retry') continue;
      const { delayMs, why } = decision;
      const least = delayBefore(policy, attempt, previousMs, () => 0);
      const most = delayBefore(policy, attempt, previousMs, () => LARGEST_RANDOM);
      previousMs = delayMs;
      if (why === 'retry-after' || (delayMs >= least && delayMs <= most)) continue;
      complain(`run ${run} chose to wait ${delayMs} ms, and its policy says ${least} to ${most}`);
    }
  }
}

/** A worker rounds the store's time to whole ms. */
const ROUNDING_MS = 1;

/** One run at a time, and none before it was due. */
function checkTimes(rows: readonly RunRecord[], steady: boolean, complain: Complain): void {
  for (const [index, { run, startedAt, endedAt, nextDueAt, decision }] of rows.entries()) {
    if (endedAt < startedAt) complain(`run ${run} ended ${startedAt - endedAt} ms before it started`);
    const delayMs = 'delayMs' in decision ? decision.delayMs : 0;
    if (steady && nextDueAt !== null && nextDueAt + ROUNDING_MS < endedAt + delayMs) {
      complain(`run ${run} was to wait ${delayMs} ms, and the next one fell due ${nextDueAt - endedAt} ms later`);
    }
    const next = rows[index + 1];
    if (next === undefined) continue;
    // A job that is only handed back keeps its old due time, which other clocks may have written.
    if ((steady || delayMs > 0) && nextDueAt !== null && next.startedAt < nextDueAt) {
      complain(`run ${next.run} started ${nextDueAt - next.startedAt} ms before it was due`);
    }
    if (steady && next.startedAt + ROUNDING_MS < endedAt) {
      complain(`run ${next.run} started ${endedAt - next.startedAt} ms before run ${run} ended`);
    }
  }
}

/** The totals are what the ledgers add up to. Holds as long as nothing was pruned or discarded. */
function wrongTotals(
  jobs: readonly Job[],
  ledgers: Books['ledgers'],
  { states, totals, totalRetries, successfulRetries }: RetryStats,
  what: string,
): string[] {
  const rows = jobs.flatMap(({ id }) => ledgers.get(id) as readonly RunRecord[]);
  const retries = rows.filter(({ counted, attempt }) => counted && attempt > 1);
  const inState = (state: string): number => jobs.filter((job) => job.state === state).length;
  const deadOf = (reason: string): number =>
    rows.filter(({ decision }) => decision.kind === 'dead' && decision.reason === reason).length;
  const pairs: [string, number, number][] = [
    ['enqueued', totals.enqueued, jobs.length],
    ['retries', totalRetries, retries.length],
    ['successful retries', successfulRetries, retries.filter(({ outcome }) => outcome === 'completed').length],
    ...Object.entries(totals.runs).map(([outcome, total]): [string, number, number] => [
      `${outcome} runs`,
      total,
      rows.filter((row) => row.outcome === outcome).length,
    ]),
    ...Object.entries(totals.dead).map(([reason, total]): [string, number, number] => [
      `dead of ${reason}`,
      total,
      deadOf(reason),
    ]),
    ...(Object.entries(states) as [JobState, number][]).map(([state, total]): [string, number, number] => [
      state,
      total,
      inState(state),
    ]),
  ];
  return pairs.flatMap(([label, said, found]) => (said === found ? [] : `${what}: ${label} ${said}, found ${found}`));
}
