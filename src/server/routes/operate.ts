import { z } from 'zod';
import type { LimitChange } from '../../limit/options.ts';
import type { ScheduleOptions } from '../../schedule-options.ts';
import { type GateKind, gateKinds, gateOrders } from '../../store/store.ts';
import { ROWS_IN_MEMORY } from '../budget.ts';
import { ProblemError } from '../problem.ts';
import { type Route, route } from '../route.ts';
import * as schemas from '../schemas.ts';

/* What operators look at and change beside queues: gates, limits, schedules. */

const nothing = z.strictObject({});
const limitQuery = z.coerce.number().int().min(1).max(1_000).default(50);
const anything = z.looseObject({});

export function listRoute(
  { path, name, tag, summary }: Pick<Route, 'path' | 'name' | 'tag' | 'summary'>,
  read: (context: Parameters<Route['handle']>[0]['context']) => Promise<readonly unknown[]>,
): Route {
  const answers = { 200: { description: 'All of them.', schema: z.object({ items: z.array(anything) }) } };
  return route({
    method: 'GET',
    path,
    name,
    tag,
    summary,
    scopes: ['read'],
    answers,
    handle: async ({ context }) => ({ body: { items: await read(context) } }),
  });
}

const gates: Route = route({
  method: 'GET',
  path: '/api/v1/gates',
  name: 'listGates',
  tag: 'gates',
  summary: 'Gates that were heard of lately, those that are not closed first',
  scopes: ['read'],
  query: z.strictObject({ limit: limitQuery, kind: z.enum(gateKinds).exactOptional() }),
  answers: { 200: { description: 'The gates.', schema: z.object({ items: z.array(anything) }) } },
  handle: async ({ query, context }) => ({ body: { items: await context.mulligan.gates.list(query) } }),
});

const kindQuery: z.ZodType<{ kind?: GateKind }> = z.strictObject({ kind: z.enum(gateKinds).exactOptional() });

const gate: Route = route({
  method: 'GET',
  path: '/api/v1/gates/{name}',
  name: 'getGate',
  tag: 'gates',
  summary: 'One gate, why it is as it is, and its history',
  scopes: ['read'],
  params: schemas.nameParams,
  query: kindQuery,
  answers: { 200: { description: 'The gate. One that was not heard of is closed.', schema: anything } },
  handle: async ({ params: { name }, query, context }) => ({ body: await context.mulligan.gates.show(name, query) }),
});

const gateSummaries = {
  open: 'Pin a gate open: nothing of its resource starts',
  close: 'Pin a gate closed: everything of its resource starts',
  unpin: 'Give a gate back to its rules',
  reset: 'Close a gate and let it forget what it saw',
} as const;
const gateRoutes = gateOrders.map((order) =>
  route({
    method: 'POST',
    path: `/api/v1/gates/{name}/${order}`,
    name: `${order}Gate`,
    tag: 'gates',
    summary: gateSummaries[order],
    scopes: ['admin'],
    params: schemas.nameParams,
    body: nothing,
    answers: { 200: { description: 'The gate as it is now.', schema: anything } },
    handle: async ({ params: { name }, by, context }) => ({ body: await context.mulligan.gates[order](name, { by }) }),
  }),
);

const limits = listRoute(
  { path: '/api/v1/limits', name: 'listLimits', tag: 'limits', summary: 'All limits, and how much of each is in use' },
  ({ mulligan }) => mulligan.limits.list(),
);

const limit: Route = route({
  method: 'GET',
  path: '/api/v1/limits/{name}',
  name: 'getLimit',
  tag: 'limits',
  summary: 'One limit and its keys',
  scopes: ['read'],
  params: schemas.nameParams,
  query: z.strictObject({ key: z.string().max(1_000).exactOptional() }),
  answers: { 200: { description: 'The limit.', schema: anything } },
  async handle({ params: { name }, query, context }) {
    const details = await context.mulligan.limits.show(name, query);
    if (details === null) throw new ProblemError(404, 'NOT_FOUND', 'Expected the name of a limit, got another one.');
    return { body: details };
  },
});

const bound = z.int().min(0).nullable().exactOptional();
const limitBody: z.ZodType<LimitChange & { readonly key?: string }> = z.strictObject({
  key: z.string().max(1_000).exactOptional().describe('One key; left out, the limit itself.'),
  concurrency: bound,
  total: bound,
  rate: z
    .strictObject({
      limit: z.number().min(0),
      per: schemas.durationSchema,
      burst: z.number().min(0).exactOptional(),
    })
    .nullable()
    .exactOptional(),
}) as unknown as z.ZodType<LimitChange & { readonly key?: string }>;

const setLimit: Route = route({
  method: 'PUT',
  path: '/api/v1/limits/{name}',
  name: 'setLimit',
  tag: 'limits',
  summary: 'Change what a limit allows, from now on and in all processes',
  scopes: ['admin'],
  params: schemas.nameParams,
  body: limitBody,
  answers: { 200: { description: 'The limit as it is now.', schema: anything } },
  async handle({ params: { name }, body: { key, ...values }, by, context }) {
    return { body: await context.mulligan.limits.set(name, values, { by, ...(key !== undefined && { key }) }) };
  },
});

const resetLimit: Route = route({
  method: 'POST',
  path: '/api/v1/limits/{name}/reset',
  name: 'resetLimit',
  tag: 'limits',
  summary: 'Take away what was set by hand',
  scopes: ['admin'],
  params: schemas.nameParams,
  body: z.strictObject({ key: z.string().max(1_000).exactOptional() }),
  answers: { 200: { description: 'The limit as it is now.', schema: anything } },
  handle: async ({ params: { name }, body, by, context }) => ({
    body: await context.mulligan.limits.reset(name, { ...body, by }),
  }),
});

const schedules: Route = route({
  method: 'GET',
  path: '/api/v1/schedules',
  name: 'listSchedules',
  tag: 'schedules',
  summary: 'Schedules by name',
  scopes: ['read'],
  answerBytes: ROWS_IN_MEMORY,
  query: z.strictObject({ limit: limitQuery, cursor: schemas.jobName.exactOptional() }),
  answers: { 200: { description: 'A page of schedules.', schema: schemas.pageOf(anything) } },
  async handle({ query: { limit, cursor }, context }) {
    const after = cursor === undefined ? {} : { after: cursor };
    const page = await context.mulligan.schedules.list({ limit, ...after });
    const items = page.map((one) => ({ ...one, input: context.redact(one.input) }));
    return { body: { items, next: page.length < limit ? null : (page.at(-1)?.name ?? null) } };
  },
});

const schedule: Route = route({
  method: 'GET',
  path: '/api/v1/schedules/{name}',
  name: 'getSchedule',
  tag: 'schedules',
  summary: 'One schedule, its next times and its last job',
  scopes: ['read'],
  params: schemas.nameParams,
  answers: { 200: { description: 'The schedule.', schema: anything } },
  async handle({ params: { name }, context }) {
    const details = await context.mulligan.schedules.show(name);
    if (details === null) throw unknownSchedule();
    const { schedule: shown, lastJob, ...rest } = details;
    const input = context.redact(shown.input);
    return { body: { schedule: { ...shown, input }, lastJobId: lastJob?.id ?? null, ...rest } };
  },
});

function unknownSchedule(): ProblemError {
  return new ProblemError(404, 'NOT_FOUND', 'Expected the name of a schedule, got another one.');
}

type ScheduleBody = ScheduleOptions & { readonly job: string; readonly input: unknown };
const scheduleBody: z.ZodType<ScheduleBody> = z.strictObject({
  job: schemas.jobName,
  input: z.unknown().default(null),
  cron: schemas.jobName.exactOptional(),
  timezone: schemas.jobName.exactOptional(),
  every: schemas.durationSchema.exactOptional(),
  anchor: schemas.instant.exactOptional(),
  at: schemas.instant.exactOptional(),
  misfire: z.enum(['skip', 'once', 'all']).exactOptional(),
  misfireLimit: z.int().min(1).max(schemas.LARGEST_COUNT).exactOptional(),
  overlap: z.enum(['skip', 'allow']).exactOptional(),
  queue: schemas.jobName.exactOptional(),
  priority: z.int().min(0).max(9).exactOptional(),
  tags: z.array(schemas.jobName).max(100).exactOptional(),
}) as unknown as z.ZodType<ScheduleBody>;

const setSchedule: Route = route({
  method: 'PUT',
  path: '/api/v1/schedules/{name}',
  name: 'setSchedule',
  tag: 'schedules',
  summary: 'Create a schedule, or change it. Give one of cron, every and at',
  scopes: ['admin'],
  params: schemas.nameParams,
  body: scheduleBody,
  answers: { 200: { description: 'The schedule.', schema: anything } },
  async handle({ params: { name }, body: { job, input, ...options }, by, context }) {
    const set = await context.mulligan.schedules.set(name, job, input, options, { by });
    return { body: { ...set, input: context.redact(set.input) } };
  },
});

const removeSchedule: Route = route({
  method: 'DELETE',
  path: '/api/v1/schedules/{name}',
  name: 'removeSchedule',
  tag: 'schedules',
  summary: 'Remove a schedule; jobs that it enqueued stay',
  scopes: ['admin'],
  params: schemas.nameParams,
  body: nothing,
  answers: { 200: { description: 'It is gone.', schema: z.object({ removed: z.literal(true) }) } },
  async handle({ params: { name }, by, context }) {
    if (!(await context.mulligan.schedules.remove(name, { by }))) throw unknownSchedule();
    return { body: { removed: true } };
  },
});

const scheduleSummaries = {
  pause: 'Fire no tick of a schedule until it is resumed',
  resume: 'Go on with a schedule',
  trigger: 'Enqueue the job of a schedule now',
} as const;
const scheduleOrders = (['pause', 'resume', 'trigger'] as const).map((order) =>
  route({
    method: 'POST',
    path: `/api/v1/schedules/{name}/${order}`,
    name: `${order}Schedule`,
    tag: 'schedules',
    summary: scheduleSummaries[order],
    scopes: ['admin'],
    params: schemas.nameParams,
    body: nothing,
    answers: { 200: { description: 'Done.', schema: anything } },
    async handle({ params: { name }, by, context }) {
      const done = await context.mulligan.schedules[order](name, { by });
      return { body: 'input' in done ? { ...done, input: context.redact(done.input) } : done };
    },
  }),
);

export const operateRoutes: readonly Route[] = [
  gates,
  gate,
  ...gateRoutes,
  limits,
  limit,
  setLimit,
  resetLimit,
  schedules,
  schedule,
  setSchedule,
  removeSchedule,
  ...scheduleOrders,
];
