import { isDeepStrictEqual } from 'node:util';
import { newOrder } from '../audit.ts';
import { derivedId } from '../derived-id.ts';
import type { LimitRules } from '../limit/limit.ts';
import { gateNote, holdNote, limitsNote, releaseNote, retentionNote, scheduleNote } from '../order-notes.ts';
import { type Tick, tickOf } from '../schedule/tick.ts';
import { keptMs, longer, rulesAfter } from '../store/retention.ts';
import type {
  LimitInfo,
  LimitKeyInfo,
  LimitWrite,
  NewJob,
  Order,
  RetentionWrite,
  Schedule,
  ScheduleWrite,
  ScheduleWritten,
  Store,
} from '../store/store.ts';
import type { RemoteVerb } from '../store/verbs.ts';
import { ProblemError } from './problem.ts';
import type { Call } from './route.ts';
import { isAllowed, type Principal } from './security/scopes.ts';

/*
 * What a caller may ask of a verb beyond its scopes (store/verbs.ts), and what it may see of the answer. A token `work` is
 * that of an application and its workers, `write` that of a producer, which need not trust other producers.
 */

type Args = readonly unknown[];

/**
 * The arguments with which the store is called, or at once its answer. Throws where this caller may not call the verb with
 * the given ones.
 */
export type Permitted = { readonly args: Args } | { readonly answer: unknown };

export async function permitted(verb: RemoteVerb, call: Call<unknown, unknown, Args>): Promise<Permitted> {
  if (verb !== 'writeSchedule') return { args: await argumentsFor(verb, call) };
  const args = await scheduleArguments(call);
  return args === null ? { answer: { written: false, jobs: [] } satisfies ScheduleWritten } : { args };
}

async function argumentsFor(verb: RemoteVerb, call: Call<unknown, unknown, Args>): Promise<Args> {
  const { body, principal, by, context } = call;
  const isAdmin = isAllowed(principal, []);
  const isProducer = !isAllowed(principal, ['work']);
  switch (verb) {
    case 'enqueue':
      if (isProducer && (body[0] as NewJob[]).some(cancelsOthers)) {
        throw needs('work', "to enqueue with onLimit 'cancel-oldest', which cancels jobs that wait");
      }
      return body;
    case 'limits':
    case 'limitKeys':
      if (isOnlyProducer(principal)) checkNamed(verb, body);
      return body;
    case 'writeLimits': {
      const writes = body[0] as LimitWrite[];
      if (!isAdmin && writes.some(({ source }) => source === 'set')) throw needs('admin', 'to change limits by hand');
      if (isProducer) return [await firstWrites(context.store, writes)];
      return isAdmin && writes.some(isLimitOrder) ? [writes, ordered(verb, call, 1, limitsNote(writes))] : [writes];
    }
    case 'register':
      return [body[0], await context.workerOwners.claim(body[0] as string, body[1] as Description, principal)];
    case 'writeRetention': {
      const writes = body[0] as RetentionWrite[];
      if (isAdmin) {
        const isOrder = await isRetentionOrder(context.store, writes);
        return isOrder ? [writes, ordered(verb, call, 1, retentionNote(writes))] : [writes];
      }
      if (!writes.every(isOfDefinition)) throw needs('admin', 'to change retention by hand');
      return [await longerOnly(context.store, writes)];
    }
    case 'change': {
      const [request] = body as Parameters<Store['change']>;
      return [{ ...request, by: signed(request.by, by, principal) }];
    }
    case 'changeGate': {
      const [gate, change, operator] = body as Parameters<Store['changeGate']>;
      return [gate, change, signed(operator, by, principal), ordered(verb, call, 3, gateNote(gate, change))];
    }
    case 'hold': {
      const [target, until] = body as Parameters<Store['hold']>;
      return [target, until, ordered(verb, call, 2, holdNote(target, until))];
    }
    case 'release': {
      const [target] = body as Parameters<Store['release']>;
      return [target, ordered(verb, call, 1, releaseNote(target))];
    }
    case 'cancel':
      return [body[0], ordered(verb, call, 1, null)];
    default:
      return body;
  }
}

/** The order of this call: sent or not, it is on record, with the words of the server and the name of the token. */
function ordered(
  verb: RemoteVerb,
  { body, principal, by, context }: Call<unknown, unknown, Args>,
  at: number,
  note: string | null,
): Order {
  const sent = body[at] as Order | undefined;
  if (sent === undefined) return newOrder(context.clock, by, note);
  const order = newOrder(context.clock, signed(sent.by, by, principal), note);
  // A program on this machine is believed.
  return { ...order, id: principal.isLocal ? sent.id : orderId(sent.id, [verb, order.by, ...body.toSpliced(at)]) };
}

/** The same for an order that is sent again, and another one for another order: under a taken id it would leave no row. */
function orderId(sent: string, order: readonly unknown[]): string {
  const at = Number.parseInt(sent.replace('-', '').slice(0, 12), 16);
  return derivedId(at, JSON.stringify([sent, order]));
}

type Description = Parameters<Store['register']>[1];

/** Neither `read`, which sees everything, nor `work`. */
export function isOnlyProducer(principal: Principal): boolean {
  return !isAllowed(principal, ['read', 'work']);
}

function needs(scope: 'work' | 'admin', what: string): ProblemError {
  return new ProblemError(403, 'FORBIDDEN', `Expected a token with the scope ${scope} ${what}.`);
}

function cancelsOthers({ onLimit = [] }: NewJob): boolean {
  return onLimit.some(({ action }) => action === 'cancel-oldest');
}

/** A producer asks for the limits of its own definitions, by name; it does not learn which others there are. */
function checkNamed(verb: 'limits' | 'limitKeys', args: Args): void {
  const isNamed =
    verb === 'limits'
      ? (args as Parameters<Store['limits']>)[0].names !== undefined
      : (args as Parameters<Store['limitKeys']>)[1].keys !== undefined;
  if (!isNamed) throw needs('work', 'or read to list limits and keys that are not named in the request');
}

/** What a producer sees of a limit or key that it names: what code and operators said of it, and not who uses it. */
export function withoutUse<Info extends LimitInfo | LimitKeyInfo>(info: Info): Info {
  const unseen = { running: 0, waiting: 0 };
  return 'key' in info ? { ...info, ...unseen, due: 0, startsAt: null } : { ...info, ...unseen, keysSet: 0 };
}

/**
 * Of what a producer says of limits, what nothing was said of yet: its jobs must not start without a bound before a worker
 * with their definitions was there. What is stored stays, because workers and operators decide.
 */
async function firstWrites(store: Store, writes: readonly LimitWrite[]): Promise<LimitWrite[]> {
  for (const { settings } of writes) {
    if (settings === null) throw needs('work', 'to remove what code says of a limit');
    if (stopsJobs(settings)) throw needs('work', 'to set a limit to 0');
  }
  const names = [...new Set(writes.map(({ limit }) => limit))];
  const limits = new Map((await store.limits({ names, limit: names.length })).map((one) => [one.name, one]));
  const first = writes.filter(({ limit, key }) => key === null && isUnsaid(limits.get(limit)));
  const code = new Map<string, LimitRules['code']>(names.map((name) => [name, limits.get(name)?.code ?? null]));
  for (const { limit, settings } of first) code.set(limit, settings);
  for (const name of names) {
    // A definition that computes the concurrency of each key says none for all keys.
    if (code.get(name)?.concurrency !== undefined || !code.get(name)) continue;
    const ofKeys = writes.filter(({ limit, key }) => limit === name && key !== null);
    const keys = ofKeys.map(({ key }) => key as string);
    const stored = new Map((await store.limitKeys(name, { keys, limit: keys.length })).map((one) => [one.key, one]));
    first.push(...ofKeys.filter(({ key }) => isUnsaid(stored.get(key as string))));
  }
  return first;
}

function isUnsaid(stored: LimitRules | undefined): boolean {
  return stored === undefined || (stored.code === null && stored.set === null);
}

/**
 * A worker writes a schedule when it fires a tick, or when its application gives the schedule in code; all else is the order
 * of an operator. Null when the schedule is not as the caller has read it: then nothing is to be written, because it was
 * judged by what is stored now.
 */
async function scheduleArguments(call: Call<unknown, unknown, Args>): Promise<Args | null> {
  const write = call.body[0] as ScheduleWrite;
  const { now, schedules } = await call.context.store.schedules({ names: [write.name], limit: 1 });
  const [before] = schedules;
  const isAdmin = isAllowed(call.principal, []);
  const isCurrent = (before?.version ?? null) === write.from || isRepeated(before, write);
  if (!isAdmin && !isCurrent) return null;
  if (isOfCode(before, write) || isTick(before, write, now)) return [write];
  if (!isAdmin) throw needs('admin', 'to change schedules by hand');
  return [write, ordered('writeSchedule', call, 1, scheduleNote(before ?? null, write))];
}

/** The answer to this very write was lost. */
function isRepeated(before: Schedule | undefined, { to, jobs }: ScheduleWrite): boolean {
  return before !== undefined && to !== null && jobs.length === 0 && isDeepStrictEqual(plain(before), plain(to));
}

/** Code gives a schedule that is new or that it gave before, not one of an operator; what an operator did to it since stays. */
function isOfCode(before: Schedule | undefined, { to, jobs }: ScheduleWrite): boolean {
  if (to === null || to.code === null || jobs.length > 0) return false;
  if (before === undefined) return !to.paused && to.lastAt === null;
  const isOther = to.code !== before.code || isDeepStrictEqual(plain(before), plain(to));
  return isOther && before.code !== null && to.paused === before.paused && to.lastAt === before.lastAt;
}

/** A tick moves the schedule on, and stores jobs, as every worker would. */
function isTick(before: Schedule | undefined, { to, jobs }: ScheduleWrite, now: number): boolean {
  if (before === undefined || to === null) return false;
  const { nextAt, version } = to;
  // Another tick may have fallen due since the worker looked.
  const looks = nextAt !== null && nextAt <= now ? [now, nextAt - 1] : [now];
  return looks.some((at) => {
    const tick = readableTick(before, version, at);
    return tick !== null && isDeepStrictEqual(plain({ to: tick.to, jobs: tick.jobs }), plain({ to, jobs }));
  });
}

/** A schedule whose time zone this system does not know ticks elsewhere; here an operator can set it again. */
function readableTick(...given: Parameters<typeof tickOf>): Tick | null {
  try {
    return tickOf(...given);
  } catch {
    return null;
  }
}

/** A property that is undefined does not survive the way. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** A token that may do all may also pass an order off as code: what stops jobs, or takes away what code said, is on record. */
function isLimitOrder({ source, settings }: LimitWrite): boolean {
  return source === 'set' || settings === null || stopsJobs(settings);
}

function stopsJobs(settings: NonNullable<LimitWrite['settings']>): boolean {
  return Object.values(settings).includes(0);
}

/** The same of retention: what no definition says, and what deletes jobs sooner than now. */
async function isRetentionOrder(store: Store, writes: readonly RetentionWrite[]): Promise<boolean> {
  if (!writes.every(isOfDefinition)) return true;
  const rules = await store.retention();
  const after = writes.reduce(rulesAfter, rules);
  return writes.some(({ name, state }) => {
    const [old, now] = [keptMs(rules, name, state), keptMs(after, name, state)];
    return now !== old && longer(old, now) === old;
  });
}

function isOfDefinition({ name, source, keptMs: ms }: RetentionWrite): boolean {
  return name !== null && source === 'code' && ms !== undefined;
}

/** A worker elsewhere can keep jobs for longer than they are kept now, and no shorter. */
async function longerOnly(store: Store, writes: readonly RetentionWrite[]): Promise<RetentionWrite[]> {
  const rules = await store.retention();
  return writes.map((write) => ({
    ...write,
    keptMs: longer(keptMs(rules, write.name, write.state), write.keptMs ?? null),
  }));
}

const LONGEST_OPERATOR = 200;

/** Who says to be the operator, and whose token it was. A program on this machine is believed. */
function signed(operator: string, by: string, { isLocal }: Principal): string {
  return isLocal ? operator : `${by}: ${operator}`.slice(0, LONGEST_OPERATOR).toWellFormed();
}
