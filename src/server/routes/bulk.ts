import { z } from 'zod';
import type { BulkProgress, BulkResult } from '../../bulk/bulk.ts';
import type { Selection } from '../../bulk/selection.ts';
import { states } from '../../job.ts';
import type { BulkOptions, RedriveOptions } from '../../operate.ts';
import { deadReasons } from '../../retry/decision.ts';
import type { Operation } from '../../store/store.ts';
import { PAGE_IN_MEMORY } from '../budget.ts';
import { type Call, type Route, route, type ServerContext } from '../route.ts';
import * as schemas from '../schemas.ts';
import { listJobs, listSchema, shownJob } from './job-lists.ts';

/* Dead letters, and actions on many jobs at once. Each leaves an operation on record. */

const background = z
  .boolean()
  .exactOptional()
  .describe('Answer when it has begun, with status 202; the audit shows how far it is. Without it, answer at its end.');
const selectionFields = {
  ids: z.array(schemas.jobId).min(1).max(10_000).exactOptional(),
  name: schemas.jobName.exactOptional(),
  queue: schemas.jobName.exactOptional(),
  reason: z.enum(deadReasons).exactOptional(),
  error: schemas.jobName.exactOptional(),
  message: schemas.jobName.exactOptional(),
  tag: schemas.jobName.exactOptional(),
  key: schemas.jobName.exactOptional(),
  since: schemas.moment.exactOptional(),
  until: schemas.moment.exactOptional(),
  attempts: z.int().min(0).max(schemas.LARGEST_COUNT).exactOptional().describe('At least so many attempts were spent.'),
  limit: z.int().min(1).max(schemas.LARGEST_COUNT).exactOptional(),
  dryRun: z.boolean().exactOptional().describe('Only count the jobs, and show a few of them.'),
  background,
};
const rate = z
  .string()
  .regex(/^\d+(\.\d+)?\/(s|m|h)$/)
  .describe("Spreads the due times: '50/s'.");
const deadField = z.literal('dead').exactOptional().describe('Only dead jobs are meant, said or not.');
const stateField = z.array(z.enum(states)).min(1).exactOptional();

type Bulk = Selection & { readonly dryRun?: boolean; readonly background?: boolean };
const cancelBody: z.ZodType<Bulk> = z.strictObject({
  ...selectionFields,
  state: stateField,
}) as unknown as z.ZodType<Bulk>;
const discardBody: z.ZodType<Bulk> = z.strictObject({
  ...selectionFields,
  state: deadField,
}) as unknown as z.ZodType<Bulk>;
const runNowBody: z.ZodType<Bulk> = z.strictObject({
  ...selectionFields,
  state: stateField,
  rate: rate.exactOptional(),
}) as unknown as z.ZodType<Bulk>;
const redriveBody: z.ZodType<RedriveOptions & Bulk> = z.strictObject({
  ...selectionFields,
  state: deadField,
  rate: rate.exactOptional(),
  keepAttempts: z.boolean().exactOptional(),
  canary: z
    .int()
    .min(1)
    .max(1_000)
    .exactOptional()
    .describe('Redrive so many first, and the rest only when all of these have completed.'),
  canaryTimeout: schemas.durationSchema.exactOptional(),
  edit: z.unknown().optional().describe('Another payload, for a single job.'),
}) as unknown as z.ZodType<RedriveOptions & Bulk>;

const result = z.object({
  dryRun: z.boolean(),
  count: z.int(),
  isExact: z.boolean(),
  ids: z.array(schemas.jobId),
  samples: z.array(schemas.job),
  skipped: z.array(z.object({ id: schemas.jobId, why: z.string() })),
  cancelling: z.int(),
  dueUntil: z.int().nullable().describe('With a rate: when the last of them is due, at the latest.'),
  others: z.array(z.object({ id: z.string(), state: z.string(), use: z.string().nullable() })),
  operation: z.unknown(),
  resumed: z.boolean().describe('True when it continued what an earlier request had not finished.'),
  stopped: z.string().nullable(),
});
const answers = {
  200: { description: 'What was done, and what was not.', schema: result },
  202: { description: 'It has begun, in the background.', schema: z.object({ operation: z.unknown() }) },
  409: { description: 'An unfinished order of the same jobs has other options.' },
};

interface BulkAction<Body> {
  readonly path: string;
  readonly name: string;
  readonly tag: string;
  readonly summary: string;
  readonly body: z.ZodType<Body>;
  readonly act: (
    context: ServerContext,
    body: Omit<Body, 'background'> & Pick<BulkOptions, 'by' | 'signal' | 'onProgress'>,
  ) => Promise<BulkResult>;
}

function bulkRoute<Body extends Bulk>({ act, ...spec }: BulkAction<Body>): Route {
  return route({
    ...spec,
    method: 'POST',
    description: 'By the same conditions as the list. When the connection breaks, the same request continues.',
    scopes: ['admin'],
    answers,
    async handle({ body, by, context }: Call<unknown, unknown, Body>) {
      const { background: isApart = false, ...rest } = body;
      const order = { ...rest, by, signal: context.closing };
      if (isApart && body.dryRun !== true) {
        const operation = await context.background.start<Operation | null>(async (begun) => {
          const onProgress = (progress: BulkProgress): void => begun(progress.operation);
          return (await act(context, { ...order, onProgress })).operation;
        });
        return { status: 202, body: { operation } };
      }
      const done = await act(context, order);
      return { body: { ...done, samples: done.samples.map((job) => shownJob(job, context)) } };
    },
  });
}

const list: Route = route({
  method: 'GET',
  path: '/api/v1/dead',
  name: 'listDead',
  tag: 'dead letters',
  summary: 'List dead jobs, the newest dead first',
  scopes: ['read'],
  query: listSchema,
  answerBytes: PAGE_IN_MEMORY,
  answers: { 200: { description: 'A page of jobs.', schema: schemas.pageOf(schemas.job) } },
  handle: async (call) => ({ body: await listJobs(call, { state: 'dead' }) }),
});

export const bulkRoutes: readonly Route[] = [
  list,
  bulkRoute({
    path: '/api/v1/dead/redrive',
    name: 'redriveDead',
    tag: 'dead letters',
    summary: 'Bring dead jobs back',
    body: redriveBody,
    act: ({ mulligan }, body) => mulligan.dead.redrive(body),
  }),
  bulkRoute({
    path: '/api/v1/dead/discard',
    name: 'discardDead',
    tag: 'dead letters',
    summary: 'Delete dead jobs for good',
    body: discardBody,
    act: ({ mulligan }, body) => mulligan.dead.discard(body),
  }),
  bulkRoute({
    path: '/api/v1/jobs/cancel',
    name: 'cancelJobs',
    tag: 'jobs',
    summary: 'Cancel many jobs',
    body: cancelBody,
    act: ({ mulligan }, body) => mulligan.jobs.cancel(body),
  }),
  bulkRoute({
    path: '/api/v1/jobs/run-now',
    name: 'runJobsNow',
    tag: 'jobs',
    summary: 'Let many scheduled or retrying jobs start now; of running ones the next wait ends at once',
    body: runNowBody,
    act: ({ mulligan }, body) => mulligan.jobs.runNow(body),
  }),
];
