import { z } from 'zod';
import { type Route, route } from '../route.ts';

const TAG = 'health';

const live: Route = route({
  method: 'GET',
  path: '/healthz',
  name: 'getHealth',
  tag: TAG,
  summary: 'Whether the process answers',
  scopes: [],
  answers: { 200: { description: 'It does.', schema: z.object({ status: z.literal('ok') }) } },
  handle: () => ({ body: { status: 'ok' } }),
});

const ready: Route = route({
  method: 'GET',
  path: '/readyz',
  name: 'getReadiness',
  tag: TAG,
  summary: 'Whether the store answers',
  description: 'While it does not, or the server is closing, this is a problem with status 503.',
  scopes: [],
  answers: { 200: { description: 'It does.', schema: z.object({ status: z.literal('ready') }) } },
  async handle({ context }) {
    context.closing.throwIfAborted();
    await context.store.queues();
    return { body: { status: 'ready' } };
  },
});

const metrics: Route = route({
  method: 'GET',
  path: '/metrics',
  name: 'getMetrics',
  tag: TAG,
  summary: 'Metrics of this process and of the store, as Prometheus reads them',
  scopes: ['read'],
  answers: { 200: { description: 'Text exposition format.', type: 'text/plain' } },
  handle: async ({ context }) =>
    new Response((await context.mulligan.metrics()) + context.requests.render(), {
      headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
    }),
});

export const healthRoutes: readonly Route[] = [live, ready, metrics];
