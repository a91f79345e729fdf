import { once } from 'node:events';
import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { systemClock } from '../clock.ts';
import { checkBoolean, checkInteger, checkName, namesOf, readOptions } from '../config.ts';
import { parseDuration } from '../duration.ts';
import { ConfigError } from '../errors.ts';
import type { Mulligan } from '../mulligan.ts';
import type { Store } from '../store/store.ts';
import {
  DEFAULT_PORT,
  readServerOptions,
  type ServeOptions,
  type ServerOptions,
  serverOptionNames,
} from './options.ts';
import { isLoopback } from './security/guard.ts';
import { createServer, type RequestEnvironment, type Server } from './server.ts';

export interface RunningServer {
  readonly url: string;
  readonly port: number;
  /** Takes no more requests, answers those that wait, and ends. It does not close the queue. */
  close(): Promise<void>;
}

/* Bounds on what a slow or hostile client can hold, beside those of the options. */
const IDLE_MS = 65_000;
const LARGEST_HEADERS = 16 * 1_024;
const MOST_HEADERS = 100;
const CHECK_EVERY_MS = 500;
/** Of a server that closes. */
const LAST_ANSWERS_MS = 250;

/**
 * A server as a handler of Node's own requests, for Express, Fastify and the like.
 * @example app.use('/queue', nodeHandler(await createServer(mulligan)))
 */
export function nodeHandler(server: Server): (request: IncomingMessage, response: ServerResponse) => void {
  const listener = getRequestListener(
    (request, environment) => server.fetch(request, environment as RequestEnvironment),
    {
      overrideGlobalObjects: false,
      errorHandler: () => new Response(null, { status: 400 }),
    },
  );
  return (request, response) => void listener(request, response);
}

/**
 * Serves a queue on Node.js.
 * @example const server = await serve(mulligan, { port: 8833 })
 */
export async function serve(target: Mulligan | Store, options: ServeOptions = {}): Promise<RunningServer> {
  const own = namesOf<Omit<ServeOptions, keyof ServerOptions>>({
    host: true,
    port: true,
    dashboard: true,
    maxConnections: true,
    headersTimeout: true,
    requestTimeout: true,
  });
  const given = readOptions(options, [...serverOptionNames, ...own], 'serve');
  const { host = '127.0.0.1', port = DEFAULT_PORT, maxConnections = 20_000, headersTimeout = '10s', ...others } = given;
  const { requestTimeout = '30s', dashboard = true, ...rest } = others;
  const { tokens } = readServerOptions(rest, 'serve');
  if (!isLoopback(checkName(host, 'serve: host')) && tokens.length === 0) {
    throw new ConfigError(
      `serve: expected tokens for an address that other machines reach, got host ${JSON.stringify(host)} and none. Create one with mulligan token create, and give its file as tokenFile (--token-file).`,
    );
  }
  const wantedPort = checkInteger(port, 'serve: port', { min: 0, max: 65_535 });
  const open = checkBoolean(dashboard, 'serve: dashboard') ? await dashboardOf() : createServer;
  const server = await open(target, { chores: true, ...rest });
  const http = createHttpServer(
    {
      headersTimeout: parseDuration(headersTimeout, 'serve: headersTimeout'),
      requestTimeout: parseDuration(requestTimeout, 'serve: requestTimeout'),
      keepAliveTimeout: IDLE_MS,
      maxHeaderSize: LARGEST_HEADERS,
      connectionsCheckingInterval: CHECK_EVERY_MS,
    },
    nodeHandler(server),
  );
  http.maxHeadersCount = MOST_HEADERS;
  http.maxConnections = checkInteger(maxConnections, 'serve: maxConnections', { min: 1 });
  const address = await listen(http, host, wantedPort).catch(async (error: unknown) => {
    await server.close();
    throw error;
  });
  const name = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return {
    url: `http://${name}:${address.port}`,
    port: address.port,
    async close() {
      const closed = new Promise((resolve) => http.close(resolve));
      await server.close();
      http.closeIdleConnections();
      // Answers that are on their way get a moment; then no client can keep the server from ending.
      const force = systemClock.after(LAST_ANSWERS_MS, () => http.closeAllConnections());
      await closed;
      force.cancel();
    },
  };
}

/** Loaded when it is served: its pages are a large module. */
async function dashboardOf(): Promise<typeof createServer> {
  return (await import('../dashboard/index.ts')).createDashboard;
}

async function listen(http: HttpServer, host: string, port: number): Promise<AddressInfo> {
  http.listen(port, host);
  try {
    await once(http, 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const got = code === 'EADDRINUSE' ? 'which is in use' : `which cannot be used (${code})`;
    throw new ConfigError(`serve: port: expected one that is free at ${host}, got ${port}, ${got}.`, { cause: error });
  }
  return http.address() as AddressInfo;
}
