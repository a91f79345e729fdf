import { z } from 'zod';
import { newOrder } from '../../audit.ts';
import { type Duration, parseDuration } from '../../duration.ts';
import type { EnqueueOptions } from '../../enqueue-options.ts';
import { JobNotFoundError, ResultTimeoutError } from '../../errors.ts';
import { isTerminal } from '../../job.ts';
import { waitReasons } from '../../observe/wait-reasons.ts';
import { LOGS_SHOWN } from '../../operate.ts';
import { JOB_IN_MEMORY, ROWS_IN_MEMORY } from '../budget.ts';
import { ProblemError } from '../problem.ts';
import { type Route, route, type ServerContext } from '../route.ts';
import * as schemas from '../schemas.ts';
import { jobListRoutes, shownJob, shownLog } from './job-lists.ts';

const TAG = 'jobs';
const IDEMPOTENCY_KEY = 'idempotency-key';
const idempotencyHeader = {
  name: IDEMPOTENCY_KEY,
  description:
    'Makes it safe to send the request again: the same key yields the same job, for as long as that is kept.',
};

const enqueue: Route = route({
  method: 'POST',
  path: '/api/v1/jobs',
  name: 'enqueueJob',
  tag: TAG,
  summary: 'Enqueue a job',
  description: 'Once answered, the job is durable. With a `key` that another live job holds, that job is answered.',
  scopes: ['write'],
  headers: [idempotencyHeader],
  body: schemas.enqueueBody,
  answers: {
    201: { description: 'The job was stored.', schema: schemas.enqueued },
    200: { description: 'A job of this key was there before.', schema: schemas.enqueued },
  },
  async handle({ body: { name, input, ...options }, request, context }) {
    const answer = await context.mulligan.enqueue(name, input, withKey(options, request, ''));
    return { status: answer.existed ? 200 : 201, body: answer };
  },
});

const enqueueMany: Route = route({
  method: 'POST',
  path: '/api/v1/jobs/batch',
  name: 'enqueueJobs',
  tag: TAG,
  summary: 'Enqueue many jobs of one name',
  description: 'All are checked before the first is stored.',
  scopes: ['write'],
  headers: [idempotencyHeader],
  body: schemas.enqueueManyBody,
  answers: {
    200: { description: 'In the order of the request.', schema: z.object({ jobs: z.array(schemas.enqueued) }) },
  },
  async handle({ body: { name, jobs }, request, context }) {
    const keyed = jobs.map(({ input, ...options }, index) => ({ input, ...withKey(options, request, `#${index}`) }));
    return { body: { jobs: await context.mulligan.enqueueMany(name, keyed) } };
  },
});

/** The header is a key that is held for as long as the job is kept, so that a request sent again finds its job. */
function withKey<Options extends EnqueueOptions>(options: Options, request: Request, suffix: string): Options {
  const given = request.headers.get(IDEMPOTENCY_KEY);
  if (given === null) return options;
  if (options.key !== undefined) {
    throw new ProblemError(400, 'BAD_REQUEST', 'Expected key in the body or the header Idempotency-Key, got both.');
  }
  return { ...options, key: `${given}${suffix}`, keyUntil: 'pruned' };
}

const get: Route = route({
  method: 'GET',
  path: '/api/v1/jobs/{id}',
  name: 'getJob',
  tag: TAG,
  summary: 'One job',
  scopes: ['read'],
  params: schemas.idParams,
  answerBytes: JOB_IN_MEMORY,
  answers: { 200: { description: 'The job.', schema: schemas.job } },
  async handle({ params: { id }, context }) {
    const job = await context.mulligan.jobs.get(id);
    if (job === null) throw unknownJob(id);
    return { body: shownJob(job, context) };
  },
});

function unknownJob(id: string): JobNotFoundError {
  return new JobNotFoundError(id, 'Expected the id of a job, got one that no job has.');
}

const ledger: Route = route({
  method: 'GET',
  path: '/api/v1/jobs/{id}/runs',
  name: 'listRuns',
  tag: TAG,
  summary: 'The ledger of a job: what each run did, and what was decided',
  scopes: ['read'],
  params: schemas.idParams,
  answerBytes: ROWS_IN_MEMORY,
  answers: { 200: { description: 'Oldest run first.', schema: z.object({ runs: z.array(schemas.runRecord) }) } },
  async handle({ params: { id }, context }) {
    const runs = await context.mulligan.jobs.runs(id);
    if (runs.length === 0 && (await context.mulligan.jobs.get(id)) === null) throw unknownJob(id);
    return { body: { runs } };
  },
});

const logs: Route = route({
  method: 'GET',
  path: '/api/v1/jobs/{id}/logs',
  name: 'listLogs',
  tag: TAG,
  summary: 'What the runs of a job logged',
  description: 'The last lines of each run that has ended. A run that crashed has none.',
  scopes: ['read'],
  params: schemas.idParams,
  answerBytes: ROWS_IN_MEMORY,
  query: z.strictObject({
    limit: z.coerce.number().int().min(1).max(1_000).default(LOGS_SHOWN).describe('Of at most so many runs.'),
  }),
  answers: { 200: { description: 'Newest run first.', schema: z.object({ logs: z.array(schemas.runLog) }) } },
  async handle({ params: { id }, query: { limit }, context }) {
    const found = await context.mulligan.jobs.logs(id, limit);
    if (found.length === 0 && (await context.mulligan.jobs.get(id)) === null) throw unknownJob(id);
    return { body: { logs: found.map((log) => shownLog(log, context)) } };
  },
});

const waits: Route = route({
  method: 'GET',
  path: '/api/v1/jobs/{id}/waits',
  name: 'listWaits',
  tag: TAG,
  summary: 'Why a job that waits does not run',
  scopes: ['read'],
  params: schemas.idParams,
  answers: {
    200: {
      description: 'All that keeps it waiting; none when it runs or has ended.',
      schema: z.object({
        reasons: z.array(
          z.object({
            kind: z.enum(['due', 'aside', 'paused', 'gate', 'limit', 'unserved', 'next']),
            text: z.string(),
            about: z.string().nullable().describe('The queue, gate or limit.'),
            until: z.number().nullable(),
          }),
        ),
      }),
    },
  },
  async handle({ params: { id }, context: { mulligan } }) {
    const [job, runs] = await Promise.all([mulligan.jobs.get(id), mulligan.jobs.runs(id)]);
    if (job === null) throw unknownJob(id);
    const reasons = await waitReasons(mulligan, job, runs, (at) => `at ${new Date(at).toISOString()}`);
    return { body: { reasons } };
  },
});

const reveal: Route = route({
  method: 'POST',
  path: '/api/v1/jobs/{id}/reveal',
  name: 'revealJob',
  tag: TAG,
  summary: 'Show what is redacted of a job',
  description: 'Leaves an operation on record: who has seen it, and when.',
  scopes: ['admin'],
  params: schemas.idParams,
  answerBytes: JOB_IN_MEMORY,
  body: z.strictObject({}),
  answers: {
    200: {
      description: 'As it is stored.',
      schema: z.object({
        payload: z.unknown(),
        progress: z.unknown(),
        result: z.unknown(),
        logs: z.array(schemas.runLog),
      }),
    },
  },
  async handle({ params: { id }, by, context: { mulligan, store, clock } }) {
    const job = await mulligan.jobs.get(id);
    if (job === null) throw unknownJob(id);
    // On record first: what cannot be recorded is not shown.
    const { note, ...order } = newOrder(clock, by, `the payload of ${job.name} was shown`);
    const nothing = { part: 0, intervalMs: 0, keepAttempts: false, canary: 0 };
    await store.change({
      ...nothing,
      ...order,
      order: order.id,
      action: 'reveal',
      selection: { ids: [id] },
      stop: note as string,
    });
    const { payload, progress, result } = job;
    return { body: { payload, progress, result, logs: await mulligan.jobs.logs(id) } };
  },
});

/** Enough to read a job that has ended. */
const LEAST_LOOK_MS = 5_000;

const result: Route = route({
  method: 'GET',
  path: '/api/v1/jobs/{id}/result',
  name: 'getResult',
  tag: TAG,
  summary: 'What the handler of a job returned; waits for it',
  scopes: ['read'],
  params: schemas.idParams,
  query: z.strictObject({ wait: schemas.durationQuery.exactOptional().describe('How long to wait. Default 0.') }),
  answers: {
    200: { description: 'The job has completed.', schema: z.object({ result: z.unknown() }) },
    202: { description: 'It has not ended yet. Ask again.', schema: z.object({ ended: z.literal(false) }) },
  },
  async handle({ params: { id }, query: { wait = '0s' }, request, context }) {
    const timeout = waitOf(wait, context);
    const signal = AbortSignal.any([request.signal, context.closing]);
    const job = timeout === 0 ? await context.mulligan.jobs.get(id) : null;
    if (job !== null && !isTerminal(job.state)) return { status: 202, body: { ended: false } };
    try {
      const value = await context.mulligan.result(id, { timeout: Math.max(timeout, LEAST_LOOK_MS), signal });
      return { body: { result: context.redact(value) ?? null } };
    } catch (error) {
      if (error instanceof ResultTimeoutError || signal.aborted) return { status: 202, body: { ended: false } };
      throw error;
    }
  },
});

/** A request waits no longer than the server lets it. */
export function waitOf(wait: Duration, { longestWaitMs }: Pick<ServerContext, 'longestWaitMs'>): number {
  return Math.min(longestWaitMs, parseDuration(wait, 'wait'));
}

const cancel: Route = route({
  method: 'POST',
  path: '/api/v1/jobs/{id}/cancel',
  name: 'cancelJob',
  tag: TAG,
  summary: 'Cancel a job',
  description: 'A waiting job ends at once; a running one is told to stop. Leaves an operation on record.',
  scopes: ['admin'],
  params: schemas.idParams,
  body: z.strictObject({}),
  answers: { 200: { description: 'What became of it.', schema: z.object({ result: z.string() }) } },
  async handle({ params: { id }, by, context }) {
    const { ids, cancelling, others } = await context.mulligan.jobs.cancel({ ids: [id], by });
    if (ids.length > 0) return { body: { result: cancelling > 0 ? 'cancelling' : 'cancelled' } };
    if (others[0]?.state === 'not-found') throw unknownJob(id);
    return { body: { result: 'already-ended' } };
  },
});

const runNow: Route = route({
  method: 'POST',
  path: '/api/v1/jobs/{id}/run-now',
  name: 'runJobNow',
  tag: TAG,
  summary: 'Let a scheduled or retrying job start now; of a running one the next wait ends at once',
  scopes: ['admin'],
  params: schemas.idParams,
  body: z.strictObject({}),
  answers: {
    200: {
      description: 'Whether it starts sooner: now, or when its run ends with a wait.',
      schema: z.object({ changed: z.boolean() }),
    },
  },
  async handle({ params: { id }, by, context }) {
    const { ids, others } = await context.mulligan.jobs.runNow({ ids: [id], by });
    if (others[0]?.state === 'not-found') throw unknownJob(id);
    return { body: { changed: ids.length > 0 } };
  },
});

/** `batch` and `count` stand before `{id}`: the first that matches is taken. */
export const jobRoutes: readonly Route[] = [
  enqueue,
  enqueueMany,
  ...jobListRoutes,
  get,
  ledger,
  logs,
  waits,
  reveal,
  result,
  cancel,
  runNow,
];
