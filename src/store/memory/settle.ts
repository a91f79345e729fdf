import { isRetry, type Settled, settledBy } from '../../job.ts';
import { asideAfter } from '../../retry/decision.ts';
import type { OutcomeKind } from '../../retry/outcome.ts';
import { errorChanges, failureOf } from '../error-groups.ts';
import { reactionTo } from '../reaction.ts';
import type { SettleAnswer, Settlement } from '../store.ts';
import { enqueue } from './enqueue.ts';
import { keepLog } from './log.ts';
import { kept, type Row } from './row.ts';
import type { MemoryState } from './state.ts';

export function settle(state: MemoryState, settlements: readonly Settlement[], now: number): SettleAnswer[] {
  return settlements.map((settlement) => {
    const row = state.held(settlement);
    if (!row) return wasSettled(state, settlement) ? 'settled' : 'stale';
    if (settlement.outcome === 'crashed' && row.lease.endsAt > now) return 'stale';

    const settled = settledBy(settlement.decision, row.cancelRequested, now, row.runNowAt);
    record(row, settlement, settled);
    if (settlement.log !== undefined) keepLog(state, settlement.id, settlement.run, settlement.log);
    count(state, row, settlement, settled, now);
    countErrors(state, row, settlement, settled, now);
    end(state, row, settlement, settled, now);
    if (settled.deadReason !== null && row.onDead !== null) enqueue(state, [reactionTo(settlement, row.onDead)], now);
    return settled.overruled ? 'cancelled' : 'settled';
  });
}

function wasSettled(state: MemoryState, settlement: Settlement): boolean {
  const { id, run, worker, outcome } = settlement;
  // Any rescuer may settle a crash, so this one need not be the one that did.
  if (outcome === 'crashed') return false;
  const ledger = state.rows.get(id)?.ledger ?? [];
  return ledger.some((record) => record.run === run && record.worker === worker && record.outcome === outcome);
}

function record(row: Row, settlement: Settlement, settled: Settled): void {
  const { id, run, worker, outcome, startedAt, endedAt, error, decision, refund } = settlement;
  row.ledger.push(
    kept({
      jobId: id,
      run,
      attempt: row.attempts - (refund?.attempts ?? 0),
      outcome,
      counted: settled.counted,
      worker,
      startedAt,
      endedAt,
      error,
      decision,
      nextDueAt: settled.dueAt,
    }),
  );
}

function count(state: MemoryState, row: Row, settlement: Settlement, settled: Settled, now: number): void {
  const { outcome, startedAt, endedAt, refund } = settlement;
  state.history.add({
    at: now,
    name: row.name,
    outcome,
    counted: settled.counted,
    attempt: row.attempts - (refund?.attempts ?? 0),
    isDead: settled.deadReason !== null,
    runMs: endedAt - startedAt,
  });
  const { totals } = state.totals.of(row);
  totals.runs[settlement.outcome]++;
  if (settled.deadReason !== null) totals.dead[settled.deadReason]++;
  if (settled.counted && row.attempts > 1) {
    totals.retries++;
    if (settlement.outcome === 'completed') totals.successfulRetries++;
  }
}

/** What the job remembers of runs that did not count. */
function uncountedAfter(
  { givenBack, deferredSince, snoozes }: Row,
  outcome: OutcomeKind,
  now: number,
): Pick<Row, 'givenBack' | 'deferredSince' | 'snoozes'> {
  switch (outcome) {
    case 'released':
      return { givenBack: givenBack + 1, deferredSince, snoozes };
    case 'deferred':
      return { givenBack: givenBack + 1, deferredSince: deferredSince ?? now, snoozes: 0 };
    case 'snoozed':
      return { givenBack, deferredSince: null, snoozes: snoozes + 1 };
    default:
      return { givenBack, deferredSince, snoozes: 0 };
  }
}

function countErrors(state: MemoryState, row: Row, settlement: Settlement, settled: Settled, now: number): void {
  const failure = failureOf(settlement);
  if (failure === null && row.fingerprint === null) return;
  const attempt = row.attempts - (settlement.refund?.attempts ?? 0);
  state.errorGroups.add(row, errorChanges({ ...row, attempt }, failure, settled), now);
  if (failure === null || settlement.error === null) return;
  row.fingerprint = failure;
  state.errorHistory.add(failure, row, settled.deadReason !== null, now);
  state.errorGroups.sample(failure, row.id, settlement.error);
}

function end(state: MemoryState, row: Row, settlement: Settlement, settled: Settled, now: number): void {
  const { decision, outcome, error, refund } = settlement;
  const ended = settled.dueAt === null;
  const freesRetryPlace = isRetry(row.lane);
  const isUndone = !settled.ran && !ended && row.firstStartedAt === row.lease?.claimedAt;

  const lane = settled.lane ?? row.lane;
  const holdsPlace = row.limits.length > 0;
  if (!settled.ran && !ended && holdsPlace) state.limits.handedBack(row, row.lease?.claimedAt ?? now, now);

  state.move(row, settled.state, now, {
    // A job that waits elsewhere has not run, or has asked to come later: others of its key go first.
    turns: isRetry(lane) && !ended ? row.turns : [],
    queue: settled.state === 'retrying' ? (row.retryQueue ?? row.queue) : row.queue,
    lane,
    aside: asideAfter(decision),
    attempts: Math.max(0, row.attempts - (settled.counted ? 0 : 1) - (refund?.attempts ?? 0)),
    spent: refund === undefined ? row.spent : refund.spent,
    ...uncountedAfter(row, outcome, now),
    crashes: row.crashes + (outcome === 'crashed' ? 1 : 0),
    // A job handed back for now keeps its place in the line.
    dueAt: settled.state === 'ready' ? row.dueAt : (settled.dueAt ?? row.dueAt),
    availableAt: settled.ran ? (settled.dueAt ?? row.availableAt) : row.availableAt,
    firstStartedAt: isUndone ? null : row.firstStartedAt,
    finishedAt: ended ? now : null,
    lease: null,
    previousDelayMs: settled.state === 'retrying' && 'delayMs' in decision ? decision.delayMs : row.previousDelayMs,
    deadReason: settled.deadReason,
    lastError: error === null ? row.lastError : kept(error),
    cancelRequested: ended ? false : row.cancelRequested,
    runNowAt: null,
    progress: settlement.progress ?? row.progress,
    result: settled.state === 'completed' ? (settlement.result ?? null) : row.result,
  });

  // The end of a run lets another one start where `maxRetriesInFlight` or a limit held it back.
  if (freesRetryPlace || holdsPlace || (settled.dueAt !== null && settled.dueAt <= now)) state.wake.hint();
}
