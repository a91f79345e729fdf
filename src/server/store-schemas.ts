import { z } from 'zod';
import { checkName } from '../config.ts';
import { checkGateName } from '../gates.ts';
import { keyLives, lanes, states } from '../job.ts';
import { DEEPEST_JSON, isTooDeep, MOST_VALUES, shapeOf } from '../json-shape.ts';
import { type LimitKey, MOST_LIMITS } from '../limit/limit.ts';
import { checkLimitName } from '../limit/options.ts';
import { logLevels } from '../observe/log.ts';
import { checkStoredResource } from '../resource.ts';
import { isMissingResult } from '../result.ts';
import { LONGEST_DELAY_MS } from '../retry/backoff.ts';
import { type Decision, deadReasons } from '../retry/decision.ts';
import { outcomeKinds, type StoredError } from '../retry/outcome.ts';
import { jitterNames, type RetryPolicy } from '../retry/policy.ts';
import { isStoredKey } from '../storable-key.ts';
import { MARK } from '../store/aside.ts';
import type {
  ClaimRequest,
  Fence,
  JobFilter,
  JobSelection,
  JobTemplate,
  LimitedClaimRequest,
  NewJob,
  Reaction,
  Refund,
  Settlement,
} from '../store/store.ts';
import { checkTags } from '../tags.ts';
import { RESULT_UNKNOWN } from '../worker/once.ts';
import type { Receipt } from './receipt.ts';

/*
 * What travels between a remote store and the server: the types of the store contract as schemas. They refuse what would
 * break a store or those that read from it: a text that PostgreSQL cannot hold, a payload that is no JSON. What is written is
 * checked by the functions that the library checks it with, so that no name is stored which no call of the library takes. They
 * also refuse fields that they do not list. The type of a schema does not notice when an optional field is missing in it, so
 * `satisfies Record<keyof ...>` says that all are listed.
 */

/** PostgreSQL stores neither NUL nor half a surrogate pair. */
const storable = (value: string): boolean => value.isWellFormed() && !value.includes('\0');
const NOT_STORABLE = 'expected text without NUL and halves of surrogate pairs';

export function text(longest: number): z.ZodType<string> {
  return z.string().max(longest).refine(storable, NOT_STORABLE);
}

const LONGEST_NAME = 1_000;
const LONGEST_JSON = 64 * 1_048_576;
const LONGEST_LOG = 16 * 1_024;
/** Of what is only looked up. */
export const name: z.ZodType<string> = text(LONGEST_NAME);
/** The mark names the queues of partitions aside (store/aside.ts). */
export const queueName: z.ZodType<string> = name.refine((value) => !value.includes(MARK), 'expected no U+0001');

/** What a check of the library takes; its message says what was expected. */
function checked<Value>(schema: z.ZodType<Value>, check: (value: Value, what: string) => unknown): z.ZodType<Value> {
  return schema.superRefine((value, { addIssue }) => {
    try {
      check(value, 'value');
    } catch (error) {
      addIssue({ code: 'custom', message: (error as Error).message.replace(/^value[^:]*: /, '') });
    }
  });
}

/** Of jobs, queues, keys, workers and operators that are written. */
export const storedName: z.ZodType<string> = checked(z.string(), checkName);
export const gateName: z.ZodType<string> = checked(z.string(), checkGateName);
export const resource: z.ZodType<string> = checked(z.string(), checkStoredResource);
export const limitName: z.ZodType<string> = checked(z.string(), checkLimitName);
/** '' where a definition gives no key. */
export const limitKey: z.ZodType<string> = z.string().refine(isStoredKey, 'expected a key of at most 200 bytes');
/** With a prefix of its own where a schedule gives it. */
const jobKey = checked(z.string(), (value, what) => checkName(value, what, LONGEST_NAME));
const tags = checked(z.array(z.string()).min(1), checkTags).refine(
  (value) => new Set(value).size === value.length,
  'expected each tag once',
);
/** Of an operation or a job that is stored. Where a job is only looked up, any name will do. */
export const id: z.ZodType<string> = z.string().regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, 'expected a UUID');
/** As large as a column of PostgreSQL holds. */
export const whole: z.ZodType<number> = z
  .int()
  .min(0)
  .max(2 ** 31 - 1);
/** Times may lie before the epoch where a clock was set wrong; none lies beyond what a Date holds. */
export const time: z.ZodType<number> = z.int().min(-8.64e15).max(8.64e15);
/** Some 300 years: with it, a time is still a safe integer. */
export const duration: z.ZodType<number> = z.int().min(0).max(1e13);
/** JSON inside of JSON, into which the check of the body itself does not look; or a text that stands for none. */
function dataText(what: string, isOther: (value: string) => boolean = () => false): z.ZodType<string> {
  const notMany = (value: string): boolean => value.length <= MOST_VALUES || shapeOf(value).values <= MOST_VALUES;
  return text(LONGEST_JSON)
    .refine((value) => !isTooDeep(value), { message: `expected JSON of at most ${DEEPEST_JSON} levels`, abort: true })
    .refine(notMany, { message: `expected JSON of at most ${MOST_VALUES} values`, abort: true })
    .refine((value) => isOther(value) || isJson(value), `expected ${what}`);
}

export const jsonText: z.ZodType<string> = dataText('JSON text');
const resultText = dataText('a result as JSON text, or why there is none', isMissingResult);
/** What a once-only effect returned. */
export const memoText: z.ZodType<string> = dataText('JSON text', (value) => value === RESULT_UNKNOWN);

function isJson(value: string): boolean {
  try {
    JSON.parse(value);
    return true;
  } catch {
    return false;
  }
}

const delay = z.number().min(0).max(LONGEST_DELAY_MS);
/** Plain data for the library: no store keeps it in a column. */
const count = z.int().min(1);
export const policy: z.ZodType<RetryPolicy> = z.strictObject({
  maxAttempts: count,
  backoff: z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('exponential'), baseMs: delay, factor: z.number().min(1), maxMs: delay }),
    z.strictObject({ kind: z.enum(['linear', 'fibonacci']), baseMs: delay, maxMs: delay }),
    z.strictObject({ kind: z.literal('fixed'), baseMs: delay }),
    z.strictObject({ kind: z.literal('table'), delaysMs: z.array(delay).min(1).max(1_000) }),
  ]),
  jitter: z.union([z.enum(jitterNames), z.strictObject({ spread: z.number().min(0).max(1) })]),
  deadlineMs: duration.nullable(),
  maxCrashes: count,
  maxRuns: count,
}) as z.ZodType<RetryPolicy>;

const limitKeys: z.ZodType<readonly LimitKey[]> = z
  .array(z.strictObject({ limit: limitName, key: limitKey }))
  .max(MOST_LIMITS)
  .readonly();

const ownFields = {
  name: storedName,
  queue: storedName,
  retryQueue: storedName.nullable(),
  resource: resource.nullable(),
  limits: limitKeys.exactOptional(),
  priority: z.int().min(0).max(9),
  payload: jsonText,
  policy,
  version: z
    .int()
    .min(1)
    .max(2 ** 31 - 1)
    .optional(),
  tags: tags.nullable().exactOptional(),
  trace: text(10_000).optional(),
  /** The reaction may have one of its own. */
  get onDead() {
    return reaction.exactOptional();
  },
} satisfies Record<keyof Reaction, z.ZodType>;

const reaction: z.ZodType<Reaction> = z.strictObject(ownFields);

const jobFields = {
  ...ownFields,
  onDead: reaction.exactOptional(),
  key: jobKey.nullable(),
  keyLife: z.enum(keyLives),
  debounce: z.strictObject({ maxWaitMs: duration.nullable() }).exactOptional(),
  onLimit: z
    .array(z.strictObject({ limit: limitName, key: limitKey, action: z.enum(['cancel-oldest', 'cancel-newest']) }))
    .max(MOST_LIMITS)
    .exactOptional(),
  windowMs: duration.exactOptional(),
} satisfies Record<keyof JobTemplate, z.ZodType>;

const hasWindow = ({ keyLife, windowMs }: Pick<NewJob, 'keyLife' | 'windowMs'>): boolean =>
  (keyLife === 'window') === (windowMs !== undefined);
const NO_WINDOW = 'expected windowMs with the key life window, and only then';

export const newJob: z.ZodType<NewJob> = z
  .strictObject({ ...jobFields, id, delayMs: duration, dueAt: time.nullable() })
  .refine(hasWindow, NO_WINDOW);

export const jobTemplate: z.ZodType<JobTemplate> = z.strictObject(jobFields).refine(hasWindow, NO_WINDOW);

export const fence: z.ZodType<Fence> = z.object({ id: name, run: whole, worker: name });

const quota = z.strictObject({
  queue: queueName,
  share: whole,
  retry: whole,
  redrive: whole,
  suspect: whole,
  maxRetriesInFlight: z.int().min(0).nullable(),
});

const claimFields = {
  worker: storedName,
  leaseMs: duration,
  limit: z.int().min(0).max(100_000),
  queues: z.array(quota).max(10_000),
  knows: z.map(name, whole).exactOptional(),
  // A name, the mark and two digits (store/aside.ts).
  avoids: z.set(text(LONGEST_NAME + 3)).exactOptional(),
} satisfies Record<keyof ClaimRequest, z.ZodType>;
export const claimRequest: z.ZodType<ClaimRequest> = z.strictObject(claimFields);
export const limitedClaimRequest: z.ZodType<LimitedClaimRequest> = z.strictObject({
  ...claimFields,
  ahead: whole.exactOptional(),
});
export const gatedClaimRequest: z.ZodType<ClaimRequest & { readonly resource: string }> = z.strictObject({
  ...claimFields,
  resource: name,
});

export const storedError: z.ZodType<StoredError> = z.strictObject({
  name: text(1_000),
  message: text(100_000),
  code: text(1_000).nullable(),
  status: z.number().nullable(),
  stack: text(100_000).nullable(),
  fingerprint: text(200).exactOptional(),
  issues: z
    .array(z.strictObject({ message: text(10_000), path: text(10_000) }))
    .max(100)
    .exactOptional(),
} satisfies Record<keyof StoredError, z.ZodType>);

const ruled = { rule: text(10_000), note: text(10_000).exactOptional() };
const lane = z.enum(lanes);
const aside = z
  .strictObject({
    version: whole,
    isRejected: z.boolean(),
    kind: z
      .string()
      .regex(/^[0-9a-f]{2}$/)
      .exactOptional(),
  })
  .exactOptional();

export const decision: z.ZodType<Decision> = z.discriminatedUnion('kind', [
  z.strictObject({ ...ruled, kind: z.literal('complete') }),
  z.strictObject({
    ...ruled,
    kind: z.literal('retry'),
    why: z.enum(['backoff', 'retry-after', 'crash', 'verdict']),
    delayMs: duration,
    lane,
  }),
  z.strictObject({ ...ruled, kind: z.literal('dead'), reason: z.enum(deadReasons), counted: z.boolean() }),
  z.strictObject({ ...ruled, kind: z.literal('defer'), delayMs: duration, lane }),
  z.strictObject({ ...ruled, kind: z.enum(['snooze', 'release']), delayMs: duration, aside }),
  z.strictObject({ ...ruled, kind: z.literal('cancel'), counted: z.boolean() }),
]) as z.ZodType<Decision>;

const spent = z.strictObject({ at: time, count: whole }).nullable();
const refund: z.ZodType<Refund> = z.strictObject({ attempts: whole, spent });

const storedLog = z.strictObject({
  lines: z
    .array(
      z.strictObject({
        level: z.enum(logLevels),
        at: time,
        message: z.string(),
        fields: z.record(z.string(), z.unknown()).exactOptional(),
      }),
    )
    .max(100),
  dropped: whole,
});
/** Those that show logs rely on their shape. */
const logText: z.ZodType<string> = text(LONGEST_LOG).refine(
  (value) => !isTooDeep(value) && isJson(value) && storedLog.safeParse(JSON.parse(value)).success,
  'expected the log of a run, as JSON text',
);

export const settlement: z.ZodType<Settlement> = z.strictObject({
  id: name,
  run: whole,
  worker: name,
  outcome: z.enum(outcomeKinds),
  decision,
  error: storedError.nullable(),
  refund: refund.exactOptional(),
  result: resultText.exactOptional(),
  progress: jsonText.exactOptional(),
  log: logText.exactOptional(),
  startedAt: time,
  endedAt: time,
} satisfies Record<keyof Settlement, z.ZodType>);

const state = z.enum(states);
const selectionFields = {
  ids: z.array(name).max(10_000).exactOptional(),
  name: name.exactOptional(),
  queue: name.exactOptional(),
  state: z.union([state, z.array(state).max(states.length)]).exactOptional(),
  reason: z.enum(deadReasons).exactOptional(),
  error: name.exactOptional(),
  message: name.exactOptional(),
  tag: name.exactOptional(),
  key: name.exactOptional(),
  since: time.exactOptional(),
  until: time.exactOptional(),
  attempts: z.strictObject({ min: whole, max: whole }).exactOptional(),
  limit: whole.exactOptional(),
} satisfies Record<keyof JobSelection, z.ZodType>;
export const selection: z.ZodType<JobSelection> = z.strictObject(selectionFields);
export const jobFilter: z.ZodType<JobFilter> = z.strictObject({
  ...selectionFields,
  limit: z.int().min(0).max(10_000),
  after: name.exactOptional(),
  idPrefix: name.exactOptional(),
});

export const receipt: z.ZodType<Receipt> = z.strictObject({
  job: z.strictObject({
    id,
    run: whole,
    worker: name,
    name,
    queue: name,
    homeQueue: name,
    resource: name.nullable(),
    limits: z.array(z.strictObject({ limit: name, key: name })).max(100),
    lane,
    priority: whole,
    policy,
    attempts: whole,
    crashes: whole,
    givenBack: whole,
    deferredSince: time.nullable(),
    snoozes: whole,
    version: whole.nullable(),
    enqueuedAt: time,
    dueAt: time,
    availableAt: time,
    firstStartedAt: time,
    claimedAt: time,
    leaseEndsAt: time,
    previousDelayMs: duration.nullable(),
    lastError: storedError.nullable(),
    cancelRequested: z.boolean(),
    alone: z.boolean(),
    gateEpoch: time,
    trace: text(10_000).nullable(),
    spent,
  }),
  leaseMs: duration,
  refund: refund.exactOptional(),
});
