import type {
  Claim,
  ClaimedJob,
  ClaimRequest,
  GatedClaim,
  GatedClaimRequest,
  LimitedClaim,
  LimitedClaimRequest,
  QueueQuota,
} from '../../src/store/store.ts';
import type { Check } from './checker.ts';
import { checkNextAt, isLimited } from './limits.ts';
import { isBefore, isFor, type ModelJob } from './model.ts';

/** Guarantees 2, 5 and 8: who may be claimed, by whom, when, and in which order. */
export function checkClaim(request: ClaimRequest, claim: Claim, check: Check): void {
  const { model, expect } = check;
  const waits = admissible(request, check).some((job) => isLimited(job) && isAskedFor(job, request));
  expect(15, claim.limited || !waits, () => 'a claim does not say that jobs wait behind limits');
  for (const { id } of claim.jobs) {
    const job = model.jobs.get(id);
    expect(15, job === undefined || !isLimited(job), () => `${id} was claimed without asking its limits`);
  }
  checkTaken(request, claim, (job) => !isLimited(job), check);
}

/** A claim behind limits: order, shares and work-conservation as in any other, among the jobs that have room. */
export function checkLimitedClaim(request: LimitedClaimRequest, claim: LimitedClaim, check: Check): void {
  const { model, now, expect } = check;
  for (const { id } of claim.jobs) {
    const job = model.jobs.get(id);
    expect(15, job === undefined || isLimited(job), () => `${id} is behind no limit, but a claim of such jobs took it`);
  }
  // Once the places are filled in which jobs start at once, the others are claimed ahead.
  const isAhead = claim.jobs.length >= request.limit - (request.ahead ?? 0);
  // Room never grows within a claim: what has room afterwards had room all along.
  checkTaken(request, claim, (job) => isLimited(job) && model.limits.hasRoom(job, model, now, isAhead), check);
  if (!isAhead) checkNextAt(request, claim, check);
}

/** Those that a claim of this worker may take, but for their limits. */
function admissible(request: ClaimRequest, { model, now }: Check): ModelJob[] {
  return model.due(now).filter((job) => !model.gates.isGated(job, now) && isFor(job, request));
}

function isAskedFor({ queue }: ModelJob, { queues }: ClaimRequest): boolean {
  return queues.some((quota) => quota.queue === queue);
}

function checkTaken(
  request: ClaimRequest,
  claim: Pick<Claim, 'jobs'>,
  isTakeable: (job: ModelJob) => boolean,
  check: Check,
): void {
  const { model, expect } = check;
  const dueBefore = admissible(request, check);
  model.gates.checkClaim(claim, check);
  expect(8, claim.jobs.length <= request.limit, () => `a claim of ${request.limit} got ${claim.jobs.length} jobs`);
  for (const claimed of claim.jobs) checkOne(request, claimed, check);
  const served = new Set(claim.jobs.map(({ id }) => id));
  const waiting = dueBefore.filter((job) => !served.has(job.made.id));
  const left = waiting.filter(isTakeable);
  const suspects = waiting.filter(({ lane }) => lane === 'suspect');
  for (const quota of request.queues) {
    const own = ownOf(claim.jobs, quota, check);
    checkOrder(own, left, check);
    checkShares(quota, own, left, check);
  }
  if (claim.jobs.length < request.limit) checkNothingLeft(request, left, suspects, check);
}

/** Of a probe neither order nor shares are asked, and of the others no shares: the gate has shared them. */
export function checkGatedClaim(request: GatedClaimRequest, claim: GatedClaim, check: Check): void {
  const { model, expect } = check;
  const { resource } = request;
  expect(8, claim.jobs.length <= request.limit, () => `a claim of ${request.limit} got ${claim.jobs.length} jobs`);
  model.gates.checkGated(request, claim, check);
  for (const claimed of claim.jobs) checkOne(request, claimed, check);
  for (const quota of request.queues) checkCaps(quota, ownOf(claim.jobs, quota, check), check);
  expect(
    12,
    claim.jobs.every((job) => job.resource === resource),
    () => `a claim of ${resource} took other jobs`,
  );
}

function ownOf(jobs: readonly ClaimedJob[], { queue }: QueueQuota, { model }: Check): ModelJob[] {
  return jobs.flatMap(({ id }) => model.jobs.get(id) ?? []).filter((job) => job.queue === queue);
}

function checkOne(request: ClaimRequest, claimed: ClaimedJob, check: Check): void {
  const { model, now, expect } = check;
  const job = model.jobs.get(claimed.id);
  expect(1, job !== undefined, () => `${claimed.id} was claimed, but was never enqueued`);
  if (job === undefined) return;
  const asked = request.queues.some(({ queue }) => queue === job.queue);
  expect(2, job.state === 'waiting', () => `${claimed.id} was claimed while it was ${job.state}`);
  expect(
    8,
    asked && !model.isHeld(job, now),
    () => `${claimed.id} was claimed from ${job.queue}, which was not asked for or was held`,
  );
  expect(8, isFor(job, request), () => `${claimed.id} was claimed by a worker that cannot run it`);
  expect(5, job.dueAt <= now, () => `${claimed.id} was claimed ${job.dueAt - now} ms before it was due`);
  expect(2, claimed.run === job.runs + 1, () => `run ${claimed.run} of ${claimed.id} followed run ${job.runs}`);
  expect(
    4,
    claimed.attempts === job.attempts + 1,
    () => `attempt ${claimed.attempts} of ${claimed.id} followed ${job.attempts}`,
  );
  // A job whose last attempt waited for the verdict of its gate is claimed once more, and has its attempts given back or dies.
  const most = job.made.policy.maxAttempts + (job.spent === null ? 0 : 1);
  expect(4, claimed.attempts <= most, () => `attempt ${claimed.attempts} of ${claimed.id} is beyond its cap`);
  expect(
    4,
    claimed.spent?.at === job.spent?.at && claimed.spent?.count === job.spent?.count,
    () => `${claimed.id} was claimed with the note ${JSON.stringify(claimed.spent)}`,
  );
  expect(
    6,
    claimed.crashes === job.crashes,
    () => `${claimed.id} was claimed with ${claimed.crashes} crashes, not ${job.crashes}`,
  );
  expect(
    8,
    claimed.lane === job.lane,
    () => `${claimed.id} was claimed from ${claimed.lane}, but it waited in ${job.lane}`,
  );
  expect(
    2,
    claimed.leaseEndsAt === now + request.leaseMs,
    () => `the lease of ${claimed.id} ends at ${claimed.leaseEndsAt}`,
  );
  model.limits.start(job, claimed.run, check);
  job.turns = model.limits.turnsOf(job);
  job.state = 'running';
  job.runs = claimed.run;
  job.attempts = claimed.attempts;
  job.firstStartedAt ??= now;
  job.lease = { worker: request.worker, claimedAt: now, endsAt: claimed.leaseEndsAt, alone: false };
  if (job.made.keyLife === 'started') job.holdsKey = false;
}

function checkOrder(own: readonly ModelJob[], left: readonly ModelJob[], { expect }: Check): void {
  for (const job of own) {
    const passed = left.find((other) => other.queue === job.queue && other.lane === job.lane && isBefore(other, job));
    expect(
      8,
      passed === undefined,
      () => `${job.made.id} was claimed before ${passed?.made.id}, which comes first in ${job.lane}`,
    );
  }
}

function checkShares(
  quota: QueueQuota,
  own: readonly ModelJob[],
  left: readonly ModelJob[],
  { model, expect }: Check,
): void {
  const count = (lane: string): number => own.filter((job) => job.lane === lane).length;
  const repeats = count('retry') + count('redrive');
  const freshLeft = left.some((job) => job.queue === quota.queue && job.lane === 'fresh');
  const allowed = quota.retry + quota.redrive;
  expect(
    8,
    !freshLeft || repeats <= allowed,
    () => `${repeats} retries and redrives of ${quota.queue} took more than ${allowed} places while fresh jobs waited`,
  );
  expect(
    8,
    quota.suspect === 0 || count('suspect') === own.length,
    () => `a claim for suspects of ${quota.queue} took other jobs`,
  );
  expect(
    8,
    count('suspect') <= quota.suspect,
    () => `${count('suspect')} suspects of ${quota.queue} were claimed at once`,
  );
  checkCaps(quota, own, { model, expect });
}

function checkCaps(
  quota: QueueQuota,
  own: readonly ModelJob[],
  { model, expect }: Pick<Check, 'model' | 'expect'>,
): void {
  const count = (lane: string): number => own.filter((job) => job.lane === lane).length;
  const tried = model.running().filter((job) => job.queue === quota.queue && job.lane === 'suspect').length;
  expect(8, count('suspect') === 0 || tried === 1, () => `${tried} suspects of ${quota.queue} run at once`);
  const cap = quota.maxRetriesInFlight;
  if (cap === null || count('retry') + count('suspect') === 0) return;
  const running = model.running().filter((job) => job.queue === quota.queue && isRetry(job)).length;
  expect(8, running <= cap, () => `${running} retries of ${quota.queue} run at once, above ${cap}`);
}

/** Work-conserving: a claim that found less than it asked for left nothing behind that it could have had. */
function checkNothingLeft(
  request: ClaimRequest,
  left: readonly ModelJob[],
  suspects: readonly ModelJob[],
  { model, expect }: Check,
): void {
  for (const { queue, suspect, maxRetriesInFlight } of request.queues) {
    const running = model.running().filter((job) => job.queue === queue && isRetry(job)).length;
    const isTrying = model.running().some((job) => job.queue === queue && job.lane === 'suspect');
    const suspectMayStart = !isTrying && suspects.some((job) => job.queue === queue);
    const kept = suspectMayStart && suspect === 0 ? 1 : 0;
    const full = maxRetriesInFlight !== null && running >= maxRetriesInFlight - kept;
    const missed = left.find(
      (job) =>
        job.queue === queue &&
        !(isRetry(job) && full) &&
        (job.lane === 'suspect') === suspect > 0 &&
        !(job.lane === 'suspect' && isTrying),
    );
    expect(
      10,
      missed === undefined,
      () => `a claim had places left, but passed over ${missed?.made.id} in ${missed?.lane}`,
    );
  }
}

function isRetry({ lane }: ModelJob): boolean {
  return lane === 'retry' || lane === 'suspect';
}
