import type { Job } from '../job.ts';
import { isTerminal, type JobState, stateAt, states } from '../job.ts';
import type { DeadReason } from '../retry/decision.ts';

/*
 * Which jobs are meant: one type for lists, counts, exports and all bulk actions, in the API, on the command line and in
 * every store. Conditions add up; none means all jobs.
 */
export interface JobSelection {
  readonly ids?: readonly string[];
  readonly name?: string;
  /** Where it waits or runs, or ended: of a retry, its retry queue. */
  readonly queue?: string;
  readonly state?: JobState | readonly JobState[];
  /** Why it is dead. */
  readonly reason?: DeadReason;
  /** The fingerprint of its last error. */
  readonly error?: string;
  /** Part of the message of its last error, in upper or lower case. No index helps: at most SCAN_ROWS jobs are looked at. */
  readonly message?: string;
  readonly tag?: string;
  readonly key?: string;
  /** Ended at or after this time (ms since the epoch); a job that has not ended: enqueued at or after it. */
  readonly since?: number;
  /** The same, before this time. */
  readonly until?: number;
  /** Attempts spent, both bounds included. */
  readonly attempts?: { readonly min: number; readonly max: number };
  /** No more jobs than this. */
  readonly limit?: number;
}

export interface JobFilter extends JobSelection {
  readonly limit: number;
  /** Continue after this job (the last one of the page before). */
  readonly after?: string;
  /** How the id begins; in lower case. */
  readonly idPrefix?: string;
}

export interface JobList extends Array<Job> {
  /**
   * Set when there may be more although `limit` is not reached: the jobs carry as much as one answer may (see page.ts), or a
   * search by `message` has looked at SCAN_ROWS jobs. It is the last job that was looked at: continue behind it.
   */
  stoppedAfter?: string;
}

/** A search by `message` reads the errors of at most so many jobs per call. */
export const SCAN_ROWS = 100_000;
/** A count stops here. */
export const MOST_COUNTED = 1_000_000;

export interface JobCount {
  readonly count: number;
  /** False when counting stopped: at MOST_COUNTED jobs, or with `message` after SCAN_ROWS jobs. There are at least `count`. */
  readonly isExact: boolean;
}

export function statesOf({ state, reason }: Pick<JobSelection, 'state' | 'reason'>): readonly JobState[] {
  const asked = state === undefined ? states : typeof state === 'string' ? [state] : state;
  return reason === undefined ? asked : asked.filter((one) => one === 'dead');
}

/** A list of the jobs of one finished state is in the order in which they ended, all others in the order of acceptance. */
export function isListedByEnd(selection: JobSelection): boolean {
  const [first, ...others] = statesOf(selection);
  return first !== undefined && others.length === 0 && isTerminal(first);
}

/** What a selection is compared with. */
export interface Selectable {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly state: JobState;
  readonly dueAt: number;
  readonly deadReason: DeadReason | null;
  readonly lastError: { readonly message: string } | null;
  /** Of the last failure. */
  readonly fingerprint: string | null;
  readonly tags: readonly string[];
  readonly key: string | null;
  readonly enqueuedAt: number;
  readonly finishedAt: number | null;
  readonly attempts: number;
}

/** The meaning of a selection, `limit` aside. Database stores say the same in SQL. */
export function isSelected(job: Selectable, selection: JobSelection, now: number): boolean {
  const { ids, name, queue, reason, error, message, tag, key, since, until, attempts } = selection;
  const state = stateAt(job.state, job.dueAt, now);
  const at = isTerminal(state) ? (job.finishedAt ?? job.enqueuedAt) : job.enqueuedAt;
  return (
    (ids === undefined || ids.includes(job.id)) &&
    (name === undefined || job.name === name) &&
    (queue === undefined || job.queue === queue) &&
    statesOf(selection).includes(state) &&
    (reason === undefined || job.deadReason === reason) &&
    (error === undefined || job.fingerprint === error) &&
    (message === undefined || hasMessage(job, message)) &&
    (tag === undefined || job.tags.includes(tag)) &&
    (key === undefined || job.key === key) &&
    (since === undefined || at >= since) &&
    (until === undefined || at < until) &&
    (attempts === undefined || (job.attempts >= attempts.min && job.attempts <= attempts.max))
  );
}

export function hasMessage({ lastError }: Pick<Selectable, 'lastError'>, part: string): boolean {
  return lastError?.message.toLowerCase().includes(part.toLowerCase()) === true;
}
