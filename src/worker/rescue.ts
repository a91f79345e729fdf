import type { Clock } from '../clock.ts';
import { decide } from '../retry/decide.ts';
import type { ClaimedJob, SettleAnswer, Settlement, Store } from '../store/store.ts';
import type { Applied } from './settle.ts';

const BATCH = 200;

export interface Rescued {
  readonly job: ClaimedJob;
  readonly settlement: Settlement;
  readonly answer: Applied;
}

/**
 * Ends the runs of workers that went silent: an expired lease is the outcome `crashed`, and goes through the same
 * decide and the same fenced settle as any other. Two rescuers may meet; the second one's settlement is stale.
 */
export async function rescue(
  store: Pick<Store, 'expired' | 'settle'>,
  clock: Clock,
  onRescued: (rescued: Rescued) => void,
): Promise<void> {
  for (;;) {
    const expired = await store.expired(BATCH);
    if (expired.length === 0) return;
    const crashes = expired.map((job) => ({ job, settlement: crashed(job, clock) }));
    const answers = await store.settle(crashes.map(({ settlement }) => settlement));
    for (const [index, crash] of crashes.entries()) {
      const answer = answers[index] as SettleAnswer;
      if (answer !== 'stale') onRescued({ ...crash, answer });
    }
    if (expired.length < BATCH) return;
  }
}

/**
 * Dated to the end of the lease, since no one knows when the worker died. A wall clock that stepped back may put that before
 * the claim.
 */
function crashed(job: ClaimedJob, clock: Clock): Settlement {
  const { id, run, worker, claimedAt, leaseEndsAt } = job;
  const decision = decide(job, { kind: 'crashed' }, leaseEndsAt, () => clock.random());
  const endedAt = Math.max(claimedAt, leaseEndsAt);
  return { id, run, worker, outcome: 'crashed', decision, error: null, startedAt: claimedAt, endedAt };
}
