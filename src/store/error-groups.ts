import type { Lane, Settled } from '../job.ts';
import type { OutcomeKind, StoredError } from '../retry/outcome.ts';

/*
 * Error groups: what jobs fail with, by fingerprint. A group is nothing but counters, kept for each fingerprint, queue and
 * name in the same writes that change the jobs, so that reading groups costs the same with ten dead jobs and a million.
 *
 * A job belongs to the group of its last failure from that failure until it completes, is cancelled or deleted: as failing
 * while it waits or runs, as dead when it is dead. Another error moves it to another group. A job that completes at its
 * first attempt belongs to none, and writes nothing here.
 */

/**
 * failures: runs that ended with it. jobs: jobs that came into the group. failing, dead: those that are in it now. recovered:
 * those that completed. redriven: dead ones that were brought back. recurred: of those, jobs whose next failure was the same.
 */
export const counters = ['failures', 'jobs', 'failing', 'dead', 'recovered', 'redriven', 'recurred'] as const;
export type Counter = (typeof counters)[number];
export type Counts = Record<Counter, number>;

/** How long a group is kept in which no job is left. */
export const GROUP_KEPT_MS: number = 7 * 24 * 60 * 60_000;
/** Recoveries at this attempt or a later one are counted together. */
export const LAST_ATTEMPT_COUNTED = 50;

/** Counters of one group, queue and name. Recoveries are counted by the attempt that completed, all else at attempt 0. */
export interface ErrorCount extends Readonly<Counts> {
  readonly fingerprint: string;
  readonly queue: string;
  readonly name: string;
  readonly attempt: number;
  readonly firstSeenAt: number | null;
  readonly lastSeenAt: number | null;
}

export const groupStates = ['failing', 'dead'] as const;
export type GroupState = (typeof groupStates)[number];

export interface ErrorGroupFilter {
  /** Only groups whose fingerprint begins so. */
  readonly fingerprint?: string;
  /** Only jobs of this name, or enqueued in this queue: all numbers are theirs alone. */
  readonly name?: string;
  readonly queue?: string;
  /** Only groups that have such jobs now. */
  readonly state?: GroupState;
  /** Only groups that were seen at this point in time or later. */
  readonly since?: number;
  readonly limit: number;
}

/** Jobs that fail, or have died, with errors of one kind. Times are ms since the epoch. */
export interface ErrorGroup {
  readonly fingerprint: string;
  /** Jobs that wait or run again after this error. */
  readonly failing: number;
  readonly dead: number;
  /** Runs that ended with this error. */
  readonly failures: number;
  /** Jobs that failed with it, each counted once unless another error came between. */
  readonly jobs: number;
  /** Jobs whose last error this was before they completed. */
  readonly recovered: number;
  /** Recovered jobs, of all that do not fail with it any more; null while there are none. */
  readonly recoveredShare: number | null;
  /** At which attempt they completed. After a redrive attempts count from 1 again; 50 stands for 50 and more. */
  readonly recoveredAt: readonly { readonly attempt: number; readonly jobs: number }[];
  /** How often a dead job of this group was brought back, and how often its next failure was the same. */
  readonly redriven: number;
  readonly recurred: number;
  readonly firstSeenAt: number;
  readonly lastSeenAt: number;
  /** Most affected first. */
  readonly names: readonly ErrorGroupName[];
  /** The first job that failed with it, and how. The job may have been deleted since. */
  readonly sample: ErrorSample | null;
}

export interface ErrorGroupName {
  readonly name: string;
  readonly queue: string;
  readonly failing: number;
  readonly dead: number;
  readonly failures: number;
}

export interface ErrorSample {
  readonly jobId: string;
  readonly error: StoredError;
}

/** A settlement, as far as groups are concerned. */
interface FailedRun {
  readonly outcome: OutcomeKind;
  readonly error: StoredError | null;
}

/** The group that a run adds its job to; null when it did not fail. What a cancelled run threw is no failure. */
export function failureOf({ outcome, error }: FailedRun): string | null {
  return outcome === 'cancelled' ? null : (error?.fingerprint ?? null);
}

/** What one job's settlement adds to the counters of a group. */
export interface ErrorChange {
  readonly fingerprint: string;
  readonly attempt: number;
  /** A run failed with it. */
  readonly seen: boolean;
  readonly counts: Partial<Counts>;
}

/** The job as it ran: the group it was in, its lane, and the attempt that has ended. */
export interface RanJob {
  readonly fingerprint: string | null;
  readonly lane: Lane;
  readonly attempt: number;
}

/** What a settlement changes; nothing for a job that never failed. PostgreSQL says the same in SQL. */
export function errorChanges(job: RanJob, failure: string | null, { state }: Pick<Settled, 'state'>): ErrorChange[] {
  const { fingerprint: before, lane } = job;
  const now = failure ?? before;
  if (now === null) return [];
  const isSame = now === before;
  const waits = state !== 'dead' && state !== 'completed' && state !== 'cancelled';
  const counts: Partial<Counts> = { failing: (waits ? 1 : 0) - (isSame ? 1 : 0), dead: state === 'dead' ? 1 : 0 };
  if (failure !== null) {
    counts.failures = 1;
    if (isSame) counts.recurred = lane === 'redrive' ? 1 : 0;
    else counts.jobs = 1;
  }
  const changes: ErrorChange[] = [{ fingerprint: now, attempt: 0, seen: failure !== null, counts }];
  if (before !== null && !isSame) {
    changes.push({ fingerprint: before, attempt: 0, seen: false, counts: { failing: -1 } });
  }
  if (state === 'completed') {
    const attempt = Math.min(job.attempt, LAST_ATTEMPT_COUNTED);
    changes.push({ fingerprint: now, attempt, seen: false, counts: { recovered: 1 } });
  }
  return changes;
}

/** A dead job is brought back. */
export const REDRIVEN: Partial<Counts> = { dead: -1, failing: 1, redriven: 1 };

/** Whether the group of these counters may go. */
export function isOver(counts: readonly ErrorCount[], now: number): boolean {
  const [failing, dead] = [sumOf(counts, 'failing'), sumOf(counts, 'dead')];
  return failing <= 0 && dead <= 0 && latest(counts) < now - GROUP_KEPT_MS;
}

/** Groups from their counters, those with the most failing and dead jobs first. */
export function toErrorGroups(
  counts: readonly ErrorCount[],
  sampleOf: (fingerprint: string) => ErrorSample | null,
): ErrorGroup[] {
  const groups = [...Map.groupBy(counts, ({ fingerprint }) => fingerprint)];
  return groups.map(([fingerprint, own]) => toErrorGroup(fingerprint, own, sampleOf(fingerprint))).sort(byJobs);
}

export function isWanted(group: ErrorGroup, { fingerprint, state, since }: ErrorGroupFilter): boolean {
  return (
    (fingerprint === undefined || group.fingerprint.startsWith(fingerprint)) &&
    (state === undefined || group[state] > 0) &&
    (since === undefined || group.lastSeenAt >= since)
  );
}

function byJobs(a: ErrorGroup, b: ErrorGroup): number {
  return (
    b.failing + b.dead - (a.failing + a.dead) || b.lastSeenAt - a.lastSeenAt || (a.fingerprint < b.fingerprint ? -1 : 1)
  );
}

function toErrorGroup(fingerprint: string, counts: readonly ErrorCount[], sample: ErrorSample | null): ErrorGroup {
  const sum = (counter: Counter): number => sumOf(counts, counter);
  const [failing, jobs, recovered] = [sum('failing'), sum('jobs'), sum('recovered')];
  const seen = counts.flatMap(({ firstSeenAt }) => firstSeenAt ?? []);
  return {
    fingerprint,
    failing,
    dead: sum('dead'),
    failures: sum('failures'),
    jobs,
    recovered,
    recoveredShare: jobs > failing ? Math.min(1, recovered / (jobs - failing)) : null,
    recoveredAt: recoveredAt(counts),
    redriven: sum('redriven'),
    recurred: sum('recurred'),
    firstSeenAt: Math.min(...seen),
    lastSeenAt: latest(counts),
    names: namesIn(counts),
    sample,
  };
}

function recoveredAt(counts: readonly ErrorCount[]): ErrorGroup['recoveredAt'] {
  return [...Map.groupBy(counts, ({ attempt }) => attempt)]
    .map(([attempt, own]) => ({ attempt, jobs: sumOf(own, 'recovered') }))
    .filter(({ jobs }) => jobs > 0)
    .sort((a, b) => a.attempt - b.attempt);
}

function namesIn(counts: readonly ErrorCount[]): ErrorGroupName[] {
  return [...Map.groupBy(counts, ({ queue, name }) => JSON.stringify([queue, name])).values()]
    .map((own): ErrorGroupName => {
      const { name, queue } = own[0] as ErrorCount;
      const [failing, dead, failures] = [sumOf(own, 'failing'), sumOf(own, 'dead'), sumOf(own, 'failures')];
      return { name, queue, failing, dead, failures };
    })
    .sort((a, b) => b.failing + b.dead - (a.failing + a.dead) || b.failures - a.failures || (a.name < b.name ? -1 : 1));
}

/** Not below 0: a process of an older version changes jobs without counting them here. */
function sumOf(counts: readonly ErrorCount[], counter: Counter): number {
  return Math.max(
    0,
    counts.reduce((sum, count) => sum + count[counter], 0),
  );
}

function latest(counts: readonly ErrorCount[]): number {
  return Math.max(...counts.map(({ lastSeenAt }) => lastSeenAt ?? 0));
}
