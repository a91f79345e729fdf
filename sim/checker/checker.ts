import type {
  CancelAnswer,
  ChangeAnswer,
  ChangeRequest,
  Claim,
  ClaimRequest,
  Enqueued,
  Fence,
  GateAnswer,
  GatedClaim,
  GatedClaimRequest,
  GateRef,
  Heartbeat,
  HeartbeatAnswer,
  HoldTarget,
  LimitedClaim,
  LimitedClaimRequest,
  LimitWrite,
  NewJob,
  ScheduleWrite,
  ScheduleWritten,
  SettleAnswer,
  Settlement,
  WorkerReport,
} from '../../src/store/store.ts';
import type { ExecutedEvent, FinalState, History } from '../history.ts';
import { START } from '../scheduler.ts';
import { checkClaim, checkGatedClaim, checkLimitedClaim } from './claims.ts';
import { Diligence } from './diligence.ts';
import { checkFinal } from './final.ts';
import { Liveness } from './liveness.ts';
import { Model, type ModelJob } from './model.ts';
import { OnceCheck } from './once.ts';
import { checkSchedules } from './schedules.ts';
import { checkSettle } from './settlements.ts';

/** One broken promise; the number is the guarantee's, see docs/guarantees.md. */
export interface Violation {
  readonly guarantee: number;
  readonly at: number;
  readonly text: string;
}

/** What the checks of single verbs get. */
export interface Check {
  readonly model: Model;
  /** Store time, as the store answers it. */
  readonly now: number;
  expect(guarantee: number, holds: boolean, text: () => string): void;
}

export interface CheckOptions {
  readonly leaseMs: number;
  readonly pollMs: number;
  /** Whether everything ended after the faults were over. */
  readonly ended: boolean;
}

/**
 * Reads a history and says which promises it breaks. It knows the documents and the history alone: it replays every
 * call that was carried out on a model of its own, and compares each answer with what the model expects.
 */
export function check(history: History, final: FinalState, options: CheckOptions): Violation[] {
  const violations: Violation[] = [];
  const model = new Model();
  const once = new OnceCheck();
  const liveness = new Liveness(options);
  const diligence = new Diligence(history, options.leaseMs);
  for (const event of history.events) {
    const now = Math.floor(event.at) + START;
    const expect: Check['expect'] = (guarantee, holds, text) => {
      if (!holds) violations.push({ guarantee, at: event.at, text: text() });
    };
    const check: Check = { model, now, expect };
    // Before the model moves on: it still knows who held what.
    diligence.observe(event, check);
    if (event.kind === 'executed') checkCall(event, check);
    if (event.kind === 'handler') checkStart(event, check);
    if (event.kind === 'gates') model.gates.read(event.gates, check);
    if (event.kind === 'dependency') model.gates.wentDown(event.resource);
    once.observe(event, expect);
    if (history.healedAt !== null && event.at >= history.healedAt) liveness.observe(check);
  }
  violations.push(...checkSchedules(history));
  const expectFinally: Check['expect'] = (guarantee, holds, text) => {
    if (!holds) violations.push({ guarantee, at: Number.POSITIVE_INFINITY, text: text() });
  };
  checkFinal(model, final, options.ended, expectFinally);
  model.errorGroups.check(final.errorGroups, expectFinally);
  return violations;
}

/** A handler begins only under a lease that lasts. */
export function checkStart(
  { job: id, run, attempt }: { job: string; run: number; attempt: number },
  { model, now, expect }: Check,
): void {
  const job = model.jobs.get(id);
  const lasts = job?.state === 'running' && job.runs === run && (job.lease?.endsAt ?? 0) > now;
  expect(2, lasts, () => `run ${run} of ${id} began when its lease was over`);
  const most = job?.made.policy.maxAttempts ?? 0;
  expect(4, attempt >= 1 && attempt <= most, () => `run ${run} of ${id} began as attempt ${attempt} of ${most}`);
}

export function checkCall(event: ExecutedEvent, check: Check): void {
  const { verb, args, value } = event;
  const [first] = args;
  switch (verb) {
    case 'enqueue':
      checkEnqueue(first as NewJob[], value as Enqueued[], check);
      break;
    case 'writeSchedule': {
      const { written, jobs } = value as ScheduleWritten;
      if (written) checkEnqueue((first as ScheduleWrite).jobs, jobs, check);
      break;
    }
    case 'claim':
      checkClaim(first as ClaimRequest, value as Claim, check);
      break;
    case 'claimGated':
      checkGatedClaim(first as GatedClaimRequest, value as GatedClaim, check);
      break;
    case 'claimLimited':
      checkLimitedClaim(first as LimitedClaimRequest, value as LimitedClaim, check);
      break;
    case 'writeLimits':
      check.model.limits.write(first as LimitWrite[], check.now);
      break;
    case 'report':
      check.model.gates.checkReport(first as WorkerReport[], value as GateAnswer[], event.process, check);
      break;
    case 'changeGate':
      check.model.gates.changed(first as GateRef, value as GateAnswer);
      break;
    case 'heartbeat':
      checkHeartbeat(first as Heartbeat[], value as HeartbeatAnswer[], check);
      break;
    case 'settle':
      checkSettle(first as Settlement[], value as SettleAnswer[], check);
      break;
    case 'expired':
      checkExpired(value as Fence[], check);
      break;
    case 'remember':
      checkRemember(args as [Fence, string, string], value as boolean, check);
      break;
    case 'cancel':
      checkCancel(value as CancelAnswer[], check);
      break;
    case 'change':
      checkChange(first as ChangeRequest, value as ChangeAnswer, check);
      break;
    case 'hold':
      check.model.hold(first as HoldTarget, args[1] as number | null);
      break;
    case 'release':
      check.model.release(first as HoldTarget);
  }
}

function checkEnqueue(jobs: readonly NewJob[], answers: readonly Enqueued[], { model, now, expect }: Check): void {
  const isNew = (job: NewJob, { id, existed }: Enqueued): boolean => id === job.id && !existed;
  for (const [index, job] of jobs.entries()) {
    const answer = answers[index] as Enqueued;
    const holder = model.holder(job.name, job.key, now);
    const full = model.limits.refusedFor(job, model);
    if (model.jobs.has(job.id)) {
      expect(1, isNew(job, answer), () => `enqueueing ${job.id} again answered ${json(answer)}`);
    } else if (holder) {
      const right = answer.existed && answer.id === holder;
      expect(7, right, () => `the key of ${job.id} is held by ${holder}, but enqueue answered ${json(answer)}`);
      // A store that let it in has a second live job of that key.
      if (answer.id === job.id) model.accept(job, now);
    } else if (full !== null) {
      const right = answer.existed && full.includes(answer.id);
      expect(15, right, () => `${full} fill a key of ${job.id}, but enqueue answered ${json(answer)}`);
      if (answer.id === job.id) model.accept(job, now);
    } else {
      expect(
        7,
        isNew(job, answer),
        () => `no job keeps ${job.id} from being stored, but enqueue answered ${json(answer)}`,
      );
      model.limits.cancelOldest(job, model);
      model.accept(job, now);
    }
  }
}

export function holds(job: ModelJob | undefined, { run, worker }: Fence): job is ModelJob & { lease: object } {
  return job?.state === 'running' && job.runs === run && job.lease?.worker === worker;
}

function checkHeartbeat(
  heartbeats: readonly Heartbeat[],
  answers: readonly HeartbeatAnswer[],
  { model, now, expect }: Check,
): void {
  for (const [index, heartbeat] of heartbeats.entries()) {
    const answer = answers[index] as HeartbeatAnswer;
    const job = model.jobs.get(heartbeat.id);
    const kept = holds(job, heartbeat);
    expect(
      3,
      answer.kept === kept,
      () => `a heartbeat for run ${heartbeat.run} of ${heartbeat.id} answered ${json(answer)}`,
    );
    if (kept && answer.kept) {
      expect(
        2,
        answer.leaseEndsAt === now + heartbeat.leaseMs,
        () => `a heartbeat moved the lease of ${heartbeat.id} to ${answer.leaseEndsAt}`,
      );
      const lease = job.lease as NonNullable<ModelJob['lease']>;
      lease.endsAt = answer.leaseEndsAt;
      lease.alone = heartbeat.alone ?? lease.alone;
    }
  }
}

function checkExpired(jobs: readonly Fence[], { model, now, expect }: Check): void {
  for (const fence of jobs) {
    const job = model.jobs.get(fence.id);
    const over = holds(job, fence) && (job.lease as { endsAt: number }).endsAt <= now;
    expect(2, over, () => `run ${fence.run} of ${fence.id} was called expired, but it is not`);
  }
}

function checkRemember([fence, key]: [Fence, string, string], kept: boolean, { model, expect }: Check): void {
  const job = model.jobs.get(fence.id);
  expect(3, kept === holds(job, fence), () => `remember for run ${fence.run} of ${fence.id} answered ${kept}`);
  if (kept) job?.memos.add(key);
}

function checkCancel(answers: readonly CancelAnswer[], { model, expect }: Check): void {
  for (const { id, result } of answers) {
    const job = model.jobs.get(id);
    const right =
      job === undefined
        ? 'not-found'
        : job.state === 'waiting'
          ? 'cancelled'
          : job.state === 'running'
            ? 'cancelling'
            : 'already-ended';
    expect(1, result === right, () => `cancelling ${id} answered ${result}, not ${right}`);
    if (job?.state === 'waiting') model.end(job, 'cancelled');
    else if (job?.state === 'running') job.cancelRequested = true;
  }
}

function checkChange(request: ChangeRequest, answer: ChangeAnswer, check: Check): void {
  switch (request.action) {
    case 'redrive':
      checkRedrive(request, answer, check);
      break;
    case 'discard':
      checkDiscard(answer.ids, check);
      break;
    case 'runNow':
      checkRunNow(answer.ids, check);
      break;
    case 'cancel':
      checkCancelled(answer.ids, check);
      break;
  }
}

function checkRunNow(ids: readonly string[], { model, now, expect }: Check): void {
  for (const id of ids) {
    const job = model.jobs.get(id);
    const runs = job?.state === 'running';
    expect(1, runs || job?.state === 'waiting', () => `${id} was to run now, but it is ${job?.state}`);
    if (job === undefined) continue;
    if (runs) job.runNowAt = now;
    else job.dueAt = Math.min(job.dueAt, now);
  }
}

function checkCancelled(ids: readonly string[], { model, expect }: Check): void {
  for (const id of ids) {
    const job = model.jobs.get(id);
    expect(
      1,
      job?.state === 'waiting' || job?.state === 'running',
      () => `${id} was cancelled, but it is ${job?.state}`,
    );
    if (job?.state === 'waiting') model.end(job, 'cancelled');
    else if (job?.state === 'running') job.cancelRequested = true;
  }
}

function checkRedrive(request: ChangeRequest, { ids }: ChangeAnswer, { model, now, expect }: Check): void {
  for (const id of ids) {
    const job = model.jobs.get(id);
    expect(6, job?.state === 'dead', () => `${id} was redriven, but it is ${job?.state}`);
    if (job === undefined) continue;
    const { made } = job;
    const rival = model.holder(made.name, made.key, now);
    const takesKey = made.key !== null && made.keyLife !== 'started' && made.keyLife !== 'window';
    expect(
      7,
      !takesKey || rival === undefined || rival === id,
      () => `${id} was redriven although ${rival} holds its key`,
    );
    Object.assign(job, {
      state: 'waiting',
      lane: 'redrive',
      aside: null,
      turns: [],
      givenBack: 0,
      queue: made.queue,
      dueAt: now,
      deadReason: null,
      firstStartedAt: null,
      holdsKey: takesKey,
    });
    model.errorGroups.redriven(id);
    if (!request.keepAttempts) {
      Object.assign(job, { attempts: 0, crashes: 0, previousDelayMs: null, spent: null });
    } else {
      expect(4, job.attempts < made.policy.maxAttempts, () => `${id} was redriven with no attempt left`);
    }
  }
}

function checkDiscard(ids: readonly string[], { model, expect }: Check): void {
  for (const id of ids) {
    expect(1, model.jobs.get(id)?.state === 'dead', () => `${id} was discarded, but it is not dead`);
    model.jobs.delete(id);
  }
}

function json(value: unknown): string {
  return JSON.stringify(value);
}
