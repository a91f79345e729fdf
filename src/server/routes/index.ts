import type { Route } from '../route.ts';
import { bulkRoutes } from './bulk.ts';
import { documentRoutes } from './documents.ts';
import { drainRoutes } from './drain.ts';
import { figureRoutes } from './figures.ts';
import { healthRoutes } from './health.ts';
import { jobRoutes } from './jobs.ts';
import { observeRoutes } from './observe.ts';
import { operateRoutes } from './operate.ts';
import { queueRoutes } from './queues.ts';
import { sessionRoutes } from './session.ts';
import { storeRoutes } from './store.ts';
import { workRoutes } from './work.ts';

/** Every route of the server. Of two that match, the first is taken: fixed paths stand before those with an id. */
export const routes: readonly Route[] = [
  ...bulkRoutes,
  ...jobRoutes,
  ...workRoutes,
  ...queueRoutes,
  ...operateRoutes,
  ...observeRoutes,
  ...sessionRoutes,
  ...figureRoutes,
  ...drainRoutes,
  ...storeRoutes,
  ...healthRoutes,
  ...documentRoutes(() => routes),
];
