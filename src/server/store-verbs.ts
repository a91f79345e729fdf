import { z } from 'zod';
import { HOLD_LONGEST_MS } from '../gate/constants.ts';
import type { GateRef } from '../gate/index.ts';
import { finishedStates } from '../job.ts';
import { misfirePolicies } from '../schedule/plan.ts';
import { changeActions } from '../store/change.ts';
import { groupStates } from '../store/error-groups.ts';
import type { HoldTarget, NewJob, Order, RetentionWrite, Schedule, Store } from '../store/store.ts';
import { gateKinds, gateOrders } from '../store/store.ts';
import type { RemoteVerb } from '../store/verbs.ts';
import * as schemas from './store-schemas.ts';

/** The arguments of each verb, as a remote store sends them. */
type StoreArguments = { readonly [Verb in RemoteVerb]: z.ZodType<Parameters<Store[Verb]>> };

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
/** Gates bound it too; here, because what a stranger sends is no number to reckon with. */
function boundedWait(ms: number): number {
  return ms > 0 ? Math.min(ms, HOLD_LONGEST_MS) : 0;
}
const report = z.strictObject({
  epoch: time,
  claimedFrom: time,
  worker: hash,
  spanMs: span,
  alive: whole,
  throttled: whole,
  asks: whole,
  environment: whole,
  none: whole,
  unstarted: whole,
  tail: whole,
  jobs: bits,
  askers: bits,
  // A worker hands on what it was told.
  retryAfterMs: z.custom<number>((value) => typeof value === 'number').transform(boundedWait),
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
const change = z.strictObject({
  id,
  action: z.enum(changeActions),
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
});

const beat = z.object({
  id: name,
  run: whole,
  worker: name,
  leaseMs: duration,
  alone: z.boolean().exactOptional(),
  progress: jsonText.exactOptional(),
});

/** The server says itself what was ordered, and by whose token. A program on its machine is believed who gave the order. */
const order: z.ZodType<Order | undefined> = z
  .strictObject({ id, by: name, note: schemas.text(10_000).nullable() })
  .nullish()
  .transform((given) => given ?? undefined);

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

const retentionWrite: z.ZodType<RetentionWrite> = z.strictObject({
  name: name.nullable(),
  state: z.enum(finishedStates),
  source: z.enum(['code', 'set']),
  keptMs: duration.nullable().exactOptional(),
});

const newJobs: z.ZodType<NewJob[]> = batch(schemas.newJob);

export const storeArguments: StoreArguments = {
  enqueue: z.tuple([newJobs]),

  claim: z.tuple([schemas.claimRequest]),
  claimGated: z.tuple([schemas.gatedClaimRequest]),
  claimLimited: z.tuple([schemas.limitedClaimRequest]),
  permit: z.tuple([z.strictObject({ limit: schemas.limitName, key: schemas.limitKey, cost: z.number().min(0) })]),
  report: z.tuple([batch(z.strictObject({ gate, report: report.nullable(), worker: storedName.exactOptional() }))]),
  heartbeat: z.tuple([batch(beat)]),
  settle: z.tuple([batch(schemas.settlement)]),
  expired: z.tuple([limit]),
  remember: z.tuple([fence, storedName, schemas.memoText]),
  recall: z.tuple([name]),
  cancelRequested: z.tuple([ids]),
  register: z.tuple([storedName, description]),
  prune: z.tuple([limit, duration.nullable().optional()]),
  retention: z.tuple([]),
  writeRetention: z.tuple([batch(retentionWrite), order.optional()]),
  // Workers fire the ticks of schedules with it.
  writeSchedule: z.tuple([
    z.strictObject({ name, from: name.nullable(), to: schedule.nullable(), jobs: newJobs }),
    order.optional(),
  ]),
  // What code says of its limits; what an operator says needs more, see routes/store.ts.
  writeLimits: z.tuple([
    batch(
      z.union([
        z.strictObject({ ...limitRule, key: z.null(), settings: z.strictObject(ofLimit).nullable() }),
        z.strictObject({ ...limitRule, key: schemas.limitKey, settings: z.strictObject(ofKey).nullable() }),
      ]),
    ),
    order.optional(),
  ]),

  rollUp: z.tuple([]),

  get: z.tuple([ids]),
  ended: z.tuple([ids, duration.nullable()]),
  list: z.tuple([schemas.jobFilter]),
  count: z.tuple([schemas.selection]),
  operations: z.tuple([limit]),
  runs: z.tuple([name]),
  logs: z.tuple([name, limit]),
  ledger: z.tuple([
    z.strictObject({
      since: time,
      name: name.exactOptional(),
      limit: z.int().min(1).max(10_000),
      after: name.exactOptional(),
      draw: whole.exactOptional(),
      until: time.exactOptional(),
    }),
  ]),
  stats: z.tuple([]),
  forecast: z.tuple([z.strictObject({ queue: name.exactOptional(), rows: z.int().min(0).max(100_000) })]),
  history: z.tuple([
    z.strictObject({
      from: time,
      to: time,
      stepMs: z.int().min(60_000).max(1e13).multipleOf(60_000),
      name: name.exactOptional(),
    }),
  ]),
  gates: z.tuple([
    z.strictObject({
      skipWaiting: z.boolean().exactOptional(),
      kind: z.enum(gateKinds).exactOptional(),
      name: name.exactOptional(),
      limit,
    }),
  ]),
  gateHistory: z.tuple([gate, limit]),
  queues: z.tuple([]),
  limits: z.tuple([z.strictObject({ names: ids.exactOptional(), limit })]),
  limitKeys: z.tuple([name, z.strictObject({ keys: ids.exactOptional(), limit })]),
  schedules: z.tuple([
    z.strictObject({
      names: ids.exactOptional(),
      soonest: z.boolean().exactOptional(),
      limit,
      after: name.exactOptional(),
    }),
  ]),
  workers: z.tuple([]),
  errorHistory: z.tuple([
    z.strictObject({
      from: time,
      to: time,
      stepMs: z.int().min(300_000).max(1e13).multipleOf(300_000),
      fingerprint: name.exactOptional(),
      name: name.exactOptional(),
      queue: name.exactOptional(),
    }),
  ]),
  errorGroups: z.tuple([
    z.strictObject({
      fingerprint: name.exactOptional(),
      name: name.exactOptional(),
      queue: name.exactOptional(),
      state: z.enum(groupStates).exactOptional(),
      since: time.exactOptional(),
      limit,
    }),
  ]),

  cancel: z.tuple([ids, order.optional()]),
  change: z.tuple([change]),
  hold: z.tuple([target, time.nullable(), order.optional()]),
  release: z.tuple([target, order.optional()]),
  changeGate: z.tuple([gate, z.enum(gateOrders), storedName, order.optional()]),
};
