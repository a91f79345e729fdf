import type { Decision } from '../../src/retry/decision.ts';
import type { SettleAnswer, Settlement } from '../../src/store/store.ts';
import { environmentKinds, RETRY_AFTER_MS, type Script } from '../jobs.ts';
import { delayRange, softRange } from './bounds.ts';
import { type Check, holds } from './checker.ts';
import type { ModelJob } from './model.ts';

/** Guarantees 3 to 6 and 9: who may settle, what it counts, and whether the decision is true. */
export function checkSettle(settlements: readonly Settlement[], answers: readonly SettleAnswer[], check: Check): void {
  for (const [index, settlement] of settlements.entries()) checkOne(settlement, answers[index], check);
}

function checkOne(settlement: Settlement, answer: SettleAnswer | undefined, check: Check): void {
  const { model, now, expect } = check;
  const { id, run, worker, outcome } = settlement;
  const job = model.jobs.get(id);
  const mine = holds(job, settlement) && (outcome !== 'crashed' || (job.lease as { endsAt: number }).endsAt <= now);
  const done = job?.ledger.some((row) => row.run === run && row.worker === worker && row.outcome === outcome) ?? false;
  const again = done && outcome !== 'crashed';
  const right: SettleAnswer = mine ? answerTo(job, settlement) : again ? 'settled' : 'stale';
  expect(
    mine ? 9 : 3,
    answer === right,
    () => `settling run ${run} of ${id} as ${outcome} answered ${answer}, not ${right}`,
  );
  if (!mine || job === undefined) return;
  checkRefund(job, settlement, check);
  checkDecision(job, settlement, check);
  model.errorGroups.settled(job, settlement);
  apply(job, settlement, check);
}

/** By then every rule of a gate has decided. */
const verdictRange = { least: 30_000, most: 30_000 };

/** A cancel ends what would have waited again. */
function answerTo(job: ModelJob, { decision }: Settlement): SettleAnswer {
  return job.cancelRequested && 'delayMs' in decision ? 'cancelled' : 'settled';
}

export function isCounted(decision: Decision): boolean {
  if (decision.kind === 'dead' || decision.kind === 'cancel') return decision.counted;
  return decision.kind === 'complete' || decision.kind === 'retry';
}

/** Attempts are given back once, for an outage that was seen, and never more than were spent. */
function checkRefund(job: ModelJob, { decision, refund }: Settlement, { model, expect }: Check): void {
  const { id } = job.made;
  const attempts = refund?.attempts ?? 0;
  const left = job.attempts - attempts - (isCounted(decision) ? 0 : 1);
  expect(4, left >= 0, () => `${id} is left with ${left} attempts`);
  if (refund === undefined || attempts === 0) return;
  const { spent } = job;
  expect(
    4,
    attempts === spent?.count,
    () => `${id} gets ${attempts} attempts back, but its note is ${JSON.stringify(spent)}`,
  );
  expect(
    4,
    (refund.spent?.count ?? 0) <= 1,
    () => `${id} gets attempts back, and keeps ${JSON.stringify(refund.spent)}`,
  );
  const isSeen = spent !== null && model.gates.hasOpened(job, spent.at);
  expect(4, isSeen, () => `${id} gets ${attempts} attempts back, but its gate has not opened since they were spent`);
}

function apply(job: ModelJob, settlement: Settlement, { model, now }: Check): void {
  const { run, worker, outcome, decision, refund } = settlement;
  const counted = isCounted(decision);
  job.attempts -= refund?.attempts ?? 0;
  if (refund !== undefined) job.spent = refund.spent;
  job.ledger.push({ run, attempt: job.attempts, worker, outcome, counted, decision });
  if (!counted) job.attempts--;
  if (decision.kind === 'release' && !job.cancelRequested) model.limits.handedBack(job, now);
  if (outcome === 'crashed') job.crashes++;
  if (decision.kind === 'complete') {
    model.end(job, 'completed');
    return;
  }
  if (decision.kind === 'dead') {
    job.deadReason = decision.reason;
    model.end(job, 'dead');
    return;
  }
  if (decision.kind === 'cancel' || job.cancelRequested) {
    model.end(job, 'cancelled');
    return;
  }
  job.state = 'waiting';
  job.aside = ('aside' in decision ? decision.aside : undefined) ?? null;
  if (decision.kind === 'defer' || decision.kind === 'release') job.givenBack++;
  if (decision.kind === 'release' && job.firstStartedAt === job.lease?.claimedAt) job.firstStartedAt = null;
  job.lease = null;
  if (decision.kind === 'retry' || decision.kind === 'defer') {
    job.lane = decision.lane;
    job.queue = job.made.retryQueue ?? job.queue;
    job.previousDelayMs = decision.delayMs;
  }
  // A job that has failed keeps its turn, and one that snoozes before gives it to the others.
  if (job.lane !== 'retry' && job.lane !== 'suspect') job.turns = [];
  // What is handed back without a delay keeps its place.
  if (decision.kind === 'retry' || decision.kind === 'defer' || decision.delayMs > 0)
    job.dueAt = job.runNowAt === null ? now + decision.delayMs : now;
  job.runNowAt = null;
}

function checkDecision(job: ModelJob, settlement: Settlement, check: Check): void {
  const { decision, outcome } = settlement;
  const { expect } = check;
  const { id, policy } = job.made;
  const crashes = job.crashes + (outcome === 'crashed' ? 1 : 0);
  expect(
    6,
    (outcome === 'completed') === (decision.kind === 'complete'),
    () => `${outcome} run of ${id} was decided ${decision.kind}`,
  );
  if (outcome === 'crashed') {
    const poisoned = decision.kind === 'dead' && decision.reason === 'poison';
    expect(
      6,
      poisoned === (crashes >= policy.maxCrashes && proves(job, crashes)),
      () => `crash ${crashes} of ${policy.maxCrashes} of ${id} was decided ${JSON.stringify(decision)}`,
    );
  }
  const hopeless = decision.rule === 'thrown:Unrecoverable' && !job.cancelRequested;
  expect(6, !hopeless || decision.kind === 'dead', () => `${id} threw Unrecoverable, and was decided ${decision.kind}`);
  if (decision.kind === 'dead') checkDeath(job, settlement, decision, check);
  if (decision.kind === 'retry') checkRetry(job, settlement, decision, crashes, check);
  if (decision.kind === 'defer') checkDefer(job, settlement, decision, crashes, check);
}

/** A suspect that crashed beside other jobs is not buried for it, up to twice `maxCrashes`. */
function proves({ lane, lease, made }: ModelJob, crashes: number): boolean {
  return lane !== 'suspect' || lease?.alone === true || crashes >= 2 * made.policy.maxCrashes;
}

function checkDeath(
  job: ModelJob,
  { outcome, endedAt, refund }: Settlement,
  decision: Decision & { kind: 'dead' },
  { expect }: Check,
): void {
  const { id, policy, payload } = job.made;
  const script = JSON.parse(payload) as Script;
  const say = (truth: string) => () => `${id} died as ${decision.reason}, but ${truth}`;
  switch (decision.reason) {
    case 'exhausted':
      {
        const spent = job.attempts - (refund?.attempts ?? 0) - (decision.counted ? 0 : 1);
        expect(6, spent === policy.maxAttempts, say(`it had spent ${spent} of ${policy.maxAttempts} attempts`));
      }
      break;
    case 'poison':
      expect(6, outcome === 'crashed', say(`its run ${outcome}`));
      break;
    case 'unrecoverable':
      expect(6, script.kind === 'unrecoverable', say(`its handler threw no such error`));
      break;
    case 'deadline': {
      // The next start would have been within the longest wait from here.
      const reach = endedAt - (job.firstStartedAt as number) + 40_000;
      expect(6, policy.deadlineMs !== null && reach > policy.deadlineMs, say('its deadline was far'));
      break;
    }
    case 'no-handler':
      expect(6, false, say('every worker knows it'));
      break;
    case 'runs':
      expect(6, false, say(`no job of this simulation has ${policy.maxRuns} runs`));
  }
}

/** Only a failure that is blamed on the dependency may be deferred. */
function checkDefer(
  job: ModelJob,
  { outcome, run, error }: Settlement,
  decision: Decision & { kind: 'defer' },
  crashes: number,
  { model, expect }: Check,
): void {
  const { id, policy, payload } = job.made;
  const { kind } = JSON.parse(payload) as Script;
  expect(6, outcome === 'deferred', () => `a run of ${id} that ${outcome} was deferred`);
  // While the store is away, a handler that extends its lease waits for it, beyond its timeout.
  const waitedForStore = kind === 'extend' && error?.name === 'TimeoutError';
  const isBlamed = environmentKinds.has(kind) || waitedForStore || model.gates.wasDown(job);
  expect(4, isBlamed, () => `${id} was deferred, but its dependency was never down`);
  const lane = policy.maxCrashes > 1 && crashes >= policy.maxCrashes - 1 ? 'suspect' : 'retry';
  expect(8, decision.lane === lane, () => `${id} with ${crashes} crashes went to ${decision.lane}`);
  const own = delayRange(policy, run, job.previousDelayMs);
  // Behind a gate the gate decides when it runs again, so its own backoff is only the longest that it may wait.
  const { least, most } = job.made.resource === null ? softRange(own, job.givenBack) : { ...own, least: 0 };
  const isOwn = decision.delayMs >= least && decision.delayMs <= most;
  const isAsked = kind === 'retry-after' && decision.delayMs >= RETRY_AFTER_MS;
  expect(5, isOwn || isAsked, () => `${id} waits ${decision.delayMs} ms after run ${run}, outside ${least} to ${most}`);
}

function checkRetry(
  job: ModelJob,
  { outcome, refund }: Settlement,
  decision: Decision & { kind: 'retry' },
  crashes: number,
  { expect }: Check,
): void {
  const { id, policy } = job.made;
  const attempts = job.attempts - (refund?.attempts ?? 0);
  // The last attempt waits for the verdict of its gate, once.
  const isPending = decision.why === 'verdict';
  expect(
    4,
    isPending ? attempts === policy.maxAttempts && refund?.spent !== null : attempts < policy.maxAttempts,
    () => `${id} is retried after attempt ${attempts} of ${policy.maxAttempts}`,
  );
  expect(
    6,
    (decision.why === 'crash') === (outcome === 'crashed'),
    () => `${id} is retried for ${decision.why} after it ${outcome}`,
  );
  const suspect = policy.maxCrashes > 1 && crashes >= policy.maxCrashes - 1;
  expect(
    8,
    decision.lane === (suspect ? 'suspect' : 'retry'),
    () => `${id} with ${crashes} crashes went to ${decision.lane}`,
  );
  const { least, most } = isPending ? verdictRange : delayRange(policy, attempts, job.previousDelayMs);
  if (decision.rule === 'thrown:RetryAfter') {
    expect(
      5,
      decision.delayMs >= RETRY_AFTER_MS,
      () => `${id} was asked to wait ${RETRY_AFTER_MS} ms, and waits ${decision.delayMs}`,
    );
  } else {
    const fits = decision.delayMs >= least && decision.delayMs <= most;
    expect(5, fits, () => `${id} waits ${decision.delayMs} ms after attempt ${attempts}, outside ${least} to ${most}`);
  }
}
