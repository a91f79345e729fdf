import { z } from 'zod';
import { byteLength } from '../bytes.ts';
import { HOLD_LONGEST_MS } from '../gate/constants.ts';
import type { GateRef } from '../gate/index.ts';
import { finishedStates } from '../job.ts';
import { checkStoredCount, checkStoredRate } from '../limit/options.ts';
import { misfirePolicies } from '../schedule/plan.ts';
import { checkTiming, EARLIEST, LATEST, type Timing } from '../schedule/timing.ts';
import { checkMisfireLimit, checkScheduleName } from '../schedule-options.ts';
import { changeActions } from '../store/change.ts';
import { groupStates } from '../store/error-groups.ts';
import type { HoldTarget, Order, RetentionWrite, Schedule, ScheduleWrite, Store } from '../store/store.ts';
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
const rate = schemas.checked(z.strictObject({ limit: whole, perMs: duration, burst: whole }), checkStoredRate);
const bound = schemas.checked(whole, checkStoredCount);
const ofKey = { concurrency: bound.nullable().exactOptional(), rate: rate.nullable().exactOptional() };
const ofLimit = { ...ofKey, total: bound.nullable().exactOptional(), concurrencyBefore: bound.exactOptional() };
const limitRule = { limit: schemas.limitName, source: z.enum(['code', 'set']), merge: z.literal(true).exactOptional() };

const tick = z.int().min(EARLIEST).max(LATEST);
const timing: z.ZodType<Timing> = schemas.checked(
  z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('cron'), cron: name, timezone: name }),
    z.strictObject({ kind: z.literal('every'), everyMs: z.int(), anchor: tick }),
    z.strictObject({ kind: z.literal('at'), at: tick }),
  ]),
  checkTiming,
);
const schedule: z.ZodType<Schedule> = z.strictObject({
  name: schemas.checked(z.string(), checkScheduleName),
  version: name,
  nextAt: tick.nullable(),
  timing,
  job: schemas.jobTemplate,
  misfire: z.enum(misfirePolicies),
  misfireLimit: schemas.checked(z.int(), checkMisfireLimit),
  paused: z.boolean(),
  lastAt: tick.nullable(),
  code: name.nullable(),
  updatedAt: time,
});
const scheduleWrite: z.ZodType<ScheduleWrite> = z
  .strictObject({ name, from: name.nullable(), to: schedule.nullable(), jobs: batch(schemas.scheduledJob) })
  .refine(({ name: written, to }) => to === null || to.name === written, {
    message: 'expected to.name to be the name that is written',
    path: ['to', 'name'],
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

/** Lists of workers are read whole. */
const LONGEST_DESCRIPTION = 64 * 1_024;
const namesBytes = (names: readonly string[]): number => names.reduce((bytes, one) => bytes + byteLength(one), 0);

const description = z
  .strictObject({
    name: storedName.nullable(),
    version: storedName.nullable(),
    mulligan: storedName.nullable(),
    host: storedName,
    pid: whole.nullable(),
    concurrency: whole,
    queues: z.array(storedName).max(10_000),
    jobs: z.array(storedName).max(10_000),
    // Earlier versions do not send these.
    running: whole.nullable().default(null),
    leaseMs: duration.nullable().default(null),
    loopDelayMs: whole.nullable().default(null),
    http: z.strictObject({ agent: storedName.nullable(), takesAll: z.boolean() }).nullable().default(null),
  })
  .refine(
    ({ queues, jobs }) => namesBytes(queues) + namesBytes(jobs) <= LONGEST_DESCRIPTION,
    `expected at most ${LONGEST_DESCRIPTION} bytes of queues and jobs`,
  )
  .nullable();

const retentionWrite: z.ZodType<RetentionWrite> = z.strictObject({
  name: name.nullable(),
  state: z.enum(finishedStates),
  source: z.enum(['code', 'set']),
  keptMs: duration.nullable().exactOptional(),
});

export const storeArguments: StoreArguments = {
  enqueue: z.tuple([batch(schemas.newJob)]),

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
  writeSchedule: z.tuple([scheduleWrite, order.optional()]),
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
