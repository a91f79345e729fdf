import { DURATION_PATTERN, EXPECTED_DURATION } from '../duration.ts';
/** The part of JSON Schema that `check.ts` reads. */
export interface JsonSchema {
  readonly $schema?: string;
  /** What an error says that it expects. */
  readonly title?: string;
  readonly description?: string;
  readonly type?: 'object' | 'array' | 'string' | 'number' | 'integer';
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: false;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly enum?: readonly string[];
  readonly const?: string;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly anyOf?: readonly JsonSchema[];
}

/** What a call to the dependency can end with. */
export const answers = ['refused', 'unavailable', 'timeout', 'too-many', 'bug', 'invalid'] as const;
/** Longer runs, and more jobs, would take hours. */
export const MOST_JOBS_PER_SECOND = 10_000;

const duration: JsonSchema = {
  title: EXPECTED_DURATION,
  anyOf: [
    { type: 'string', pattern: `^${DURATION_PATTERN}$` },
    { type: 'number', minimum: 0 },
  ],
};
const share: JsonSchema = { description: 'a share, from 0 to 1', type: 'number', minimum: 0, maximum: 1 };
const rate: JsonSchema = { type: 'number', exclusiveMinimum: 0, maximum: MOST_JOBS_PER_SECOND };
const answer: JsonSchema = {
  description:
    'refused: no connection; unavailable: status 503; timeout: none within callTimeout; too-many: status 429; bug: the job fails by its own fault; invalid: status 422, which no retry mends',
  enum: answers,
};

function object(properties: Readonly<Record<string, JsonSchema>>, required: readonly string[], description: string) {
  return { description, type: 'object', properties, required, additionalProperties: false } as const;
}

const arrivals: JsonSchema = {
  anyOf: [
    object(
      { kind: { const: 'constant' }, rate: { ...rate, description: 'jobs per second' } },
      ['kind', 'rate'],
      'at random, at the same rate all the time',
    ),
    object(
      {
        kind: { const: 'daily' },
        mean: { ...rate, description: 'jobs per second over a whole period' },
        peak: { ...rate, description: 'jobs per second at the busiest moment; at most twice the mean' },
        peakAt: { ...duration, description: 'when the first peak comes; half a period by default' },
        period: { ...duration, description: '24h by default' },
      },
      ['kind', 'mean', 'peak'],
      'a sine wave over a period',
    ),
    object(
      {
        kind: { const: 'burst' },
        rate: { ...rate, description: 'jobs per second beside the burst' },
        jobs: { description: 'how many come at once', type: 'integer', minimum: 1, maximum: 1_000_000 },
        at: duration,
      },
      ['kind', 'rate', 'jobs', 'at'],
      'a constant rate, and many jobs at one moment',
    ),
  ],
};

const serviceTime: JsonSchema = {
  anyOf: [
    object({ kind: { const: 'fixed' }, mean: duration }, ['kind', 'mean'], 'always the same'),
    object({ kind: { const: 'exponential' }, mean: duration }, ['kind', 'mean'], 'exponentially distributed'),
    object(
      { kind: { const: 'lognormal' }, median: duration, p99: duration },
      ['kind', 'median', 'p99'],
      'with a long tail, as most services have it',
    ),
  ],
};

const outage: JsonSchema = object(
  {
    from: duration,
    until: duration,
    answer,
    share: { ...share, description: 'of the calls that fail; 1 by default' },
    slowdown: { description: 'what the service time is multiplied by', type: 'number', minimum: 1, maximum: 1_000 },
    every: { ...duration, description: 'repeats it at this interval, `times` times' },
    times: { type: 'integer', minimum: 1, maximum: 10_000 },
  },
  ['from', 'until'],
  'a time in which the dependency fails, or is slow',
);

const dependency: JsonSchema = object(
  {
    serviceTime,
    capacity: { ...rate, description: 'calls per second that it can serve; without it, any number' },
    overload: {
      description:
        'what calls beyond the capacity do. fails: they alone fail. metastable: each of them costs two others, so that nothing is served from 1.5 times the capacity on',
      enum: ['fails', 'metastable'],
    },
    overloadAnswer: answer,
    retryAfter: { ...duration, description: 'sent with every 429 and 503' },
    callTimeout: { ...duration, description: 'how long a call takes that is not answered; 10s by default' },
    errors: object(
      Object.fromEntries(answers.map((one) => [one, share])),
      [],
      'shares of calls that fail at all times, by answer; together at most 1',
    ),
    outages: { type: 'array', items: outage, maxItems: 100 },
  },
  ['serviceTime'],
  'what the jobs call',
);

const limit: JsonSchema = object(
  {
    concurrency: {
      description: 'jobs that may run at once, over all workers',
      type: 'integer',
      minimum: 1,
      maximum: 10_000,
    },
    rate: object(
      { limit: { type: 'integer', minimum: 1, maximum: 1_000_000 }, per: duration },
      ['limit', 'per'],
      'at most `limit` starts in any time of `per`',
    ),
  },
  [],
  'a limit of Mulligan that all jobs stand behind',
);

const DRAFT = 'https://json-schema.org/draft/2020-12/schema';

/** Published as docs/simulate-scenario.schema.json. */
export const scenarioSchema: JsonSchema = {
  $schema: DRAFT,
  title: 'A scenario of mulligan simulate',
  ...object(
    {
      $schema: { description: 'for editors', type: 'string' },
      name: { type: 'string', minLength: 1, maxLength: 60 },
      description: { type: 'string', maxLength: 1_000 },
      duration: { ...duration, description: 'for how long jobs arrive' },
      drain: { ...duration, description: 'how much longer to run, at most, until no job is left; 10m by default' },
      arrivals,
      dependency,
      poison: object({ share, answer }, ['share'], 'jobs that fail at every attempt, and with what; bug by default'),
      workers: { description: 'worker processes; 3 by default', type: 'integer', minimum: 1, maximum: 100 },
      concurrency: { description: 'of each worker; 20 by default', type: 'integer', minimum: 1, maximum: 1_000 },
      retryShare: { ...share, description: 'of a worker; 0.2 by default' },
      limit,
    },
    ['duration', 'arrivals', 'dependency'],
    'Jobs that call one dependency, and what happens to it.',
  ),
};

export const gateKinds = ['resource', 'soft', 'none'] as const;

const backoffProperties: Readonly<Record<string, JsonSchema>> = {
  base: duration,
  factor: { type: 'number', minimum: 1 },
  max: duration,
  delays: { type: 'array', items: duration, minItems: 1, maxItems: 1_000 },
};

/** Published as docs/simulate-policy.schema.json. */
export const policySchema: JsonSchema = {
  $schema: DRAFT,
  title: 'A policy of mulligan simulate --compare',
  ...object(
    {
      $schema: { description: 'for editors', type: 'string' },
      name: { type: 'string', minLength: 1, maxLength: 40 },
      gate: {
        description:
          'resource: behind the gate of a named resource, which is the default; soft: no resource named; none: `resource: false`',
        enum: gateKinds,
      },
      retry: object(
        {
          maxAttempts: { type: 'integer', minimum: 1, maximum: 1_000_000 },
          maxRetries: { type: 'integer', minimum: 0, maximum: 1_000_000 },
          backoff: object(
            { kind: { enum: ['exponential', 'linear', 'fixed', 'fibonacci', 'table'] }, ...backoffProperties },
            ['kind'],
            'as in a definition',
          ),
          jitter: {
            anyOf: [
              { enum: ['none', 'full', 'equal', 'decorrelated'] },
              object({ spread: share }, ['spread'], 'plus or minus this share'),
            ],
          },
          deadline: duration,
          maxCrashes: { type: 'integer', minimum: 1 },
          maxRuns: { type: 'integer', minimum: 1 },
        },
        [],
        'the option `retry` of a definition; what it leaves out is as in the preset standard',
      ),
    },
    ['name'],
    'How jobs are retried, and whether they have a gate.',
  ),
};
