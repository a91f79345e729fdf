import type { Spent } from '../../gate/index.ts';
import type { Lane } from '../../job.ts';
import { lanes } from '../../job.ts';
import { type LimitKey, parseLimits } from '../../limit/limit.ts';
import type { StoredError } from '../../retry/outcome.ts';
import type { KnownJobs } from '../aside.ts';
import { joinJson, parseFrozen, splitJson } from '../json.ts';
import type { ClaimedJob, ClaimRequest } from '../store.ts';
import type { StoredPolicy } from '../stored-policy.ts';
import {
  AT,
  type ClaimedRow,
  ID,
  LIMITS,
  NUMBERS,
  type NumberColumn,
  PAYLOAD,
  SPENT,
  STRINGS,
  TRACE,
} from './claimed-row.ts';
import type { Session } from './session.ts';

/*
 * Running jobs on their way from the thread. Copying a job object with its twenty names costs more than claiming it, so
 * jobs travel in columns, and what many of them share travels once.
 */

/** A request on its way to the thread: what the worker knows is the same with each claim, and travels as one text. */
export type PackedRequest<Request extends ClaimRequest> = Omit<Request, 'knows'> & {
  readonly knowsText: string | null;
};

const textOf = new WeakMap<KnownJobs, string>();

export function packRequest<Request extends ClaimRequest>({ knows, ...rest }: Request): PackedRequest<Request> {
  if (knows === undefined) return { ...rest, knowsText: null };
  const text = textOf.get(knows) ?? JSON.stringify([...knows]);
  textOf.set(knows, text);
  return { ...rest, knowsText: text };
}

export function unpackRequest<Request extends ClaimRequest>(session: Session, packed: PackedRequest<Request>): Request {
  const { knowsText } = packed;
  return (knowsText === null ? packed : { ...packed, knows: session.knows(knowsText) }) as unknown as Request;
}

export interface PackedJobs {
  readonly ids: readonly string[];
  /** JSON, joined. */
  readonly payloads: string;
  /** Row after row; NaN for null. */
  readonly numbers: Float64Array;
  /** What the numbers stand for. */
  readonly strings: ReadonlyMap<number, string>;
  readonly policies: ReadonlyMap<number, StoredPolicy>;
  /** JSON. */
  readonly errors: ReadonlyMap<number, string>;
  /** Of the few that have a note, by their place. */
  readonly spent: ReadonlyMap<number, Spent>;
  /** Of those that have limits, by their place; as `limitsText` writes them. */
  readonly limits: ReadonlyMap<number, string>;
  /** Of those that have a trace, by their place. */
  readonly traces: ReadonlyMap<number, string>;
}

export function packJobs(session: Session, rows: readonly ClaimedRow[]): PackedJobs {
  const numbers = new Float64Array(rows.length * NUMBERS.length);
  const strings = new Map<number, string>();
  const policies = new Map<number, StoredPolicy>();
  const errors = new Map<number, string>();
  const spent = new Map<number, Spent>();
  const limits = new Map<number, string>();
  const traces = new Map<number, string>();
  let at = 0;
  for (const [index, row] of rows.entries()) {
    for (let column = 0; column < NUMBERS.length; column++) {
      const number = row[column] as number | null;
      numbers[at++] = number ?? Number.NaN;
      if (column < STRINGS && number && !strings.has(number)) strings.set(number, session.strings.text(number));
    }
    const policy = row[AT.policy] as number;
    if (!policies.has(policy)) policies.set(policy, session.policy(policy));
    const error = row[AT.last_error] as number | null;
    if (error !== null && !errors.has(error)) errors.set(error, session.errors.text(error));
    if (row[SPENT] !== null) spent.set(index, JSON.parse(row[SPENT] as string) as Spent);
    if (row[LIMITS] !== null) limits.set(index, row[LIMITS] as string);
    if (row[TRACE] !== null) traces.set(index, row[TRACE] as string);
  }
  const ids = rows.map((row) => row[ID] as string);
  const payloads = joinJson(rows.map((row) => row[PAYLOAD] as string));
  return { ids, payloads, numbers, strings, policies, errors, spent, limits, traces };
}

/** `gateEpoch`: what the claim of these jobs was told by their gate. */
export function unpackJobs(packed: PackedJobs, gateEpoch = 0): ClaimedJob[] {
  const { strings, policies, numbers } = packed;
  const payloads = splitJson(packed.payloads);
  const errors = new Map([...packed.errors].map(([id, text]) => [id, parseFrozen<StoredError>(text)]));
  return packed.ids.map((id, index) => {
    const number = (column: NumberColumn): number => numbers[index * NUMBERS.length + AT[column]] as number;
    const nullable = (column: NumberColumn): number | null => {
      const value = number(column);
      return Number.isNaN(value) ? null : value;
    };
    const text = (column: NumberColumn): string => strings.get(number(column)) as string;
    const { policy, version } = policies.get(number('policy')) as StoredPolicy;
    return {
      id,
      run: number('runs'),
      worker: text('worker'),
      name: text('name'),
      queue: text('queue'),
      homeQueue: text('home_queue'),
      resource: strings.get(number('resource')) ?? null,
      limits: packed.limits.size === 0 ? noLimits : parseLimits(packed.limits.get(index) ?? ''),
      lane: lanes[number('lane')] as Lane,
      priority: number('priority'),
      payload: payloads[index] as string,
      policy,
      attempts: number('attempts'),
      crashes: number('crashes'),
      givenBack: number('given_back'),
      deferredSince: nullable('deferred_since'),
      snoozes: number('snoozes'),
      version,
      trace: packed.traces.get(index) ?? null,
      enqueuedAt: number('enqueued_at'),
      dueAt: number('due_at'),
      availableAt: number('available_at'),
      firstStartedAt: number('first_started_at'),
      claimedAt: number('claimed_at'),
      leaseEndsAt: number('lease_ends_at'),
      previousDelayMs: nullable('previous_delay_ms'),
      // Not a number for none.
      lastError: errors.get(number('last_error')) ?? null,
      cancelRequested: number('cancel_requested') === 1,
      alone: number('alone') === 1,
      gateEpoch,
      spent: packed.spent.get(index) ?? null,
    };
  });
}

const noLimits: readonly LimitKey[] = Object.freeze([]);
