import { z } from 'zod';
import { packageVersion } from '../../version.ts';
import { type Route, route } from '../route.ts';
import { scopes } from '../security/scopes.ts';

const session: Route = route({
  method: 'GET',
  path: '/api/v1/session',
  name: 'getSession',
  tag: 'observe',
  summary: 'Who the caller is to this server, and what it may do',
  scopes: ['read', 'write', 'work'],
  answers: {
    200: {
      description: 'The caller. `isLocal`: a program on this machine, where no tokens are needed.',
      schema: z.object({
        name: z.string(),
        scopes: z.array(z.enum(scopes)),
        isLocal: z.boolean(),
        version: z.string(),
        store: z.string(),
        now: z.number().describe('Milliseconds since the epoch, by the clock of the server.'),
      }),
    },
  },
  handle: ({ principal, context: { clock, store } }) => ({
    body: {
      name: principal.name,
      scopes: [...principal.scopes],
      isLocal: principal.isLocal,
      version: packageVersion(),
      store: store.kind,
      now: clock.now(),
    },
  }),
});

export const sessionRoutes: readonly Route[] = [session];
