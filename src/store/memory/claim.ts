import { isRetry } from '../../job.ts';
import { fillQuotas } from '../fill.ts';
import type { Claim, ClaimedJob, ClaimRequest } from '../store.ts';
import { type Lease, type Row, toClaimedJob } from './row.ts';
import type { MemoryState } from './state.ts';

export function claim(state: MemoryState, request: ClaimRequest, now: number): Claim {
  const open = request.queues.filter((quota) => !state.paused.has(quota.queue));
  const names = open.map((quota) => quota.queue);
  const retryCaps = new Map(open.map((quota) => [quota.queue, quota.maxRetriesInFlight ?? Number.POSITIVE_INFINITY]));
  const isFull = (queue: string): boolean => state.retriesInFlight(queue) >= (retryCaps.get(queue) as number);
  const jobs: ClaimedJob[] = [];

  fillQuotas({ ...request, queues: open }, (queue, lane, count) => {
    const wanted = jobs.length + count;
    while (jobs.length < wanted) {
      if (isRetry(lane) && isFull(queue)) break;
      const row = state.waiting.firstDue(queue, lane, now);
      if (!row) break;
      jobs.push(start(state, row, request, now));
    }
    return jobs.length - (wanted - count);
  });

  return {
    jobs,
    now,
    nextDueAt: jobs.length < request.limit ? state.waiting.nextDueAt(names, now) : null,
    suspectsWait: names.some((queue) => !isFull(queue) && state.waiting.firstDue(queue, 'suspect', now) !== undefined),
  };
}

function start(state: MemoryState, row: Row, request: ClaimRequest, now: number): ClaimedJob {
  const lease: Lease = { worker: request.worker, claimedAt: now, endsAt: now + request.leaseMs };
  state.move(row, 'running', now, {
    lease,
    runs: row.runs + 1,
    attempts: row.attempts + 1,
    firstStartedAt: row.firstStartedAt ?? now,
  });
  return toClaimedJob(row, lease);
}
