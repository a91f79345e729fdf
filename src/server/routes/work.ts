import { z } from 'zod';
import type { Duration } from '../../duration.ts';
import { parseDuration } from '../../duration.ts';
import { LeaseLostError } from '../../errors.ts';
import type { Outcome } from '../../retry/outcome.ts';
import { planWork } from '../../worker/options.ts';
import type { StartedJob } from '../claim-line.ts';
import { ProblemError } from '../problem.ts';
import { type Receipt, readReceipt, receiptText, writeReceipt } from '../receipt.ts';
import { describeDecision, type ReportedError, type ReportedLine } from '../remote-runs.ts';
import type { ClaimFacts } from '../remote-worker.ts';
import { type Route, route, type ServerContext } from '../route.ts';
import * as schemas from '../schemas.ts';
import { receipt as receiptShape } from '../store-schemas.ts';
import { waitOf } from './jobs.ts';

const TAG = 'work';
/** A worker that asks for many jobs at once runs many at once. */
const MOST_CLAIMED = 1_000;
const LONGEST_AGENT = 200;

const claimedJob = z.object({
  lease: receiptText,
  id: schemas.jobId,
  name: z.string(),
  queue: z.string(),
  run: z.int(),
  attempt: z.int(),
  maxAttempts: z.int(),
  payload: z.unknown(),
  version: z.int().nullable(),
  lastError: schemas.storedError.nullable(),
  dueAt: z.number(),
  leaseEndsAt: z.number(),
  trace: z.string().nullable().describe('Where it was enqueued: a W3C traceparent and, after a space, a tracestate.'),
});

const claim: Route = route({
  method: 'POST',
  path: '/api/v1/claim',
  name: 'claimJobs',
  tag: TAG,
  summary: 'Take due jobs under a lease; waits until there are some',
  description:
    'Each job comes with a `lease`, to be sent with heartbeats and with the outcome. A job whose lease ends without either counts as crashed, and another worker gets it. The server registers the worker from its claims, so that lists and `doctor` see it.',
  scopes: ['work'],
  waits: true,
  body: z.strictObject({
    worker: schemas.jobName.describe('Names this worker in the ledger. Two workers must not share a name.'),
    queues: z.array(schemas.jobName).min(1).max(100).default(['default']),
    names: z
      .array(schemas.jobName)
      .min(1)
      .max(1_000)
      .exactOptional()
      .describe('The jobs that it has handlers for. Others are handed back, uncounted, to workers that have.'),
    limit: z.int().min(1).max(MOST_CLAIMED).default(1),
    lease: schemas.durationSchema.default('30s').describe('How long it may be silent. At least 1s.'),
    wait: schemas.durationSchema.default('20s').describe('How long to wait for a job. 0 to answer at once.'),
    host: schemas.jobName.exactOptional().describe('Where it runs, for the list of workers. Default: its address.'),
    version: schemas.jobName.exactOptional().describe('Of your program, for the list of workers.'),
  }),
  answers: {
    200: { description: 'Jobs to run; none when none came in time.', schema: z.object({ jobs: z.array(claimedJob) }) },
  },
  async handle({ body, address, principal, request, context }) {
    const { worker, limit } = body;
    const line = context.claims.lineOf(planWork({ queues: body.queues, lease: body.lease }), body.names ?? null);
    const { plan, names } = line.terms;
    const waitMs = waitOf(body.wait, context);
    const signal = AbortSignal.any([request.signal, context.closing]);
    const facts: ClaimFacts = {
      ...{ queues: line.queues, names, limit, leaseMs: plan.leaseMs },
      host: body.host ?? address ?? 'unknown',
      version: body.version ?? null,
      agent: request.headers.get('user-agent')?.slice(0, LONGEST_AGENT) ?? null,
      ...(!principal.isLocal && { token: principal.name }),
    };
    const claim = () => context.claims.claim({ line, worker, limit, waitMs, signal });
    const { jobs, share } = await context.remoteWorkers.during(worker, facts, claim);
    const json = `{"jobs":[${jobs.map(shownClaim).join(',')}]}`;
    return share === null ? { json } : { json, share };
  },
});

/** As JSON text. Payloads are not redacted here: the worker has to do something with them. */
function shownClaim({ job, receipt }: StartedJob): string {
  const { id, name, queue, run, attempts, policy, payload, version, lastError, dueAt, leaseEndsAt, trace } = job;
  const { maxAttempts } = policy;
  const shown = { id, name, queue, run, attempt: attempts, maxAttempts, version, lastError, dueAt, leaseEndsAt, trace };
  const text = JSON.stringify({ lease: writeReceipt(receipt), ...shown });
  // The payload is JSON already: parsed, it would take many times its size.
  return `${text.slice(0, -1)},"payload":${payload}}`;
}

const heartbeat: Route = route({
  method: 'POST',
  path: '/api/v1/heartbeat',
  name: 'renewLease',
  tag: TAG,
  summary: 'Extend the lease of a running job, and report progress',
  description: 'Send one at least three times per lease. When `cancelRequested` is true, stop and settle.',
  scopes: ['work'],
  body: z.strictObject({
    lease: receiptText,
    extend: schemas.durationSchema.exactOptional().describe('From now on. Default: as long as it was claimed for.'),
    progress: z.unknown().optional().describe('Any JSON, to be shown with the job.'),
  }),
  answers: {
    200: {
      description: 'The lease was extended.',
      schema: z.object({ leaseEndsAt: z.number(), cancelRequested: z.boolean() }),
    },
    409: { description: 'The lease was lost: another worker has the job. Stop.' },
  },
  async handle({ body: { lease, extend, progress }, context }) {
    const receipt = readReceipt(lease, receiptShape);
    const { id, run, worker } = receipt.job;
    context.remoteWorkers.heard(worker);
    const leaseMs = extend === undefined ? receipt.leaseMs : parseDuration(extend, 'extend');
    const sent = progress === undefined ? {} : { progress: JSON.stringify(progress) };
    const [answer] = await context.store.heartbeat([{ id, run, worker, leaseMs, ...sent }]);
    if (answer?.kept !== true) throw leaseLost();
    const { leaseEndsAt, cancelRequested } = answer;
    return { body: { leaseEndsAt, cancelRequested } };
  },
});

function leaseLost(): LeaseLostError {
  return new LeaseLostError('The job has ended, or another worker has it. Nothing was written; do not send it again.');
}

type SettleBody = { readonly lease: string; readonly log?: readonly ReportedLine[] } & (
  | { readonly outcome: 'ack'; readonly result?: unknown }
  | { readonly outcome: 'nack'; readonly error: ReportedError }
  | { readonly outcome: 'snooze'; readonly delay: Duration }
  | { readonly outcome: 'release' | 'cancelled' }
);

const ofEverySettlement = { lease: receiptText, log: schemas.reportedLog.exactOptional() };
const settleBody: z.ZodType<SettleBody> = z.discriminatedUnion('outcome', [
  z.strictObject({ ...ofEverySettlement, outcome: z.literal('ack'), result: z.unknown().optional() }),
  z.strictObject({ ...ofEverySettlement, outcome: z.literal('nack'), error: schemas.reportedError }),
  z.strictObject({ ...ofEverySettlement, outcome: z.literal('snooze'), delay: schemas.durationSchema }),
  z.strictObject({ ...ofEverySettlement, outcome: z.enum(['release', 'cancelled']) }),
]) as z.ZodType<SettleBody>;

const settle: Route = route({
  method: 'POST',
  path: '/api/v1/settle',
  name: 'settleRun',
  tag: TAG,
  summary: 'Say how a run ended; the server decides what follows',
  description:
    'ack: it worked. nack: it failed; say how, and the policy of the job decides. snooze: run it later, uncounted. release: hand it back, uncounted. cancelled: it stopped because it was told to. Safe to send again.',
  scopes: ['work'],
  body: settleBody,
  answers: {
    200: {
      description: 'The outcome is on record.',
      schema: z.object({
        decision: z.enum(['complete', 'retry', 'dead', 'defer', 'snooze', 'release', 'cancel']),
        delayMs: z.number().nullable(),
        rule: z.string(),
      }),
    },
    409: { description: 'The lease was lost: another worker has the job.' },
  },
  async handle({ body, context }) {
    const receipt = readReceipt(body.lease, receiptShape);
    context.remoteWorkers.heard(receipt.job.worker);
    const more = {
      ...(body.outcome === 'ack' && { result: body.result }),
      ...(body.log !== undefined && { log: body.log }),
    };
    const { settlement, answer } = await context.runs.settle(receipt, outcomeOf(body, receipt, context), more);
    if (answer === 'stale') throw leaseLost();
    if (answer === 'cancelled') return { body: { decision: 'cancel', delayMs: null, rule: 'cancel requested' } };
    return { body: { ...describeDecision(settlement.decision), rule: settlement.decision.rule } };
  },
});

function outcomeOf(body: SettleBody, receipt: Receipt, { runs }: ServerContext): Outcome {
  switch (body.outcome) {
    case 'ack':
      return { kind: 'completed' };
    case 'nack':
      return runs.failed(receipt, body.error);
    case 'snooze':
      return { kind: 'snoozed', delayMs: parseDuration(body.delay, 'delay') };
    case 'release':
      return { kind: 'released', because: { kind: 'shutdown' } };
    case 'cancelled':
      return { kind: 'cancelled', error: null };
  }
}

const stop: Route = route({
  method: 'DELETE',
  path: '/api/v1/workers/{id}',
  name: 'stopWorker',
  tag: TAG,
  summary: 'Say that a worker that speaks HTTP has stopped',
  description: 'It leaves the list of workers at once. One that just ends is listed as lost for an hour.',
  scopes: ['work'],
  params: schemas.idParams,
  answers: { 200: { description: 'It is not listed any more.', schema: z.object({ stopped: z.literal(true) }) } },
  async handle({ params: { id }, principal, context }) {
    if (await context.remoteWorkers.stopped(id, principal)) return { body: { stopped: true } };
    throw new ProblemError(404, 'NOT_FOUND', 'Expected a worker that speaks HTTP and is listed, got another name.');
  },
});

export const workRoutes: readonly Route[] = [claim, heartbeat, settle, stop];
