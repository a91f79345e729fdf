import { z } from 'zod';
import { EXPECTED_AGO, type Moment } from '../bulk/selection.ts';
import { DURATION_PATTERN, type Duration, EXPECTED_DURATION } from '../duration.ts';
import type { JobToEnqueue } from '../enqueue-options.ts';
import { keyUntils, lanes, states } from '../job.ts';
import { logLevels } from '../observe/log.ts';
import { deadReasons } from '../retry/decision.ts';
import { failureClasses, outcomeKinds } from '../retry/outcome.ts';
import { backoffKinds, jitterNames } from '../retry/policy.ts';
import type { ReportedError, ReportedLine } from './remote-runs.ts';

/* What the API takes and answers, for people and programs. Names and bounds are those of the library, which checks them again. */

const LONGEST_NAME = 200;
/** As large as a column of PostgreSQL holds. */
export const LARGEST_COUNT: number = 2 ** 31 - 1;

export const jobName: z.ZodType<string> = z.string().min(1).max(LONGEST_NAME);
export const jobId: z.ZodType<string> = z.string().min(1).max(LONGEST_NAME).describe('The id of a job: a UUID.');
export const idParams: z.ZodType<{ id: string }> = z.strictObject({ id: jobId });
export const nameParams: z.ZodType<{ name: string }> = z.strictObject({ name: z.string().min(1).max(401) });

const durationText = z.string().regex(new RegExp(`^${DURATION_PATTERN}$`), `Expected ${EXPECTED_DURATION}.`);
export const durationSchema: z.ZodType<Duration> = z
  .union([z.number().min(0), durationText], `Expected ${EXPECTED_DURATION}.`)
  .describe(EXPECTED_DURATION) as z.ZodType<Duration>;

/** A duration in a URL, where a number is a text as well. */
export const durationQuery: z.ZodType<Duration> = z
  .string()
  .regex(new RegExp(`^(${DURATION_PATTERN}|\\d+(\\.\\d+)?)$`), `Expected ${EXPECTED_DURATION}.`)
  .transform((text) => (/\d$/.test(text) ? Number(text) : text))
  .describe(EXPECTED_DURATION) as unknown as z.ZodType<Duration>;

/** A point in time, as ISO 8601 has it. */
export const instant: z.ZodType<Date, string> = z.iso
  .datetime({ offset: true })
  .transform((text) => new Date(text))
  .describe('A point in time, such as 2026-03-01T12:00:00Z.') as unknown as z.ZodType<Date, string>;

const momentText = `a point in time (ISO 8601), or ${EXPECTED_AGO}`;
const agoText = z.string().regex(new RegExp(`^${DURATION_PATTERN}( ago)?$`), `Expected ${momentText}.`);
/** A point in time, or how long ago; as `Moment` of the library. */
export const moment: z.ZodType<Moment> = z
  .union([instant, agoText], `Expected ${momentText}.`)
  .describe(momentText) as z.ZodType<Moment>;

const backoff = z
  .strictObject({
    kind: z.enum(backoffKinds),
    base: durationSchema.exactOptional(),
    factor: z.number().exactOptional(),
    max: durationSchema.exactOptional(),
    delays: z.array(durationSchema).max(1_000).exactOptional(),
  })
  .describe('exponential, linear, fibonacci: base and max; fixed: base; table: delays.');

const retryOptions = z
  .strictObject({
    maxAttempts: z.int().exactOptional(),
    maxRetries: z.int().exactOptional(),
    backoff: backoff.exactOptional(),
    jitter: z.union([z.enum(jitterNames), z.strictObject({ spread: z.number() })]).exactOptional(),
    deadline: durationSchema.nullable().exactOptional(),
    maxCrashes: z.int().exactOptional(),
    maxRuns: z.int().exactOptional(),
  })
  .describe('Overrides the policy of the job, field by field.');

const enqueueFields = {
  delay: durationSchema.exactOptional(),
  at: instant.exactOptional(),
  priority: z.int().min(0).max(9).exactOptional(),
  queue: jobName.exactOptional(),
  key: jobName.exactOptional(),
  keyUntil: z.enum(keyUntils).exactOptional(),
  debounce: z
    .union([durationSchema, z.strictObject({ wait: durationSchema, maxWait: durationSchema.exactOptional() })])
    .exactOptional(),
  throttle: durationSchema.exactOptional(),
  tags: z.array(jobName).max(100).exactOptional(),
  retry: retryOptions.exactOptional(),
  onDead: z
    .tuple([jobName, z.unknown()])
    .describe('The name and the input of a job that is stored if this one dies.')
    .exactOptional(),
};

/** One job, as `enqueue` takes it. */
export interface EnqueueBody extends JobToEnqueue {
  readonly name: string;
}
export const enqueueBody: z.ZodType<EnqueueBody> = z.strictObject({
  name: jobName,
  input: z.unknown().default(null),
  ...enqueueFields,
}) as z.ZodType<EnqueueBody>;

export interface EnqueueManyBody {
  readonly name: string;
  readonly jobs: readonly JobToEnqueue[];
}
export const enqueueManyBody: z.ZodType<EnqueueManyBody> = z.strictObject({
  name: jobName,
  jobs: z
    .array(z.strictObject({ input: z.unknown().default(null), ...enqueueFields }))
    .min(1)
    .max(10_000),
}) as z.ZodType<EnqueueManyBody>;

export const enqueued: z.ZodType = z.object({
  id: jobId,
  existed: z.boolean().describe('True when the key was taken, and this is the job that holds it.'),
  replaced: z.literal(true).optional(),
  capped: z.object({ asked: z.int(), hardCap: z.int() }).optional(),
});

export const storedError: z.ZodType = z.object({
  name: z.string(),
  message: z.string(),
  code: z.string().nullable(),
  status: z.number().nullable(),
  stack: z.string().nullable(),
  fingerprint: z.string().optional(),
  issues: z.array(z.object({ message: z.string(), path: z.string() })).optional(),
});

const timestamp = z.number().describe('Milliseconds since the epoch, by the clock of the store.');
export const policySchema: z.ZodType = z.looseObject({ maxAttempts: z.int() });
const limitKeys = z.array(z.object({ limit: z.string(), key: z.string() }));

export const job: z.ZodType = z.object({
  id: jobId,
  name: z.string(),
  queue: z.string(),
  state: z.enum(states),
  lane: z.enum(lanes),
  priority: z.int(),
  payload: z.unknown().describe('Fields with secret names are redacted.'),
  version: z.int().nullable(),
  key: z.string().nullable(),
  tags: z.array(z.string()),
  resource: z.string().nullable(),
  limits: limitKeys,
  policy: policySchema,
  runs: z.int(),
  attempts: z.int(),
  crashes: z.int(),
  enqueuedAt: timestamp,
  dueAt: timestamp,
  firstStartedAt: timestamp.nullable(),
  finishedAt: timestamp.nullable(),
  leaseEndsAt: timestamp.nullable(),
  worker: z.string().nullable(),
  deadReason: z.enum(deadReasons).nullable(),
  lastError: storedError.nullable(),
  progress: z.unknown(),
  result: z.unknown(),
  resultError: z.string().nullable(),
  cancelRequested: z.boolean(),
  trace: z.string().nullable().optional(),
});

export const decisionSchema: z.ZodType = z.looseObject({ kind: z.string(), rule: z.string() });

export const runRecord: z.ZodType = z.object({
  jobId,
  run: z.int(),
  attempt: z.int(),
  outcome: z.enum(outcomeKinds),
  counted: z.boolean(),
  worker: z.string(),
  startedAt: timestamp,
  endedAt: timestamp,
  error: storedError.nullable(),
  decision: decisionSchema,
  nextDueAt: timestamp.nullable(),
});

const logLine = {
  level: z.enum(logLevels),
  message: z.string(),
  fields: z.record(z.string(), z.unknown()).optional().describe('Fields with secret names are redacted.'),
};

export const runLog: z.ZodType = z.object({
  run: z.int(),
  lines: z.array(z.object({ at: timestamp, ...logLine })).describe('Oldest first.'),
  dropped: z.int().describe('How many lines were written before these, and are not kept.'),
});

export const reportedLog: z.ZodType<ReportedLine[]> = z
  .array(
    z.strictObject({
      level: z.enum(logLevels),
      message: z.string().max(100_000),
      at: z.int().min(0).max(8.64e15).exactOptional().describe('Milliseconds since the epoch. Default: now.'),
      fields: z.record(z.string(), z.unknown()).exactOptional(),
    }),
  )
  .max(1_000)
  .describe(
    'What the run logged, oldest line first. The last 50 lines or 8 KiB are kept, without those of level debug.',
  );

/** Items and where the next page begins. */
export function pageOf(item: z.ZodType): z.ZodType {
  return z.object({
    items: z.array(item),
    next: z.string().nullable().describe('Send it as `cursor` for the next page; null when this was the last.'),
  });
}

export const reportedError: z.ZodType<ReportedError> = z.strictObject({
  class: z.enum(failureClasses).exactOptional().describe('What kind of failure it is. Left out, rules find out.'),
  name: z.string().max(1_000).exactOptional().describe('The class of the error, such as TimeoutError.'),
  message: z.string().max(100_000).exactOptional(),
  code: z.string().max(1_000).exactOptional().describe('Such as ECONNRESET.'),
  status: z.int().min(100).max(599).exactOptional().describe('The HTTP status that the worker got.'),
  stack: z.string().max(100_000).exactOptional(),
  retryAfter: z
    .union([z.number().min(0), z.string().max(100)])
    .exactOptional()
    .describe('The Retry-After that the worker was told: seconds, or a date.'),
});
