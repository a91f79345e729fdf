import { z } from 'zod';
import type { ErrorListOptions } from '../../error-groups.ts';
import type { Operation } from '../../store/store.ts';
import { streamedEvents } from '../event-hub.ts';
import { eventStream } from '../event-stream.ts';
import { ProblemError } from '../problem.ts';
import { type Route, route } from '../route.ts';
import { scaleOf } from '../scale.ts';
import * as schemas from '../schemas.ts';

/* What happens, and what has happened. */

const anything = z.looseObject({});
const listed = { 200: { description: 'The list.', schema: z.object({ items: z.array(anything) }) } };
const page = z.coerce.number().int().min(1).max(1_000).default(50);

const errorQuery: z.ZodType<ErrorListOptions> = z.strictObject({
  name: schemas.jobName.exactOptional(),
  queue: schemas.jobName.exactOptional(),
  state: z.enum(['failing', 'dead']).exactOptional(),
  since: schemas.moment.exactOptional(),
  limit: page,
}) as unknown as z.ZodType<ErrorListOptions>;

const errors: Route = route({
  method: 'GET',
  path: '/api/v1/errors',
  name: 'listErrors',
  tag: 'errors',
  summary: 'What jobs fail with: errors of one kind are one group, those with the most jobs first',
  scopes: ['read'],
  query: errorQuery,
  answers: listed,
  handle: async ({ query, context }) => ({ body: { items: await context.mulligan.errors.list(query) } }),
});

const error: Route = route({
  method: 'GET',
  path: '/api/v1/errors/{name}',
  name: 'getError',
  tag: 'errors',
  summary: 'One error group, by its fingerprint or the start of it',
  scopes: ['read'],
  params: schemas.nameParams,
  answers: { 200: { description: 'The group.', schema: anything } },
  async handle({ params: { name }, context }) {
    const group = await context.mulligan.errors.show(name);
    if (group === null)
      throw new ProblemError(404, 'NOT_FOUND', 'Expected a fingerprint that a group has, got another one.');
    return { body: group };
  },
});

const stats: Route = route({
  method: 'GET',
  path: '/api/v1/stats',
  name: 'getStats',
  tag: 'observe',
  summary: 'Totals since the store was made, and how many jobs are in each state',
  scopes: ['read'],
  answers: { 200: { description: 'By queue and by name, too.', schema: anything } },
  handle: async ({ context }) => ({ body: await context.mulligan.stats() }),
});

const workers: Route = route({
  method: 'GET',
  path: '/api/v1/workers',
  name: 'listWorkers',
  tag: 'observe',
  summary: 'Workers that have registered and not stopped',
  description: 'Workers that speak HTTP are registered from their claims, up to 1,000 of them: `http` is not null.',
  scopes: ['read'],
  answers: listed,
  handle: async ({ context }) => ({ body: { items: await context.mulligan.workers.list() } }),
});

const audit: Route = route({
  method: 'GET',
  path: '/api/v1/audit',
  name: 'listAudit',
  tag: 'observe',
  summary: 'The record of what operators did: who, from where, what, how many; newest first',
  scopes: ['read'],
  query: z.strictObject({ limit: page }),
  answers: listed,
  handle: async ({ query, context }) => ({ body: { items: await context.mulligan.audit.list(query) } }),
});

const stopOperation: Route = route({
  method: 'POST',
  path: '/api/v1/audit/{id}/stop',
  name: 'stopOperation',
  tag: 'observe',
  summary: 'End an operation that is not finished; what it has changed stays so',
  scopes: ['admin'],
  params: schemas.idParams,
  body: z.strictObject({}),
  answers: { 200: { description: 'The operation.', schema: anything } },
  handle: async ({ params: { id }, by, context }) => ({ body: await context.mulligan.audit.stop(id, { by }) }),
});

const resumeOperation: Route = route({
  method: 'POST',
  path: '/api/v1/audit/{id}/resume',
  name: 'resumeOperation',
  tag: 'observe',
  summary: 'Go on with a bulk action that was stopped, or whose process ended',
  description: 'It goes on in the server; the audit shows how far it is.',
  scopes: ['admin'],
  params: schemas.idParams,
  body: z.strictObject({}),
  answers: { 202: { description: 'The operation that goes on.', schema: anything } },
  async handle({ params: { id }, by, context: { mulligan, background, closing } }) {
    const operation = await background.start<Operation>((begun) =>
      mulligan.audit.resume(id, { by, signal: closing, onProgress: (progress) => begun(progress.operation) }),
    );
    return { status: 202, body: operation };
  },
});

const events: Route = route({
  method: 'GET',
  path: '/api/v1/events',
  name: 'streamEvents',
  tag: 'observe',
  summary: 'Live changes, as Server-Sent Events',
  description: `Events: ${streamedEvents.join(', ')}. With Last-Event-ID the stream continues after that event; \`reset\` says that it cannot, and that lists must be read again. What other processes do is told as \`ended\` only.`,
  scopes: ['read'],
  headers: [{ name: 'last-event-id', description: 'The id of the last event that was seen.' }],
  answers: { 200: { description: 'A stream without end.', type: 'text/event-stream' } },
  handle: ({ request, context: { clock, hub, closing } }) =>
    eventStream({
      clock,
      signals: [request.signal, closing],
      subscribe: (send) => hub.subscribe(request.headers.get('last-event-id'), send),
    }),
});

const scale: Route = route({
  method: 'GET',
  path: '/scale/{name}',
  name: 'getScale',
  tag: 'observe',
  summary: 'How many jobs of a queue could start now, for autoscalers',
  description:
    'Only jobs that are due and admissible count: those behind an open gate, or of a paused queue, do not, so that an outage starts no workers. For KEDA (metrics-api), valueLocation is `admissible`.',
  scopes: ['read'],
  params: schemas.nameParams,
  answers: {
    200: {
      description: 'The figures.',
      schema: z.object({ queue: z.string(), due: z.int(), admissible: z.int(), paused: z.boolean() }),
    },
  },
  handle: async ({ params: { name }, context }) => ({ body: await scaleOf(context.store, name, context.clock.now()) }),
});

export const observeRoutes: readonly Route[] = [
  errors,
  error,
  stats,
  workers,
  audit,
  stopOperation,
  resumeOperation,
  events,
  scale,
];
