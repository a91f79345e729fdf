import { type LimitKey, limitsText } from '../../limit/limit.ts';
import { joinJson } from '../json.ts';
import type { Enqueued, NewJob } from '../store.ts';

/* New jobs on their way to the thread, and the answer: what jobs share travels once. */

export type SharedParts = Omit<NewJob, 'id' | 'payload'>;

/** In the order of the jobs; payloads are JSON, joined. */
export type PackedNewJobs = readonly [ids: readonly string[], payloads: string, groups: readonly JobGroup[]];

/** So many jobs, one after the other, that share all but their id and payload. */
interface JobGroup {
  readonly shared: SharedParts;
  count: number;
}

export function packNewJobs(jobs: readonly NewJob[]): PackedNewJobs {
  const groups: JobGroup[] = [];
  for (const job of jobs) {
    const last = groups.at(-1);
    if (last && shares(job, last.shared)) {
      last.count++;
      continue;
    }
    const { id: _id, payload: _payload, ...shared } = job;
    groups.push({ shared, count: 1 });
  }
  return [jobs.map(({ id }) => id), joinJson(jobs.map(({ payload }) => payload)), groups];
}

function shares(a: NewJob, b: SharedParts): boolean {
  return (
    a.policy === b.policy &&
    a.name === b.name &&
    a.queue === b.queue &&
    a.retryQueue === b.retryQueue &&
    a.resource === b.resource &&
    a.priority === b.priority &&
    a.delayMs === b.delayMs &&
    a.dueAt === b.dueAt &&
    a.key === b.key &&
    a.keyLife === b.keyLife &&
    a.version === b.version &&
    a.tags === b.tags &&
    a.trace === b.trace &&
    a.windowMs === b.windowMs &&
    a.debounce === b.debounce &&
    a.onDead === b.onDead &&
    // Each of these looks at what those before it have stored.
    a.onLimit === undefined &&
    b.onLimit === undefined &&
    haveSameLimits(a.limits, b.limits)
  );
}

function haveSameLimits(a: readonly LimitKey[] | undefined, b: readonly LimitKey[] | undefined): boolean {
  return a === b || limitsText(a ?? []) === limitsText(b ?? []);
}

/** What is stored of the limits of a job; null for none. */
export function storedLimits({ limits }: SharedParts): string | null {
  return limits === undefined || limits.length === 0 ? null : limitsText(limits);
}

/** Only those that were not stored because of another job, by their place. */
export type PackedEnqueued = readonly (readonly [index: number, holder: string, replaced: boolean])[];

export function unpackEnqueued(packed: PackedEnqueued, jobs: readonly NewJob[]): Enqueued[] {
  const answers = jobs.map(({ id }): Enqueued => ({ id, existed: false }));
  for (const [index, id, replaced] of packed) answers[index] = { id, existed: true, ...(replaced && { replaced }) };
  return answers;
}
