import { z } from 'zod';
import type { GateRef } from '../gate/index.ts';
import { misfirePolicies } from '../schedule/plan.ts';
import { changeActions, recordedActions } from '../store/change.ts';
import { groupStates } from '../store/error-groups.ts';
import type { RemoteVerb } from '../store/http/verbs.ts';
import type { HoldTarget, NewJob, Schedule, Store } from '../store/store.ts';
import { gateKinds, gateOrders } from '../store/store.ts';
import type { Scope } from './security/scopes.ts';
import * as schemas from './store-schemas.ts';

/** The arguments of each verb, as a remote store sends them, and who may call it. */
export interface StoreVerb<Verb extends RemoteVerb = RemoteVerb> {
  readonly args: z.ZodType<Parameters<Store[Verb]>>;
  readonly scopes: readonly Scope[];
}

type StoreVerbs = { readonly [Verb in RemoteVerb]: StoreVerb<Verb> };

const { id, name, storedName, whole, time, duration, fence, jsonText } = schemas;
const ids = z.array(name).max(10_000);
/** How many rows one call may ask for: as many as any call of the library does. */
const limit = z.int().min(0).max(10_000);
const batch = <Member>(member: z.ZodType<Member>): z.ZodType<Member[]> => z.array(member).max(100_000);

const gate: z.ZodType<GateRef> = z.strictObject({ kind: z.enum(gateKinds), name: schemas.gateName });
/** 32 bits, as gates hash workers and jobs. */
const hash = z
  .int()
  .min(0)
  .max(2 ** 32 - 1);
const bits = z.tuple([hash, hash]);
/** By a worker's own clock, so not in whole ms. */
const span = z.number().min(0);
const report = z.strictObject({
  epoch: time,
  claimedFrom: time,
  worker: hash,
  spanMs: span,
  alive: whole,
  throttled: whole,
  environment: whole,
  none: whole,
  unstarted: whole,
  tail: whole,
  jobs: bits,
  askers: bits,
  // A worker hands on what it was told, and gates bound it.
  retryAfterMs: z.custom<number>((value) => typeof value === 'number'),
  firstSuccesses: whole,
  retries: whole,
  slowestMs: span,
  livingChildren: whole,
});

const target: z.ZodType<HoldTarget> = z.union([
  z.strictObject({ queue: schemas.storedName }),
  z.strictObject({ resource: schemas.gateName }),
]);
const rate = z.strictObject({ limit: z.number().min(0), perMs: duration, burst: z.number().min(0) });
const ofKey = { concurrency: whole.nullable().exactOptional(), rate: rate.nullable().exactOptional() };
const ofLimit = { ...ofKey, total: whole.nullable().exactOptional(), concurrencyBefore: whole.exactOptional() };
const limitRule = { limit: schemas.limitName, source: z.enum(['code', 'set']), merge: z.literal(true).exactOptional() };

const timing = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('cron'), cron: name, timezone: name }),
  z.strictObject({ kind: z.literal('every'), everyMs: z.number().min(1), anchor: time }),
  z.strictObject({ kind: z.literal('at'), at: time }),
]);
const schedule: z.ZodType<Schedule> = z.strictObject({
  name: storedName,
  version: name,
  nextAt: time.nullable(),
  timing,
  job: schemas.jobTemplate,
  misfire: z.enum(misfirePolicies),
  misfireLimit: whole,
  paused: z.boolean(),
  lastAt: time.nullable(),
  code: name.nullable(),
  updatedAt: time,
});

const changeOptions = z.strictObject({
  canary: whole,
  keepAttempts: z.boolean(),
  rate: name.nullable(),
  continuedBy: name.nullable(),
});
const change = z
  .strictObject({
    id,
    action: z.enum([...changeActions, ...recordedActions]),
    selection: schemas.selection,
    order: schemas.text(1_048_576),
    by: storedName,
    part: limit,
    intervalMs: duration,
    keepAttempts: z.boolean(),
    canary: whole,
    payload: jsonText.exactOptional(),
    options: changeOptions.exactOptional(),
    stop: schemas.text(10_000).exactOptional(),
  })
  .refine(({ action, stop }) => stop !== undefined || isChange(action), 'expected a note in stop for this action');

function isChange(action: string): boolean {
  return (changeActions as readonly string[]).includes(action);
}

const beat = z.object({
  id: name,
  run: whole,
  worker: name,
  leaseMs: duration,
  alone: z.boolean().exactOptional(),
  progress: jsonText.exactOptional(),
});

const description = z
  .strictObject({
    name: name.nullable(),
    version: name.nullable(),
    mulligan: name.nullable(),
    host: name,
    pid: whole.nullable(),
    concurrency: whole,
    queues: z.array(name).max(10_000),
    jobs: z.array(name).max(10_000),
    // Earlier versions do not send these.
    running: whole.nullable().default(null),
    leaseMs: duration.nullable().default(null),
    loopDelayMs: whole.nullable().default(null),
    http: z.strictObject({ agent: name.nullable(), takesAll: z.boolean() }).nullable().default(null),
  })
  .nullable();

const kept = duration.nullable();
const retention = z.strictObject({
  completedMs: kept,
  deadMs: kept,
  cancelledMs: kept,
  asideMs: duration.exactOptional(),
});

const newJobs: z.ZodType<NewJob[]> = batch(schemas.newJob);

export const storeVerbs: StoreVerbs = {
  enqueue: { args: z.tuple([newJobs]), scopes: ['write'] },

  claim: { args: z.tuple([schemas.claimRequest]), scopes: ['work'] },
  claimGated: { args: z.tuple([schemas.gatedClaimRequest]), scopes: ['work'] },
  claimLimited: { args: z.tuple([schemas.limitedClaimRequest]), scopes: ['work'] },
  permit: {
    args: z.tuple([z.strictObject({ limit: schemas.limitName, key: schemas.limitKey, cost: z.number().min(0) })]),
    scopes: ['work'],
  },
  report: {
    args: z.tuple([batch(z.strictObject({ gate, report: report.nullable(), worker: storedName.exactOptional() }))]),
    scopes: ['work'],
  },
  heartbeat: { args: z.tuple([batch(beat)]), scopes: ['work'] },
  settle: { args: z.tuple([batch(schemas.settlement)]), scopes: ['work'] },
  expired: { args: z.tuple([limit]), scopes: ['work'] },
  remember: { args: z.tuple([fence, storedName, schemas.memoText]), scopes: ['work'] },
  recall: { args: z.tuple([name]), scopes: ['work'] },
  cancelRequested: { args: z.tuple([ids]), scopes: ['work'] },
  register: { args: z.tuple([storedName, description]), scopes: ['work'] },
  prune: { args: z.tuple([retention, limit]), scopes: ['work'] },
  // Workers fire the ticks of schedules with it.
  writeSchedule: {
    args: z.tuple([z.strictObject({ name, from: name.nullable(), to: schedule.nullable(), jobs: newJobs })]),
    scopes: ['work'],
  },
  // What code says of its limits; what an operator says needs more, see routes/store.ts.
  writeLimits: {
    args: z.tuple([
      batch(
        z.union([
          z.strictObject({ ...limitRule, key: z.null(), settings: z.strictObject(ofLimit).nullable() }),
          z.strictObject({ ...limitRule, key: schemas.limitKey, settings: z.strictObject(ofKey).nullable() }),
        ]),
      ),
    ]),
    scopes: ['write', 'work'],
  },

  rollUp: { args: z.tuple([]), scopes: ['work'] },

  get: { args: z.tuple([ids]), scopes: ['read', 'work'] },
  ended: { args: z.tuple([ids, duration.nullable()]), scopes: ['read', 'work'] },
  list: { args: z.tuple([schemas.jobFilter]), scopes: ['read', 'work'] },
  count: { args: z.tuple([schemas.selection]), scopes: ['read', 'work'] },
  operations: { args: z.tuple([limit]), scopes: ['read'] },
  runs: { args: z.tuple([name]), scopes: ['read', 'work'] },
  logs: { args: z.tuple([name, limit]), scopes: ['read', 'work'] },
  ledger: {
    args: z.tuple([
      z.strictObject({
        since: time,
        name: name.exactOptional(),
        limit: z.int().min(1).max(10_000),
        after: name.exactOptional(),
        draw: whole.exactOptional(),
        until: time.exactOptional(),
      }),
    ]),
    scopes: ['read'],
  },
  stats: { args: z.tuple([]), scopes: ['read', 'work'] },
  forecast: {
    args: z.tuple([z.strictObject({ queue: name.exactOptional(), rows: z.int().min(0).max(100_000) })]),
    scopes: ['read', 'work'],
  },
  history: {
    args: z.tuple([
      z.strictObject({
        from: time,
        to: time,
        stepMs: z.int().min(60_000).max(1e13).multipleOf(60_000),
        name: name.exactOptional(),
      }),
    ]),
    scopes: ['read', 'work'],
  },
  gates: {
    args: z.tuple([
      z.strictObject({
        skipWaiting: z.boolean().exactOptional(),
        kind: z.enum(gateKinds).exactOptional(),
        name: name.exactOptional(),
        limit,
      }),
    ]),
    scopes: ['read', 'work'],
  },
  gateHistory: { args: z.tuple([gate, limit]), scopes: ['read', 'work'] },
  queues: { args: z.tuple([]), scopes: ['read', 'work'] },
  limits: { args: z.tuple([z.strictObject({ names: ids.exactOptional(), limit })]), scopes: ['read', 'write', 'work'] },
  limitKeys: {
    args: z.tuple([name, z.strictObject({ keys: ids.exactOptional(), limit })]),
    scopes: ['read', 'write', 'work'],
  },
  schedules: {
    args: z.tuple([
      z.strictObject({
        names: ids.exactOptional(),
        soonest: z.boolean().exactOptional(),
        limit,
        after: name.exactOptional(),
      }),
    ]),
    scopes: ['read', 'work'],
  },
  workers: { args: z.tuple([]), scopes: ['read', 'work'] },
  errorHistory: {
    args: z.tuple([
      z.strictObject({
        from: time,
        to: time,
        stepMs: z.int().min(300_000).max(1e13).multipleOf(300_000),
        fingerprint: name.exactOptional(),
        name: name.exactOptional(),
        queue: name.exactOptional(),
      }),
    ]),
    scopes: ['read', 'work'],
  },
  errorGroups: {
    args: z.tuple([
      z.strictObject({
        fingerprint: name.exactOptional(),
        name: name.exactOptional(),
        queue: name.exactOptional(),
        state: z.enum(groupStates).exactOptional(),
        since: time.exactOptional(),
        limit,
      }),
    ]),
    scopes: ['read', 'work'],
  },

  cancel: { args: z.tuple([ids]), scopes: ['admin'] },
  change: { args: z.tuple([change]), scopes: ['admin'] },
  hold: { args: z.tuple([target, time.nullable()]), scopes: ['admin'] },
  release: { args: z.tuple([target]), scopes: ['admin'] },
  changeGate: { args: z.tuple([gate, z.enum(gateOrders), storedName]), scopes: ['admin'] },
};
