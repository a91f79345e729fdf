import { z } from 'zod';
import { parseDuration } from '../../duration.ts';
import { ProblemError } from '../problem.ts';
import { type Route, route } from '../route.ts';
import * as schemas from '../schemas.ts';

const LONGEST_DRAIN_MS = 15 * 60_000;

const drain: Route = route({
  method: 'POST',
  path: '/drain',
  name: 'drain',
  tag: 'work',
  summary: 'Run the jobs that are due, in the server itself, and answer when none is left',
  description: 'For a cron of a serverless platform. Only where the application has given the server handlers.',
  scopes: ['work'],
  body: z.strictObject({
    maxMs: schemas.durationSchema.default('1m').describe('No job starts later than this. At most 15m.'),
    maxJobs: z.int().min(1).max(1_000_000).exactOptional().describe('No more jobs than this start.'),
  }),
  answers: {
    200: {
      description: 'How the runs ended, and whether nothing that is due is left.',
      schema: z.object({
        completed: z.int(),
        retrying: z.int(),
        dead: z.int(),
        others: z.int(),
        isDone: z.boolean(),
      }),
    },
  },
  async handle({ body: { maxMs, ...rest }, context: { mulligan, definitions } }) {
    if (![...definitions.values()].some(({ run }) => run !== undefined)) {
      const detail = 'This server has no handlers, so it can run no jobs. Workers claim them.';
      throw new ProblemError(409, 'NO_DEFINITIONS', detail);
    }
    return {
      body: await mulligan.drain({ ...rest, maxMs: Math.min(LONGEST_DRAIN_MS, parseDuration(maxMs, 'maxMs')) }),
    };
  },
});

export const drainRoutes: readonly Route[] = [drain];
