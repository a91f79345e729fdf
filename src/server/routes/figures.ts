import { z } from 'zod';
import type { AdviseOptions } from '../../advise/index.ts';
import { lanes } from '../../lane.ts';
import type { ErrorHistoryOptions } from '../../observe/error-history.ts';
import type { ForecastOptions } from '../../observe/forecast.ts';
import type { HistoryOptions } from '../../observe/history.ts';
import { type Route, route } from '../route.ts';
import * as schemas from '../schemas.ts';

/* Figures for charts: what comes, and what has been. */

const counted = { count: z.int(), isExact: z.boolean().describe('False: at least so many.') };
const timestamp = z.number().describe('Milliseconds since the epoch, by the clock of the store.');
const expected = z.int().describe('`count`; where counting was stopped, an estimate.');
const ended = z.object({ completed: z.int(), dead: z.int(), cancelled: z.int() });
const forecastAnswer = z.object({
  now: timestamp,
  isComplete: z.boolean(),
  backlog: z.object(counted),
  running: z.object(counted),
  ended,
  queues: z.array(z.object({ queue: z.string(), running: z.int(), ended })).describe('Jobs that do not wait.'),
  lanes: z.array(
    z.object({
      queue: z.string(),
      lane: z.enum(lanes),
      due: z.object(counted),
      later: z.object(counted),
      oldestDueAt: timestamp.nullable(),
    }),
  ),
  retries: z.array(z.object({ at: timestamp, ...counted, expected })).describe('Of each of the next 60 minutes.'),
  series: z.array(
    z.object({
      resource: z.string().nullable(),
      name: z.string(),
      total: z.object({ ...counted, expected }),
      minutes: z.array(z.int()),
    }),
  ),
  arrivedPerMinute: z.number(),
  endedPerMinute: z.number(),
  outlook: z.enum(['empty', 'draining', 'growing', 'stalled']),
  emptyAt: timestamp.nullable(),
});

const forecast: Route = route({
  method: 'GET',
  path: '/api/v1/forecast',
  name: 'getForecast',
  tag: 'observe',
  summary: 'What waits, which retries fall due within the next hour, and when the backlog will be empty',
  description:
    'It costs the same with a thousand waiting jobs and a million: a count with `isExact` false was stopped, and is a lower bound.',
  scopes: ['read'],
  query: z.strictObject({ queue: schemas.jobName.exactOptional() }) as z.ZodType<ForecastOptions>,
  answers: {
    200: { description: 'By queue and lane; retries by minute, and by resource and name.', schema: forecastAnswer },
  },
  handle: async ({ query, context }) => ({ body: await context.mulligan.forecast(query) }),
});

const figures = {
  runs: z.int(),
  completed: z.int(),
  failed: z.int(),
  retries: z.int(),
  dead: z.int(),
  runMs: z.number(),
  p50Ms: z.number().nullable(),
  p95Ms: z.number().nullable(),
};
const historyAnswer = z.object({
  from: timestamp,
  to: timestamp,
  stepMs: z.int(),
  now: timestamp,
  upTo: timestamp,
  total: z.object(figures),
  points: z.array(z.object({ at: timestamp, ...figures })),
  names: z.array(z.object({ name: z.string(), ...figures })),
  others: z.object(figures).nullable(),
});
const historyQuery: z.ZodType<HistoryOptions> = z.strictObject({
  from: schemas.moment.exactOptional(),
  to: schemas.moment.exactOptional(),
  step: schemas.durationQuery.exactOptional(),
  name: schemas.jobName.exactOptional(),
}) as unknown as z.ZodType<HistoryOptions>;

const history: Route = route({
  method: 'GET',
  path: '/api/v1/history',
  name: 'getHistory',
  tag: 'observe',
  summary: 'Runs, failures, retries and run times over time, in at most 500 steps, and by job name',
  description:
    'From what was rolled up by minute (for 2 days) and by hour (for 90): it outlives the jobs. Without `step`, one is chosen that gives at most 300 points. Without `from`, the last hour.',
  scopes: ['read'],
  query: historyQuery,
  answers: { 200: { description: 'Every step of the range, and its names.', schema: historyAnswer } },
  handle: async ({ query, context }) => ({ body: await context.mulligan.history(query) }),
});

const errorHistory: Route = route({
  method: 'GET',
  path: '/api/v1/history/errors',
  name: 'getErrorHistory',
  tag: 'errors',
  summary: 'Failed runs over time by kind of error, job name and queue, in at most 200 steps',
  description:
    'From what was rolled up by 5 minutes (for 2 days) and by hour (for 90): it outlives jobs and groups. Without `step`, one is chosen that gives about 60 steps at most. Without `from`, the last 24 hours.',
  scopes: ['read'],
  query: z.strictObject({
    error: schemas.jobName.exactOptional().describe('A fingerprint, or the start of one.'),
    name: schemas.jobName.exactOptional(),
    queue: schemas.jobName.exactOptional(),
    from: schemas.moment.exactOptional(),
    to: schemas.moment.exactOptional(),
    step: schemas.durationQuery.exactOptional(),
  }) as unknown as z.ZodType<ErrorHistoryOptions>,
  answers: {
    200: {
      description: 'Those that failed in this time, the most failures first.',
      schema: z.object({
        from: timestamp,
        to: timestamp,
        stepMs: z.int(),
        now: timestamp,
        upTo: timestamp,
        series: z.array(
          z.object({
            fingerprint: z.string(),
            name: z.string(),
            queue: z.string(),
            failures: z.array(z.int()).describe('Failed runs, for every step from `from` to `to`.'),
            dead: z.array(z.int()).describe('Those of them with which their job died.'),
          }),
        ),
      }),
    },
  },
  handle: async ({ query, context }) => ({ body: await context.mulligan.errors.history(query) }),
});

const advice: Route = route({
  method: 'GET',
  path: '/api/v1/advice',
  name: 'getAdvice',
  tag: 'observe',
  summary: 'What the ledger says about retry policies, with proposals',
  description: 'It reads the ledgers of a bounded number of jobs, drawn evenly where there are more: not for polling.',
  scopes: ['read'],
  query: z.strictObject({
    name: schemas.jobName.exactOptional(),
    days: z.coerce.number().min(0.001).max(3_650).exactOptional().describe('How far back to look. Default 30.'),
  }) as z.ZodType<AdviseOptions>,
  answers: { 200: { description: 'By job name, those whose retries cost the most first.', schema: z.looseObject({}) } },
  handle: async ({ query, context }) => ({ body: await context.mulligan.advise(query) }),
});

export const figureRoutes: readonly Route[] = [forecast, history, errorHistory, advice];
