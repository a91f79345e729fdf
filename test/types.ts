/*
 * What must compile, and what must not. Nothing here is run: `tsc -p tsconfig.json` is the test, and each
 * `@ts-expect-error` is red as soon as the line below it compiles.
 */
import * as v from 'valibot';
import { z } from 'zod';
import {
  type AnyJobDefinition,
  type BulkResult,
  Cancel,
  type Decision,
  defineJob,
  defineSchedule,
  type EnqueueResult,
  type EventMap,
  type GateInfo,
  implement,
  type Job,
  type JobContext,
  type JobDefinition,
  type JobState,
  type LimitHold,
  type Logger,
  type Mulligan,
  type MulliganOptions,
  policies,
  RetryAfter,
  type RetryOptions,
  type RunRecord,
  Snooze,
  type Stats,
  type StoredError,
  type TransactionClient,
  typeOf,
  Unrecoverable,
  type Worker,
} from '../src/index.ts';
import { testQueue, type VirtualClock } from '../src/testing/index.ts';

/** Both ways at once: `any` on one side does not pass. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_: Same<A, B>): void {}

declare const mulligan: Mulligan;
declare const worker: Worker;

// A definition without a schema: its input is what its type argument says.

const sendEmail = defineJob<{ to: string; cc?: string }>({
  name: 'email.send',
  run(input, context) {
    same<typeof input, { to: string; cc?: string }>(true);
    same<typeof context, JobContext>(true);
    // @ts-expect-error there is no such field
    input.subject;
  },
});
same<typeof sendEmail, JobDefinition<{ to: string; cc?: string }, { to: string; cc?: string }>>(true);

void mulligan.enqueue(sendEmail, { to: 'a@example.com' });
void mulligan.enqueue(sendEmail, { to: 'a@example.com', cc: 'b@example.com' });
// @ts-expect-error a payload of another type
void mulligan.enqueue(sendEmail, { to: 5 });
// @ts-expect-error a field is missing
void mulligan.enqueue(sendEmail, {});
// @ts-expect-error a field too many
void mulligan.enqueue(sendEmail, { to: 'a@example.com', bcc: 'c@example.com' });
// @ts-expect-error the input is missing
void mulligan.enqueue(sendEmail);
// @ts-expect-error neither a definition nor a name
void mulligan.enqueue({ name: 'email.send', run() {} }, { to: 'a@example.com' });
// The input must not widen what the definition takes.
// @ts-expect-error a union of right and wrong
void mulligan.enqueue(sendEmail, { to: 'a@example.com' } as { to: string } | { to: number });

// By name, any input goes: the definition is elsewhere.
void mulligan.enqueue('email.send', { anything: true });

// A resource may be chosen by the input, as the schema makes it.
const hook = defineJob({
  name: 'hook',
  input: z.object({ url: z.string().transform((url) => new URL(url)) }),
  resource: ({ url }) => {
    same<typeof url, URL>(true);
    return ['webhook', url.host];
  },
  maxOutage: '2h',
  run({ url }) {
    same<typeof url, URL>(true);
  },
});
void mulligan.enqueue(hook, { url: 'https://example.com' });
const withHook: AnyJobDefinition[] = [hook, sendEmail];
void withHook;
defineJob<{ shop: string }>({ name: 'a', resource: ({ shop }) => shop, run() {} });
defineJob<{ shop?: string }>({ name: 'a', resource: ({ shop }) => shop, run() {} });
defineJob({ name: 'a', resource: false, run() {} });
// @ts-expect-error there is no such field
defineJob<{ shop: string }>({ name: 'a', resource: ({ host }) => host, run() {} });
// @ts-expect-error a key is text
defineJob<{ id: number }>({ name: 'a', resource: ({ id }) => id, run() {} });
// @ts-expect-error it must answer at once
defineJob<{ shop: string }>({ name: 'a', resource: async ({ shop }) => shop, run() {} });
// @ts-expect-error true names nothing
defineJob({ name: 'a', resource: true, run() {} });

// A definition that says nothing of its input.
const anything = defineJob({
  name: 'anything',
  run(input) {
    same<typeof input, unknown>(true);
  },
});
// A definition that says nothing of its input, or takes null, needs none.
void mulligan.enqueue(anything);
void mulligan.enqueue(defineJob({ name: 'a', run() {} }));
void mulligan.enqueue(defineJob<null>({ name: 'a' }));
void mulligan.enqueue('email.send');
void mulligan.enqueue(anything, 5);
void mulligan.enqueue(anything, { a: 1 });

// Options of a definition.

// @ts-expect-error a definition needs a name
defineJob({ run() {} });
// A definition without a handler is for processes that only enqueue.
defineJob({ name: 'a' });
// @ts-expect-error a misspelt option
defineJob({ name: 'a', run() {}, timeouts: '5s' });
// @ts-expect-error a duration has a unit, or is a number of milliseconds
defineJob({ name: 'a', run() {}, timeout: '5 seconds' });
// @ts-expect-error a schema is needed, not an example
defineJob({ name: 'a', run() {}, input: { to: 'string' } });
// @ts-expect-error maxAttempts belongs into retry
defineJob({ name: 'a', run() {}, maxAttempts: 3 });
// @ts-expect-error a definition cannot be changed
sendEmail.queue = 'elsewhere';

// With a schema, the producer gives what goes in and the handler gets what comes out.

const count = defineJob({
  name: 'count',
  input: z.object({ n: z.string().transform(Number), unit: z.enum(['kg', 'g']).default('g') }),
  run(input) {
    same<typeof input, { n: number; unit: 'kg' | 'g' }>(true);
  },
});
void mulligan.enqueue(count, { n: '5' });
void mulligan.enqueue(count, { n: '5', unit: 'kg' });
// @ts-expect-error what comes out of the schema is not what goes in
void mulligan.enqueue(count, { n: 5 });
// @ts-expect-error not one of the choices
void mulligan.enqueue(count, { n: '5', unit: 'lb' });

const valibotCount = defineJob({
  name: 'valibot-count',
  input: v.object({ n: v.pipe(v.string(), v.transform(Number)), unit: v.optional(v.picklist(['kg', 'g']), 'g') }),
  run(input) {
    same<typeof input, { n: number; unit: 'kg' | 'g' }>(true);
  },
});
void mulligan.enqueue(valibotCount, { n: '5' });
// @ts-expect-error what comes out of the schema is not what goes in
void mulligan.enqueue(valibotCount, { n: 5 });

const checkedLater = defineJob({
  name: 'checked-later',
  input: v.pipeAsync(
    v.object({ user: v.string() }),
    v.checkAsync(async () => true),
  ),
  run: ({ user }) => same<typeof user, string>(true),
});
void mulligan.enqueue(checkedLater, { user: 'a' });

// Many at once.

const answers = mulligan.enqueueMany(sendEmail, [
  { input: { to: 'a@example.com' } },
  { input: { to: 'b@example.com', cc: 'c@example.com' } },
]);
same<typeof answers, Promise<EnqueueResult[]>>(true);
// @ts-expect-error one of them is of another type
void mulligan.enqueueMany(sendEmail, [{ input: { to: 'a@example.com' } }, { input: { to: 5 } }]);
// @ts-expect-error not a list
void mulligan.enqueueMany(sendEmail, { input: { to: 'a@example.com' } });
// @ts-expect-error inputs as they are: each goes under `input`
void mulligan.enqueueMany(sendEmail, [{ to: 'a@example.com' }]);
const readonlyInputs: readonly { to: string }[] = [];
void mulligan.enqueueMany(
  sendEmail,
  readonlyInputs.map((input) => ({ input })),
);

void mulligan.enqueueMany(sendEmail, [{ input: { to: 'a' }, key: 'k', delay: '5m', priority: 1 }], { queue: 'mail' });
// @ts-expect-error a transaction is given for all of them
void mulligan.enqueueMany(sendEmail, [{ input: { to: 'a' }, tx: null as never as TransactionClient }]);
// @ts-expect-error a misspelt option
void mulligan.enqueueMany(sendEmail, [{ input: { to: 'a' }, dely: '5m' }]);

// Results are typed by the definition, as JSON leaves them.

const measure = defineJob({
  name: 'measure',
  run: async (input: { on: string }) => ({ length: input.on.length, at: new Date(0), tags: ['a'] }),
});
async function results(): Promise<void> {
  const enqueued = await mulligan.enqueue(measure, { on: 'x' });
  const result = await mulligan.result(enqueued, { timeout: '5s', signal: AbortSignal.timeout(5) });
  same<typeof result, { length: number; at: string; tags: string[] }>(true);
  const many = await mulligan.enqueueMany(measure, [{ input: { on: 'x' } }]);
  same<typeof many, EnqueueResult<{ length: number; at: Date; tags: string[] }>[]>(true);
  const byId = await mulligan.result(enqueued.id);
  same<typeof byId, unknown>(true);
  const named = await mulligan.result<{ length: number }>('id');
  same<typeof named, { length: number }>(true);
  const nothing = await mulligan.result(await mulligan.enqueue(defineJob({ name: 'a', run() {} }), null));
  same<typeof nothing, void>(true);
  // @ts-expect-error a misspelt option
  await mulligan.result(enqueued, { timout: 5 });
}
void results;

// Definitions in two parts.

const split = defineJob({
  name: 'split',
  input: z.object({ n: z.string().transform(Number) }),
  output: typeOf<{ half: number }>(),
});
const whole = implement(split, async (input, context) => {
  same<typeof input, { n: number }>(true);
  const next = await context.enqueue(measure, { on: 'x' });
  same<typeof next, EnqueueResult<{ length: number; at: Date; tags: string[] }>>(true);
  // @ts-expect-error a payload of another type
  void context.enqueue(measure, { on: 5 });
  return { half: input.n / 2 };
});
same<typeof whole, typeof split>(true);
// @ts-expect-error another result than the definition's
implement(split, () => ({ halves: 1 }));
void mulligan
  .enqueue(split, { n: '5' })
  .then((one) => mulligan.result(one).then(({ half }) => same<typeof half, number>(true)));

const named = defineJob<{ n: number }, { n: number }, { half: number }>({ name: 'named' });
// @ts-expect-error another result than the definition's
implement(named, () => ({ half: 'a' }));
// @ts-expect-error the compiler would ignore the output
defineJob<{ n: number }>({ name: 'a', output: typeOf<{ half: number }>() });

// Schedules.

const nothing = defineJob({ name: 'nothing', run() {} });
const schedules = [
  defineSchedule({ name: 'a', job: measure, input: { on: 'x' }, cron: '0 3 * * *' }),
  defineSchedule({ name: 'b', job: nothing, every: '1m' }),
  defineSchedule({ name: 'c', job: 'by.name', input: 7, every: '1m', overlap: 'skip' }),
  // @ts-expect-error an input of another type
  defineSchedule({ name: 'd', job: measure, input: { on: 5 }, every: '1m' }),
  // @ts-expect-error no input
  defineSchedule({ name: 'e', job: measure, every: '1m' }),
  // @ts-expect-error a misspelt option
  defineSchedule({ name: 'f', job: nothing, evry: '1m' }),
];
void schedules;

// Inputs are what JSON can carry.

interface Tree {
  readonly name: string;
  readonly children?: readonly Tree[];
}
type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
defineJob<{ a: string; b?: number[]; c: { d: boolean | null }[]; e: [string, number]; f: Record<string, unknown> }>({
  name: 'a',
});
defineJob<Tree>({ name: 'a' });
defineJob<Json>({ name: 'a' });
defineJob<null>({ name: 'a' });
defineJob<'a' | 'b'>({ name: 'a' });
// biome-ignore lint/suspicious/noExplicitAny: an input of type any is not checked.
defineJob<any>({ name: 'a' });
defineJob({
  name: 'a',
  input: z.object({ at: z.iso.datetime().transform((at) => new Date(at)) }),
  run: ({ at }) => same<typeof at, Date>(true),
});
// @ts-expect-error the handler would get a string
defineJob<{ at: Date }>({ name: 'a' });
// @ts-expect-error deep inside, too
defineJob<{ list: { at?: Date | null }[] }>({ name: 'a' });
// @ts-expect-error JSON makes {} of it
defineJob<{ byName: Map<string, number> }>({ name: 'a' });
// @ts-expect-error JSON cannot carry it
defineJob<{ id: bigint }>({ name: 'a' });
// @ts-expect-error JSON drops it
defineJob<{ then: () => void }>({ name: 'a' });
// @ts-expect-error the handler would get a string
defineJob<{ url: URL }>({ name: 'a' });
// @ts-expect-error the schema takes a Date, which never reaches it
defineJob({ name: 'a', input: z.object({ at: z.date() }) });
// @ts-expect-error the same without a type argument
defineJob({ name: 'a', run: (_: { at: Date }) => {} });

// Options of an enqueue.

void mulligan.enqueue(anything, 1, { delay: '5m', priority: 1, key: 'k', keyUntil: 'pruned', queue: 'mail' });
void mulligan.enqueue(anything, 1, { key: 'k', debounce: '5s' });
void mulligan.enqueue(anything, 1, { key: 'k', debounce: { wait: '5s', maxWait: '1m' } });
void mulligan.enqueue(anything, 1, { key: 'k', throttle: '5s' });
// @ts-expect-error a window is a duration
void mulligan.enqueue(anything, 1, { key: 'k', throttle: { wait: '5s' } });
// @ts-expect-error throttle says this
void mulligan.enqueue(anything, 1, { key: 'k', keyUntil: 'window' });
void mulligan.enqueue(anything, 1, { at: new Date(0), retry: { maxRetries: 3 } });
// @ts-expect-error a misspelt option
void mulligan.enqueue(anything, 1, { dely: '5m' });
// @ts-expect-error a number without a unit is a number
void mulligan.enqueue(anything, 1, { delay: '5' });
// @ts-expect-error a date is a Date
void mulligan.enqueue(anything, 1, { at: '2026-01-01' });
// @ts-expect-error not a life of keys
void mulligan.enqueue(anything, 1, { keyUntil: 'done' });

// Policies.

const changed: RetryOptions = { ...policies.financial, maxAttempts: 8 };
defineJob({ name: 'a', retry: changed, run() {} });
defineJob({
  name: 'a',
  retry: { ...policies.chronos, backoff: { kind: 'fibonacci', base: '1m', max: '1h' } },
  run() {},
});
defineJob({ name: 'a', retry: { ...policies.harbor, jitter: { spread: 0.1 }, deadline: null }, run() {} });
// @ts-expect-error not a preset
policies.finance;
// @ts-expect-error presets are shared, and cannot be changed
policies.financial = {};
// @ts-expect-error a misspelt field
defineJob({ name: 'a', retry: { ...policies.financial, maxAttempt: 8 }, run() {} });
// @ts-expect-error not a backoff
defineJob({ name: 'a', retry: { backoff: { kind: 'quadratic', base: '1s' } }, run() {} });
// @ts-expect-error a table has delays, not a base
defineJob({ name: 'a', retry: { backoff: { kind: 'table', base: '1s' } }, run() {} });
// @ts-expect-error not a jitter
defineJob({ name: 'a', retry: { jitter: 'some' }, run() {} });

// Definitions of different inputs in one list.

const jobs = [sendEmail, count, valibotCount, anything];
const options: MulliganOptions = { jobs, queues: { mail: { retry: policies.patient } }, hardCap: 10 };
const mixed: readonly AnyJobDefinition[] = jobs;
void mixed;
void options;
void testQueue({ jobs, work: { concurrency: 2 }, seed: 7 });
// @ts-expect-error not definitions
const wrongJobs: MulliganOptions = { jobs: [{ name: 'a', run() {} }] };
// @ts-expect-error a misspelt option
const wrongOption: MulliganOptions = { job: [] };
void wrongJobs;
void wrongOption;

// What a handler gets beside its input.

defineJob<null>({
  name: 'context',
  async run(_, context) {
    const { signal, run, attempt, maxAttempts, lastError, log, job, once } = context;
    same<typeof signal, AbortSignal>(true);
    same<typeof run, number>(true);
    same<typeof attempt, number>(true);
    same<typeof maxAttempts, number>(true);
    same<typeof lastError, StoredError | null>(true);
    same<typeof log, Logger>(true);
    same<typeof job.enqueuedAt, Date>(true);
    const receipt = await once('charge', async () => ({ receipt: 5 }));
    same<typeof receipt, { receipt: number }>(true);
    const plain = await context.once('count', () => 5);
    same<typeof plain, number>(true);
    context.progress({ done: 1 });
    await context.extend('10m');
    same<Awaited<ReturnType<typeof context.permit>>, void>(true);
    await context.permit('shopify', { cost: 3, key: 7 });
    // @ts-expect-error a key is a text or a number
    await context.permit('shopify', { key: null });
    log.info('told', { n: 1 });
    // @ts-expect-error the context is not to be changed
    context.attempt = 1;
    // @ts-expect-error there is no such member
    context.retry();
    if (attempt > 2) throw new RetryAfter(new Date(0), 'later', { cause: lastError });
    if (attempt > 1) throw new Unrecoverable('never');
    if (run > 5) throw new Cancel();
    if (run > 4) throw new Snooze('5m');
    // Snoozing ends the handler, so nothing after it is reached.
    same<ReturnType<typeof context.snooze>, never>(true);
  },
});
// @ts-expect-error a wait is a duration or a Date
new RetryAfter('soon');

// What a definition's own functions are told and may answer.

defineJob<{ to: string }>({
  name: 'functions',
  classify: (error, { attempt }) => {
    same<typeof error, unknown>(true);
    return attempt > 2 ? 'permanent' : { class: 'environment', retryAfter: '5s' };
  },
  backoff: ({ attempt, error, previousDelayMs }) => {
    same<typeof error, unknown>(true);
    same<typeof previousDelayMs, number | null>(true);
    return attempt > 3 ? undefined : '5s';
  },
  rules: [
    { code: 'E_FULL', class: 'environment' },
    { status: [500, 599], class: 'job' },
  ],
  onDead: ({ id, attempts, decision, error }) => {
    same<typeof id, string>(true);
    same<typeof attempts, number>(true);
    same<typeof decision, Decision>(true);
    same<typeof error, StoredError | null>(true);
  },
  run() {},
});
// @ts-expect-error not a class of failures
defineJob({ name: 'a', classify: () => 'fatal', run() {} });
// @ts-expect-error it must answer at once
defineJob({ name: 'a', classify: async () => 'job', run() {} });

// Events.

const stop: () => void = mulligan.on('retrying', ({ id, delayMs, decision, error, durationMs, attempt }) => {
  same<typeof id, string>(true);
  same<typeof delayMs, number>(true);
  same<typeof decision, Decision>(true);
  same<typeof error, StoredError | null>(true);
  same<typeof durationMs, number>(true);
  same<typeof attempt, number>(true);
});
stop();
mulligan.on('enqueued', (event) => same<typeof event, EventMap['enqueued']>(true));
mulligan.on('dead', async ({ reason }) => {
  same<typeof reason, 'exhausted' | 'unrecoverable' | 'deadline' | 'poison' | 'no-handler' | 'runs'>(true);
});
// @ts-expect-error there is no such event
mulligan.on('failed', () => {});
// @ts-expect-error a completed job has no delay
mulligan.on('completed', ({ delayMs }) => delayMs);
// @ts-expect-error events are not to be changed
mulligan.on('completed', (event) => (event.id = ''));

// Decisions tell their kinds apart.

declare const decision: Decision;
if (decision.kind === 'retry') same<typeof decision.why, 'backoff' | 'retry-after' | 'crash' | 'verdict'>(true);
// @ts-expect-error only some decisions have a delay
decision.delayMs;

// Gates.

mulligan.on('gate', ({ gate, change, figures }) => {
  same<typeof gate.kind, 'resource' | 'job' | 'parent'>(true);
  same<typeof figures.limit, number | null>(true);
  // @ts-expect-error there is no such change
  change === 'tripped';
});
void mulligan.gates.list().then(([gate]) => same<typeof gate, GateInfo | undefined>(true));
void mulligan.gates.open('smtp', { by: 'ana' });
// @ts-expect-error only the gate of a resource can be pinned
void mulligan.gates.open('smtp', { kind: 'job' });

// Working and operating.

same<typeof worker, ReturnType<typeof mulligan.work>>(true);
mulligan.work({ queues: { mail: { weight: 2, maxRetriesInFlight: 5 }, sms: {} }, retryShare: 0.1 });
mulligan.work({ queues: ['mail', 'sms'], lease: '30s' });
// @ts-expect-error a misspelt option
mulligan.work({ concurency: 5 });
// @ts-expect-error an option of the worker, not of a queue
mulligan.work({ queues: { mail: { concurrency: 5 } } });
same<ReturnType<typeof mulligan.jobs.get>, Promise<Job | null>>(true);
same<ReturnType<typeof mulligan.jobs.runs>, Promise<RunRecord[]>>(true);
same<ReturnType<typeof mulligan.stats>, Promise<Stats>>(true);
same<Job['state'], JobState>(true);
void mulligan.jobs.list({ state: 'retrying', limit: 5 });
// @ts-expect-error attempts fail, jobs do not
void mulligan.jobs.list({ state: 'failed' });
// @ts-expect-error dead jobs are dead
void mulligan.dead.list({ state: 'ready' });
void mulligan.dead.redrive({ name: 'a', keepAttempts: true, dryRun: true, rate: '50/s', canary: 10 });
// @ts-expect-error not a rate
void mulligan.dead.redrive({ name: 'a', rate: 'fast' });
same<ReturnType<typeof mulligan.jobs.runNow>, Promise<BulkResult>>(true);
void mulligan.jobs.runNow({ state: ['scheduled', 'retrying'], since: '2h', attempts: { min: 2 } });
void mulligan.jobs.runNow({ ids: ['a'], by: 'ann', tx: { query: async () => ({ rows: [] }) } });

// Reactions to a death.

const refund = defineJob<{ order: number; failed: string }>({ name: 'refund', run() {} });
defineJob({
  name: 'ship',
  input: z.object({ order: z.number() }),
  onDead: [
    refund,
    (input, { id }) => {
      same<typeof input, { order: number }>(true);
      same<typeof id, string>(true);
      return { order: input.order, failed: id };
    },
  ],
  run() {},
});
defineJob<{ order: number }>({
  name: 'ship',
  onDead: [refund, ({ order }, { id }) => ({ order: order + 1, failed: id })],
  run() {},
});
defineJob({ name: 'ship', onDead: ['refund', { order: 7 }], run() {} });
// A reaction that takes no input, also where the type of the own input is given.
const page = defineJob({ name: 'page', run() {} });
const paged = defineJob<{ order: number }>({ name: 'ship', onDead: [page, null], run() {} });
void mulligan.enqueue(paged, { order: 7 }, { onDead: [page, null] });
// @ts-expect-error not the input of the reaction
defineJob({ name: 'ship', onDead: [refund, { order: 'seven', failed: 'a' }], run() {} });
// @ts-expect-error no input
defineJob({ name: 'ship', onDead: [refund], run() {} });
void mulligan.enqueue('ship', 1, { onDead: [refund, { order: 7, failed: 'a' }] });
void mulligan.enqueueMany('ship', [{ input: 1, onDead: ['refund', null] }]);
// @ts-expect-error a function cannot be stored
void mulligan.enqueue('ship', 1, { onDead: () => {} });
// @ts-expect-error a worker's half of a definition is not asked at enqueue
implement(refund, () => {}, { onDead: [refund, { order: 7, failed: 'a' }] });

// Disposal.

async function disposed(): Promise<void> {
  await using queue = await testQueue({ jobs });
  same<typeof queue.clock, VirtualClock>(true);
  await using own: Mulligan = queue.mulligan;
  await using stoppable: Worker = own.work();
  void stoppable;
}
void disposed;

// Limits: the key is made of what the handler gets.
defineJob({
  name: 'limited',
  input: z.object({ shop: z.string().transform((shop) => shop.length) }),
  limit: [
    { name: 'shopify', key: ({ shop }) => shop.toFixed(), concurrency: (key) => key.length, total: 5 },
    { name: 'all', rate: { limit: 90, per: '10s', burst: 3 } },
    { name: 'one', concurrency: 1, onLimit: 'cancel-oldest' },
  ],
  run() {},
});
// @ts-expect-error an input has no such field
defineJob<{ shop: string }>({ name: 'limited', limit: { name: 'a', key: ({ shopp }) => shopp, total: 1 }, run() {} });
// @ts-expect-error a key is a text, a number or null
defineJob<{ shop: string }>({ name: 'limited', limit: { name: 'a', key: (input) => input, total: 1 }, run() {} });
// @ts-expect-error no such choice
defineJob({ name: 'limited', limit: { name: 'a', concurrency: 1, onLimit: 'cancel' }, run() {} });
// @ts-expect-error a rate needs its time
defineJob({ name: 'limited', limit: { name: 'a', rate: { limit: 5 } }, run() {} });
// @ts-expect-error a key that may be undefined: null says that the limit does not concern the job
defineJob<{ shop?: string }>({ name: 'limited', limit: { name: 'a', key: ({ shop }) => shop, total: 1 }, run() {} });
void (async (mulligan: Mulligan) => {
  await mulligan.limits.set('shopify', { concurrency: null, rate: { limit: 5, per: '1s' } }, { key: 'a' });
  same<Awaited<ReturnType<typeof mulligan.limits.holding>>, LimitHold[]>(true);
  // @ts-expect-error there is no such value
  await mulligan.limits.set('shopify', { max: 5 });
});
