import type { Debounce, Enqueued, NewJob } from '../store.ts';
import { cancelOldest, jobOfFullKey } from './on-limit.ts';
import { cancelOne } from './operate.ts';
import { kept, type Row } from './row.ts';
import type { MemoryState } from './state.ts';

/** Job by job, so that two jobs of one batch meet each other's ids and keys like any others. */
export function enqueue(state: MemoryState, jobs: readonly NewJob[], now: number): Enqueued[] {
  return jobs.map((job) => {
    // The id comes first: a job sent again must find itself, not count as another that wants its key.
    if (state.rows.has(job.id)) return { id: job.id, existed: false };
    const holder = state.keys.holder(job.name, job.key, now);
    if (holder) {
      if (!job.debounce || !isReplaceable(holder.row)) return { id: holder.id, existed: true };
      replace(state, holder.row, job, job.debounce, now);
      return { id: holder.id, existed: true, replaced: true };
    }
    const { onLimit = [] } = job;
    const refusedFor = jobOfFullKey(state, onLimit);
    if (refusedFor !== null) return { id: refusedFor.id, existed: true };
    cancelOldest(state, onLimit, now);
    if (job.debounce) for (const row of state.keys.started(job.name, job.key)) supersede(state, row, now);
    accept(state, job, now);
    return { id: job.id, existed: false };
  });
}

/** It has never started, and gives its key up when it does. */
function isReplaceable(row: Row | undefined): row is Row {
  return row !== undefined && row.lease === null && row.runs === 0 && row.keyLife === 'started';
}

/** It has started before and waits to run again, with an older input than the job that was sent now. */
function supersede(state: MemoryState, row: Row, now: number): void {
  if (row.state !== 'running') cancelOne(state, row, now);
}

function replace(state: MemoryState, row: Row, job: NewJob, { maxWaitMs }: Debounce, now: number): void {
  const latest = maxWaitMs === null ? Number.POSITIVE_INFINITY : row.enqueuedAt + maxWaitMs;
  const dueAt = Math.max(now, Math.min(job.dueAt ?? now + job.delayMs, latest));
  state.replace(row, {
    homeQueue: job.queue,
    queue: job.queue,
    retryQueue: job.retryQueue,
    resource: job.resource,
    limits: kept(job.limits ?? []),
    priority: job.priority,
    payload: job.payload,
    version: job.version ?? null,
    policy: kept(job.policy),
    tags: kept(job.tags ?? []),
    trace: job.trace ?? null,
    onDead: kept(job.onDead ?? null),
    dueAt,
    availableAt: dueAt,
    state: dueAt > now ? 'scheduled' : 'ready',
  });
  state.wake.hint();
}

function accept(state: MemoryState, job: NewJob, now: number): void {
  const dueAt = job.dueAt ?? now + job.delayMs;
  const row: Omit<Row, 'accepted'> = {
    id: job.id,
    name: job.name,
    homeQueue: job.queue,
    retryQueue: job.retryQueue,
    resource: job.resource,
    limits: kept(job.limits ?? []),
    turns: [],
    priority: job.priority,
    payload: job.payload,
    version: job.version ?? null,
    policy: kept(job.policy),
    key: job.key,
    keyLife: job.keyLife,
    tags: kept(job.tags ?? []),
    trace: job.trace ?? null,
    onDead: kept(job.onDead ?? null),
    enqueuedAt: now,
    ledger: [],
    memos: new Map(),
    queue: job.queue,
    state: dueAt > now ? 'scheduled' : 'ready',
    lane: 'fresh',
    aside: null,
    runs: 0,
    attempts: 0,
    crashes: 0,
    dueAt,
    availableAt: Math.max(dueAt, now),
    firstStartedAt: null,
    finishedAt: null,
    lease: null,
    previousDelayMs: null,
    givenBack: 0,
    deferredSince: null,
    snoozes: 0,
    deadReason: null,
    lastError: null,
    fingerprint: null,
    spent: null,
    progress: null,
    result: null,
    cancelRequested: false,
    runNowAt: null,
  };
  state.accept(row, job.windowMs);
  state.totals.of({ homeQueue: job.queue, name: job.name }).totals.enqueued++;
  // A delayed job is news as well: an idle worker sleeps until the due time it last heard of.
  state.wake.hint();
}
