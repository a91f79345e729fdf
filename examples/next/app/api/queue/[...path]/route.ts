// The HTTP API of a queue as a route handler of Next.js, at /api/queue/...: save it as app/api/queue/[...path]/route.ts.
// QUEUE_URL is the database, QUEUE_TOKENS a file that `mulligan token create` wrote, QUEUE_HOST the name of your site.

import { Mulligan } from 'mulligan';
import { createServer, type Server } from 'mulligan/server';

// Handlers need Node.js: the queue keeps connections open.
export const runtime = 'nodejs';
export const dynamic = 'force-dynamic';

/** One for the process: in development, a module is loaded again with every change. */
const shared = globalThis as { queueServer?: Promise<Server> };

async function open(): Promise<Server> {
  const { QUEUE_URL = 'sqlite:jobs.db', QUEUE_TOKENS = 'tokens', QUEUE_HOST = 'localhost' } = process.env;
  const mulligan = await Mulligan.open(QUEUE_URL);
  return createServer(mulligan, { basePath: '/api/queue', tokenFile: QUEUE_TOKENS, hosts: [QUEUE_HOST] });
}

async function handle(request: Request): Promise<Response> {
  shared.queueServer ??= open();
  return (await shared.queueServer).fetch(request);
}

export { handle as DELETE, handle as GET, handle as POST, handle as PUT };
