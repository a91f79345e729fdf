import type { z } from 'zod';
import type { Mulligan, MulliganParts } from '../mulligan.ts';
import type { HttpMetrics } from '../observe/http-metrics.ts';
import type { Background } from './background.ts';
import type { Budgets, Share } from './budget.ts';
import type { Claims } from './claims.ts';
import type { EventHub } from './event-hub.ts';
import type { RemoteRuns } from './remote-runs.ts';
import type { RemoteWorkers } from './remote-workers.ts';
import type { Redact } from './security/redact.ts';
import type { Principal, Scope } from './security/scopes.ts';
import type { WorkerOwners } from './worker-owners.ts';

/*
 * A route is one value: what it takes, what it answers, who may use it. The same list of routes is what requests are
 * validated by, what the OpenAPI document is made of, and what the fuzz test walks.
 */

/** What handlers share. */
export interface ServerContext
  extends Pick<MulliganParts, 'store' | 'clock' | 'definitions' | 'log' | 'maxPayloadBytes' | 'maxResultBytes'> {
  readonly mulligan: Mulligan;
  readonly claims: Claims;
  readonly budgets: Budgets;
  readonly runs: RemoteRuns;
  readonly remoteWorkers: RemoteWorkers;
  readonly workerOwners: WorkerOwners;
  readonly hub: EventHub;
  readonly background: Background;
  readonly redact: Redact;
  readonly requests: HttpMetrics;
  /** The longest that a request may wait for something to happen. */
  readonly longestWaitMs: number;
  /** Aborts when the server closes. */
  readonly closing: AbortSignal;
}

/** One request, checked. */
export interface Call<Params = unknown, Query = unknown, Body = unknown> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly principal: Principal;
  /** Who sent it and from where, for the audit. */
  readonly by: string;
  /** Where it came from, if that is known. */
  readonly address: string | null;
  readonly request: Request;
  readonly context: ServerContext;
}

/** A body to be sent as JSON, JSON text, or a whole response. */
export type Reply =
  | Response
  | { readonly status?: number; readonly body: unknown }
  /** With the share of the budget that the text was made in, where the route took one itself. */
  | { readonly json: string; readonly share?: Share };

export interface Answer {
  readonly description: string;
  /** Default `application/json`. */
  readonly type?: string;
  readonly schema?: z.ZodType;
}

export interface RouteSpec<Params, Query, Body> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** As OpenAPI writes it: `/api/v1/jobs/{id}`. */
  readonly path: string;
  /** Names the operation in the OpenAPI document. */
  readonly name: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  /** One of these is needed; none for a route that needs no token. */
  readonly scopes: readonly Scope[];
  readonly params?: z.ZodType<Params>;
  readonly query?: z.ZodType<Query>;
  readonly body?: z.ZodType<Body>;
  readonly headers?: readonly { readonly name: string; readonly description: string }[];
  /** By status. Problems need not be named. */
  readonly answers: Readonly<Record<number, Answer>>;
  /** The body carries maps, sets and the like, as store/http/wire.ts writes them. */
  readonly isTagged?: boolean;
  /** A larger body than others may have. */
  readonly maxBodyBytes?: number;
  /** What an answer takes in memory at most, where that is more than a few rows; see budget.ts. */
  readonly answerBytes?: number;
  /** It waits for something to happen, and must not hold a share of the budget meanwhile: it takes one when there is something. */
  readonly waits?: true;
  handle(call: Call<Params, Query, Body>): Promise<Reply> | Reply;
}

export type Route = RouteSpec<unknown, unknown, unknown>;

/** Infers what the handler gets from the schemas. */
export function route<Params = Record<never, never>, Query = Record<never, never>, Body = undefined>(
  spec: RouteSpec<Params, Query, Body>,
): Route {
  return spec as unknown as Route;
}
