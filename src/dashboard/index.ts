/** The dashboard: pages for people, beside the HTTP API that they use. */
import type { Mulligan } from '../mulligan.ts';
import type { ServerOptions } from '../server/options.ts';
import { openServer, type Server } from '../server/server.ts';
import type { Store } from '../store/store.ts';
import { pages } from './pages.ts';

export type { ServerOptions as DashboardOptions } from '../server/options.ts';
export type { RequestEnvironment, Server } from '../server/server.ts';

/**
 * A fetch handler with the dashboard at its root and the HTTP API below it, to be mounted in an application. It is what
 * `createServer` of `mulligan/server` makes, and takes the same options, with the pages added.
 * @example const dashboard = await createDashboard(mulligan, { tokenFile: 'tokens', basePath: '/queue' })
 */
export function createDashboard(target: Mulligan | Store, options: ServerOptions = {}): Promise<Server> {
  return openServer(target, options, pages);
}
