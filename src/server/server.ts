import { Hono } from 'hono';
import type { Clock } from '../clock.ts';
import { Mulligan, partsOf } from '../mulligan.ts';
import { HttpMetrics } from '../observe/http-metrics.ts';
import { decode } from '../store/http/wire.ts';
import type { Store } from '../store/store.ts';
import { Trouble } from '../worker/trouble.ts';
import { Background } from './background.ts';
import { Budgets, type Share } from './budget.ts';
import { Chores } from './chores.ts';
import { Claims } from './claims.ts';
import { EventHub } from './event-hub.ts';
import { readServerOptions, type ServerOptions, type ServerSettings } from './options.ts';
import { ProblemError, problemResponse, toProblem } from './problem.ts';
import { check, readJson, readQuery } from './read-request.ts';
import { RemoteRuns } from './remote-runs.ts';
import { RemoteWorkers } from './remote-workers.ts';
import type { Reply, Route, ServerContext } from './route.ts';
import { routes } from './routes/index.ts';
import { Guard, type Incoming } from './security/guard.ts';
import { withSecurityHeaders } from './security/headers.ts';
import { redactor } from './security/redact.ts';
import { Tokens } from './security/tokens.ts';
import { jsonResponse } from './sent.ts';
import { WorkerOwners } from './worker-owners.ts';

/** What the adapter of a platform knows of a request beside itself: @hono/node-server gives this as it is. */
export interface RequestEnvironment {
  readonly incoming?: {
    readonly socket?: { readonly remoteAddress?: string | undefined };
    readonly httpVersion?: string;
    /** Express: the path before the application took off where the server is mounted. */
    readonly originalUrl?: string;
  };
}

/** Answers requests for pages beside the API; null for a path that is none of them. */
export type Pages = (path: string, incoming: Incoming) => Response | null;

export interface Server {
  /** Answers a request: a fetch handler, for any platform that takes one. Never rejects. */
  fetch(request: Request, environment?: RequestEnvironment): Promise<Response>;
  /** Ends waiting requests and streams, and records what is under way. It does not close the queue. */
  close(): Promise<void>;
}

/**
 * The HTTP API of a queue, to be mounted in an application.
 * @example const server = await createServer(mulligan, { tokenFile: 'tokens', hosts: ['queue.example.com'] })
 */
export function createServer(target: Mulligan | Store, options: ServerOptions = {}): Promise<Server> {
  return openServer(target, options, null);
}

export async function openServer(
  target: Mulligan | Store,
  options: ServerOptions,
  pages: Pages | null,
): Promise<Server> {
  const settings = readServerOptions(options);
  const isOwn = !(target instanceof Mulligan);
  const mulligan = isOwn ? await Mulligan.open(target) : target;
  return new HttpServer(mulligan, settings, pages);
}

const LONGEST_URL = 8_192;

class HttpServer implements Server {
  readonly #settings: ServerSettings;
  readonly #guard: Guard;
  readonly #pages: Pages | null;
  readonly #context: ServerContext;
  readonly #chores: Chores | null;
  readonly #closing: AbortController = new AbortController();
  readonly #app: Hono<{ Bindings: { incoming: Incoming } }>;

  constructor(mulligan: Mulligan, settings: ServerSettings, pages: Pages | null) {
    const parts = partsOf(mulligan);
    const { store, clock } = parts;
    const runs = new RemoteRuns(parts);
    const budgets = new Budgets(clock);
    const trouble = new Trouble(parts.log);
    const hub = new EventHub(mulligan, store, clock);
    this.#settings = settings;
    this.#pages = pages;
    this.#guard = new Guard({ tokens: new Tokens(settings.tokens), hosts: settings.hosts });
    this.#context = {
      ...parts,
      mulligan,
      runs,
      remoteWorkers: new RemoteWorkers(store, clock, (error) => trouble.failed(error)),
      workerOwners: new WorkerOwners(store),
      budgets,
      claims: new Claims(store, clock, { runs, budgets, maxPayloadBytes: parts.maxPayloadBytes }),
      hub,
      background: new Background(parts.log, this.#closing.signal, () => hub.add('operation', { name: 'ended' })),
      redact: redactor(settings.redact),
      requests: new HttpMetrics(parts.metricsPrefix),
      longestWaitMs: settings.longestWaitMs,
      closing: this.#closing.signal,
    };
    this.#chores = settings.chores ? new Chores(parts) : null;
    this.#app = this.#route();
  }

  async fetch(request: Request, environment: RequestEnvironment = {}): Promise<Response> {
    const { clock, requests } = this.#context;
    const address = environment.incoming?.socket?.remoteAddress ?? null;
    const { originalUrl = null, httpVersion = null } = environment.incoming ?? {};
    const url = new URL(request.url);
    const incoming: Incoming = { request, url, originalUrl, address, httpVersion, route: null };
    const startedAt = clock.monotonic();
    const response = await this.#respond(incoming);
    const answered = { route: incoming.route ?? 'none', method: request.method, status: response.status };
    requests.answered(answered, clock.monotonic() - startedAt);
    return response;
  }

  async #respond(incoming: Incoming): Promise<Response> {
    const { request } = incoming;
    try {
      if (request.url.length > LONGEST_URL) throw new ProblemError(400, 'BAD_REQUEST', 'Expected a shorter URL.');
      this.#guard.checkHost(incoming);
      this.#guard.checkUrl(incoming);
      const page = this.#page(incoming);
      if (page !== null) return withSecurityHeaders(page);
      return withSecurityHeaders(await this.#app.fetch(request, { incoming }));
    } catch (error) {
      return withSecurityHeaders(this.#problem(error));
    }
  }

  #page(incoming: Incoming): Response | null {
    const { basePath } = this.#settings;
    const { pathname } = incoming.url;
    const prefix = basePath === '/' ? '' : basePath;
    if (this.#pages === null || !(pathname === prefix || pathname.startsWith(`${prefix}/`))) return null;
    const page = this.#pages(pathname.slice(prefix.length), incoming);
    if (page !== null) incoming.route = 'dashboard';
    return page;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#context.claims.close();
    this.#context.hub.close();
    const { background, runs, remoteWorkers } = this.#context;
    await Promise.all([background.close(), runs.close(), remoteWorkers.close(), this.#chores?.stop()]);
  }

  #route(): Hono<{ Bindings: { incoming: Incoming } }> {
    const app = new Hono<{ Bindings: { incoming: Incoming } }>().basePath(this.#settings.basePath);
    for (const [path, own] of Map.groupBy(routes, (one) => one.path)) {
      const pattern = path.replace(/\{(\w+)\}/g, ':$1');
      for (const one of own) {
        app.on(one.method, [pattern], async (context) =>
          this.#answer(one, context.env.incoming, context.req.param() as Record<string, string>),
        );
      }
      app.all(pattern, () => {
        const allow = own.map(({ method }) => method).join(', ');
        throw new ProblemError(405, 'METHOD_NOT_ALLOWED', `Expected ${allow}.`, { headers: { allow } });
      });
    }
    app.notFound(() => {
      throw new ProblemError(404, 'NOT_FOUND', 'There is nothing at this address. See /docs.');
    });
    app.onError((error) => {
      throw error;
    });
    return app;
  }

  async #answer(route: Route, incoming: Incoming, given: Record<string, string>): Promise<Response> {
    const { request, url } = incoming;
    incoming.route = route.path;
    const isOpen = route.scopes.length === 0;
    const principal = isOpen
      ? { name: 'anyone', scopes: new Set<never>(), isLocal: false }
      : this.#guard.identify(incoming);
    if (route.method !== 'GET') this.#guard.checkWrite(incoming);
    this.#guard.checkScope(principal, route.scopes);
    const params = check(route.params, given, 'path');
    const query = check(route.query, readQuery(url.searchParams), 'query');
    const { share, value } = await this.#readBody(route, request);
    try {
      const body = route.body && check(route.body, value, 'body');
      const { address } = incoming;
      const by = `${principal.name} from ${address ?? 'an unknown address'}`;
      const call = { params, query, body, principal, by, address, request, context: this.#context };
      const reply = await route.handle(call);
      if (route.method !== 'GET' && route.scopes.includes('admin'))
        this.#context.hub.add('operation', { name: route.name });
      return toResponse(reply, share, this.#context.clock);
    } catch (error) {
      share.release();
      throw error;
    }
  }

  /** With a share for what the body became, and for the answer. */
  async #readBody(
    { body, isTagged, maxBodyBytes = 0, answerBytes = 0, waits }: Route,
    request: Request,
  ): Promise<{ readonly share: Share; readonly value: unknown }> {
    const { budgets } = this.#context;
    if (body === undefined) return { share: await budgets.work(0, answerBytes), value: undefined };
    const parse = isTagged ? decode : JSON.parse;
    const maxBytes = Math.max(maxBodyBytes, this.#settings.maxBodyBytes);
    return readJson(request, { maxBytes, parse, budgets, answerBytes: waits ? null : answerBytes });
  }

  #problem(error: unknown): Response {
    return problemResponse(toProblem(error, (unexpected) => this.#report(unexpected)));
  }

  #report(error: unknown): string {
    const reference = this.#context.clock.newId();
    this.#context.log.error('a request failed in the server; please report it', { reference, error });
    return reference;
  }
}

function toResponse(reply: Reply, share: Share, clock: Clock): Response {
  if (reply instanceof Response) {
    share.release();
    return reply;
  }
  if ('body' in reply) return jsonResponse(JSON.stringify(reply.body), reply.status ?? 200, share, clock);
  if (reply.share !== undefined) share.release();
  return jsonResponse(reply.json, 200, reply.share ?? share, clock);
}
