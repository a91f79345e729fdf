import type { Clock } from '../clock.ts';
import { gateOfJob, refund } from '../gate/index.ts';
import { decide } from '../retry/decide.ts';
import type { ClaimedJob, Refund, SettleAnswer, Settlement, Store } from '../store/store.ts';
import { crashed } from './own-errors.ts';
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
  store: Pick<Store, 'expired' | 'settle' | 'report'>,
  clock: Clock,
  onRescued: (rescued: Rescued) => void,
): Promise<void> {
  for (;;) {
    const expired = await store.expired(BATCH);
    if (expired.length === 0) return;
    const refunds = await refundsOf(store, expired);
    const crashes = expired.map((job) => ({ job, settlement: crashOf(job, refunds.get(job.id), clock) }));
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
function crashOf(job: ClaimedJob, refund: Refund | undefined, clock: Clock): Settlement {
  const { id, run, worker, claimedAt, leaseEndsAt } = job;
  const left = { ...job, attempts: job.attempts - (refund?.attempts ?? 0) };
  const decision = decide(left, { kind: 'crashed' }, leaseEndsAt, () => clock.random());
  const endedAt = Math.max(claimedAt, leaseEndsAt);
  const settlement = {
    id,
    run,
    worker,
    outcome: 'crashed',
    decision,
    error: crashed,
    startedAt: claimedAt,
    endedAt,
  } as const;
  return refund === undefined ? settlement : { ...settlement, refund };
}

/** A job that crashed must not die of attempts that an outage has cost it. */
async function refundsOf(store: Pick<Store, 'report'>, jobs: readonly ClaimedJob[]): Promise<Map<string, Refund>> {
  const noted = jobs.filter(({ spent }) => spent !== null);
  if (noted.length === 0) return new Map();
  const answers = await store.report(noted.map((job) => ({ gate: gateOfJob(job), report: null })));
  return new Map(
    answers.map(({ state }, index) => {
      const { id, spent } = noted[index] as ClaimedJob;
      return [id, refund(state, spent)];
    }),
  );
}
