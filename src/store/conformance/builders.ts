import assert from 'node:assert/strict';
import { idMaker } from '../../clock.ts';
import type { Job, Lane } from '../../job.ts';
import type { DeadReason, Decision } from '../../retry/decision.ts';
import type { OutcomeKind, StoredError } from '../../retry/outcome.ts';
import type { RetryPolicy } from '../../retry/policy.ts';
import type {
  ChangeAction,
  ChangeRequest,
  Claim,
  ClaimedJob,
  ClaimRequest,
  Fence,
  JobSelection,
  NewJob,
  PruneAnswer,
  QueueQuota,
  Settlement,
  SkippedJob,
  Store,
} from '../store.ts';

export const MINUTE = 60_000;
export const HOUR: number = 60 * MINUTE;
/** The lease that `claimRequest` asks for. */
export const LEASE: number = 10 * MINUTE;

export const policy: RetryPolicy = Object.freeze({
  maxAttempts: 4,
  backoff: Object.freeze({ kind: 'exponential', baseMs: 500, factor: 2, maxMs: 30_000 }),
  jitter: 'full',
  deadlineMs: null,
  maxCrashes: 3,
  maxRuns: 10_000,
});

/** Text that breaks whatever pastes it into a query, a path or a key. Nothing here may have a meaning to a store. */
export const hostileTexts: readonly string[] = [
  `it's "quoted" \`thrice\``,
  `'; DROP TABLE jobs; --`,
  `" OR 1=1 /*`,
  `%_\\%$1 ?1 :name @p {0} \${x}`,
  'null',
  'NULL',
  'undefined',
  '0',
  ' ',
  'tab\tline\nbreak\r\n',
  'naïve 日本語 👩‍👩‍👧 \u202Ertl',
  '__proto__',
  'a:b/c|d',
];

const newId = idMaker(
  () => 1_767_225_600_000,
  (count) => new Uint8Array(count),
);

export function newJob(changes: Partial<NewJob> = {}): NewJob {
  return {
    id: newId(),
    name: 'email.send',
    queue: 'default',
    retryQueue: null,
    resource: null,
    priority: 5,
    payload: '{"to":"a@example.com"}',
    policy,
    delayMs: 0,
    dueAt: null,
    key: null,
    keyLife: 'finished',
    ...changes,
  };
}

export function newJobs(count: number, changes: Partial<NewJob> = {}): NewJob[] {
  return Array.from({ length: count }, () => newJob(changes));
}

/** Keeps no places for any lane: fresh work first, then retries, then redrives, and no suspects. */
export function quota(changes: Partial<QueueQuota> = {}): QueueQuota {
  return { queue: 'default', share: 0, retry: 0, redrive: 0, suspect: 0, maxRetriesInFlight: null, ...changes };
}

export function claimRequest(changes: Partial<ClaimRequest> = {}): ClaimRequest {
  return { worker: 'worker-1', leaseMs: LEASE, limit: 100, queues: [quota()], ...changes };
}

export function claim(store: Store, changes: Partial<ClaimRequest> = {}): Promise<Claim> {
  return store.claim(claimRequest(changes));
}

/** Claims a single job; fails when there is none. */
export async function claimOne(store: Store, changes: Partial<ClaimRequest> = {}): Promise<ClaimedJob> {
  const { jobs } = await claim(store, { limit: 1, ...changes });
  return only(jobs);
}

export async function enqueueOne(store: Store, changes: Partial<NewJob> = {}): Promise<string> {
  return only(await store.enqueue([newJob(changes)])).id;
}

/** Enqueues a job and claims it. No other job of its queue may be due before it. */
export async function startOne(store: Store, changes: Partial<NewJob> = {}): Promise<ClaimedJob> {
  const id = await enqueueOne(store, changes);
  const job = await claimOne(store, { queues: [quota({ queue: changes.queue ?? 'default' })] });
  assert.equal(job.id, id, 'another job was due first');
  return job;
}

export const complete: Decision = { kind: 'complete', rule: 'completed' };
export const cancelNow: Decision = { kind: 'cancel', counted: true, rule: 'cancel-requested' };

export function retryIn(delayMs: number, lane: Lane = 'retry'): Decision {
  return { kind: 'retry', why: 'backoff', delayMs, lane, rule: 'default' };
}

export function die(reason: DeadReason = 'exhausted'): Decision {
  return { kind: 'dead', reason, counted: true, rule: 'default' };
}

/** The three decisions that give the attempt back. */
export function giveBack(kind: 'snooze' | 'release' | 'defer', delayMs = 0): Decision {
  return kind === 'defer' ? { kind, delayMs, lane: 'retry', rule: kind } : { kind, delayMs, rule: kind };
}

const usualOutcome: Readonly<Record<Decision['kind'], OutcomeKind>> = {
  complete: 'completed',
  retry: 'failed',
  dead: 'failed',
  snooze: 'snoozed',
  release: 'released',
  defer: 'deferred',
  cancel: 'cancelled',
};

export function storedError(message: string): StoredError {
  return { name: 'Error', message, code: 'E_TEST', status: 503, stack: null };
}

export function settlement(job: ClaimedJob, decision: Decision, changes: Partial<Settlement> = {}): Settlement {
  const outcome = changes.outcome ?? usualOutcome[decision.kind];
  return {
    ...fenceOf(job),
    outcome,
    decision,
    error: outcome === 'failed' || outcome === 'deferred' ? storedError('no luck') : null,
    startedAt: job.claimedAt,
    endedAt: job.claimedAt + 5,
    ...changes,
  };
}

/** What a rescuer sends for a job it found among the expired. */
export function crash(job: ClaimedJob, decision: Decision = retryIn(0)): Settlement {
  return settlement(job, decision, { outcome: 'crashed', error: null });
}

export async function settleOne(
  store: Store,
  job: ClaimedJob,
  decision: Decision,
  changes: Partial<Settlement> = {},
): Promise<void> {
  assert.deepEqual(await store.settle([settlement(job, decision, changes)]), ['settled']);
}

/** A job that ran once and died. */
export async function bury(
  store: Store,
  changes: Partial<NewJob> = {},
  reason: DeadReason = 'exhausted',
): Promise<string> {
  const job = await startOne(store, changes);
  await settleOne(store, job, die(reason));
  return job.id;
}

/** Due jobs in a lane other than fresh. Call it before fresh jobs wait in that queue. */
export async function enqueueInLane(store: Store, lane: Lane, count: number, queue = 'default'): Promise<string[]> {
  await store.enqueue(newJobs(count, { queue }));
  const { jobs } = await claim(store, { limit: count, queues: [quota({ queue })] });
  assert.equal(jobs.length, count);
  const ids = jobs.map((job) => job.id);
  const decision = lane === 'redrive' ? die() : retryIn(0, lane);
  await store.settle(jobs.map((job) => settlement(job, decision)));
  if (lane === 'redrive') await redrive(store, { ids });
  return ids;
}

type ChangeOptions = Partial<Pick<ChangeRequest, 'part' | 'intervalMs' | 'keepAttempts' | 'canary' | 'payload'>>;

/** An order that no other is the same as. */
export function changeRequest(
  action: ChangeAction,
  selection: JobSelection,
  changes: Partial<ChangeRequest> = {},
): ChangeRequest {
  const id = newId();
  return {
    id,
    action,
    selection,
    order: id,
    by: 'conformance',
    part: 1_000,
    intervalMs: 0,
    keepAttempts: false,
    canary: 0,
    ...changes,
  };
}

/** A bulk action from its beginning to its end. */
export async function changeAll(
  store: Store,
  action: ChangeAction,
  selection: JobSelection,
  changes: ChangeOptions = {},
): Promise<{ ids: string[]; skipped: SkippedJob[] }> {
  const request = changeRequest(action, selection, changes);
  const ids: string[] = [];
  const skipped: SkippedJob[] = [];
  for (;;) {
    const answer = await store.change(request);
    ids.push(...answer.ids);
    skipped.push(...answer.skipped);
    if (answer.operation.endedAt !== null) return { ids, skipped };
  }
}

export function redrive(
  store: Store,
  { keepAttempts = false, ...selection }: JobSelection & { readonly keepAttempts?: boolean },
): Promise<{ ids: string[]; skipped: SkippedJob[] }> {
  return changeAll(store, 'redrive', selection, { keepAttempts });
}

/** Answers the ids of the jobs that are gone. */
export async function discard(store: Store, selection: JobSelection): Promise<string[]> {
  return (await changeAll(store, 'discard', selection)).ids;
}

export function fenceOf(job: Fence): Fence {
  return { id: job.id, run: job.run, worker: job.worker };
}

export async function jobOf(store: Store, id: string): Promise<Job> {
  return only(await store.get([id]));
}

export async function timeOf(store: Store): Promise<number> {
  return (await store.stats()).now;
}

export function only<T>(items: readonly T[]): T {
  assert.equal(items.length, 1, `expected exactly one, got ${items.length}`);
  return items[0] as T;
}

export function idsOf(jobs: readonly { readonly id: string }[]): string[] {
  return jobs.map((job) => job.id);
}

/** How many of these jobs were claimed from each lane. */
export function countLanes(jobs: readonly ClaimedJob[]): Partial<Record<Lane, number>> {
  const counts: Partial<Record<Lane, number>> = {};
  for (const job of jobs) counts[job.lane] = (counts[job.lane] ?? 0) + 1;
  return counts;
}

/** Fails unless nothing that can be read about this job changed meanwhile. */
export async function assertUntouched(store: Store, id: string, during: () => Promise<unknown>): Promise<void> {
  const read = async (): Promise<unknown> => [
    await store.get([id]),
    await store.runs(id),
    await store.logs(id, 10),
    await store.recall(id),
  ];
  const before = await read();
  await during();
  assert.deepEqual(await read(), before);
}

/** How long finished jobs of all names are kept, and how long jobs wait aside before every worker may take them. */
export interface KeptFor {
  readonly completedMs: number | null;
  readonly deadMs: number | null;
  readonly cancelledMs: number | null;
  readonly asideMs?: number;
}

/** Sets by hand how long jobs are kept, and prunes. */
export async function pruneWith(
  store: Store,
  { completedMs, deadMs, cancelledMs, asideMs }: KeptFor,
  limit: number,
): Promise<PruneAnswer> {
  const rule = { name: null, source: 'set' } as const;
  await store.writeRetention([
    { ...rule, state: 'completed', keptMs: completedMs },
    { ...rule, state: 'dead', keptMs: deadMs },
    { ...rule, state: 'cancelled', keptMs: cancelledMs },
  ]);
  return store.prune(limit, asideMs);
}
