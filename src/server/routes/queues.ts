import { z } from 'zod';
import { knownQueues } from '../../known-queues.ts';
import { ProblemError } from '../problem.ts';
import { type Route, route } from '../route.ts';
import * as schemas from '../schemas.ts';
import { listRoute } from './operate.ts';

const queues = listRoute(
  { path: '/api/v1/queues', name: 'listQueues', tag: 'queues', summary: 'All queues, and whether they are paused' },
  ({ mulligan }) => mulligan.queues.list(),
);

const queueOrders = (['pause', 'resume'] as const).map((order) =>
  route({
    method: 'POST',
    path: `/api/v1/queues/{name}/${order}`,
    name: `${order}Queue`,
    tag: 'queues',
    summary: order === 'pause' ? 'Let no job of a queue start' : 'Let jobs of a queue start again',
    scopes: ['admin'],
    params: schemas.nameParams,
    body: z.strictObject({
      force: z.boolean().exactOptional().describe('Also when there is no queue of that name yet.'),
    }),
    answers: { 200: { description: 'Done.', schema: z.object({ queue: z.string(), paused: z.boolean() }) } },
    async handle({ params: { name }, body: { force }, by, context: { mulligan } }) {
      // A misspelt name would be paused without a word, and the queue that was meant would go on.
      if (!force && !(await knownQueues(mulligan)).includes(name)) {
        throw new ProblemError(404, 'NOT_FOUND', 'Expected the name of a queue, got another one. See force.');
      }
      await mulligan.queues[order](name, { by });
      return { body: { queue: name, paused: order === 'pause' } };
    },
  }),
);

export const queueRoutes: readonly Route[] = [queues, ...queueOrders];
