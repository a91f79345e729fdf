import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { lanes, settledBy } from '../job.ts';
import { LONGEST_DELAY_MS } from './backoff.ts';
import { type DecidableJob, decide } from './decide.ts';
import type { Decision } from './decision.ts';
import type { Failure, Outcome } from './outcome.ts';
import type { Jitter, RetryPolicy } from './policy.ts';

const now = 1_000_000_000;

const policy: RetryPolicy = {
  maxAttempts: 4,
  backoff: { kind: 'exponential', baseMs: 500, factor: 2, maxMs: 30_000 },
  jitter: 'none',
  deadlineMs: null,
  maxCrashes: 3,
  maxRuns: 10_000,
};

/** The second attempt of a job that first started a minute ago. */
const job: DecidableJob = {
  policy,
  lane: 'retry',
  run: 2,
  attempts: 2,
  crashes: 0,
  givenBack: 0,
  snoozes: 0,
  version: null,
  alone: false,
  firstStartedAt: now - 60_000,
  availableAt: now - 60_000,
  previousDelayMs: 500,
  cancelRequested: false,
};

const error = { name: 'Error', message: 'x', code: null, status: null, stack: null };
const failure: Failure = { error, class: 'job', rule: 'default', retryAfterMs: null, customDelayMs: null, note: null };

const failed = (change: Partial<Failure> = {}): Outcome => ({ kind: 'failed', failure: { ...failure, ...change } });
const crashed: Outcome = { kind: 'crashed' };
const snoozed: Outcome = { kind: 'snoozed', delayMs: 5_000 };
const shutdown: Outcome = { kind: 'released', because: { kind: 'shutdown' } };
const tooLate: Outcome = { kind: 'released', because: { kind: 'late' } };
const pastDeadline: Outcome = { kind: 'released', because: { kind: 'deadline' } };
const noHandler = (giveUpAfterMs: number, known: number | null = null): Outcome => ({
  kind: 'released',
  because: { kind: 'no-handler', known, giveUpAfterMs },
});
/** `ago`: how long ago a worker first rejected the payload. */
const rejected = (times: number, ago: number, giveUpAfterMs = 3_600_000): Outcome => ({
  kind: 'released',
  because: {
    kind: 'rejected',
    error,
    before: times === 0 ? null : { times, since: now - ago, kind: undefined },
    giveUpAfterMs,
  },
});
const aside = { version: 1, isRejected: false };
const rejectedAfter = (delayMs: number, version = 1): Decision => ({
  kind: 'release',
  delayMs,
  rule: 'payload rejected',
  aside: { version, isRejected: true },
});

const withPolicy = (change: Partial<RetryPolicy>): Partial<DecidableJob> => ({ policy: { ...policy, ...change } });
const cancelRequested = { cancelRequested: true };
const spent = { attempts: 4 };
const suspect = { lane: 'suspect' } as const;

const cancel: Decision = { kind: 'cancel', counted: true, rule: 'cancel requested' };
const cancelUncounted: Decision = { kind: 'cancel', counted: false, rule: 'cancel requested' };
const exhausted: Decision = { kind: 'dead', reason: 'exhausted', counted: true, rule: 'attempts 4 of 4' };
const poison: Decision = { kind: 'dead', reason: 'poison', counted: true, rule: 'maxCrashes 3' };
const late = (counted: boolean, rule = 'deadline 1m'): Decision => ({
  kind: 'dead',
  reason: 'deadline',
  counted,
  rule,
});
const retry = (change: Partial<Extract<Decision, { kind: 'retry' }>> = {}): Decision => {
  return { kind: 'retry', why: 'backoff', delayMs: 1_000, lane: 'retry', rule: 'default', ...change };
};

type Case = [rule: string, job: Partial<DecidableJob>, outcome: Outcome, decision: Decision];

const completedAndCancelled: Case[] = [
  ['completed', {}, { kind: 'completed' }, { kind: 'complete', rule: 'completed' }],
  ['completed though to be cancelled', cancelRequested, { kind: 'completed' }, { kind: 'complete', rule: 'completed' }],
  ['completed on the last attempt', spent, { kind: 'completed' }, { kind: 'complete', rule: 'completed' }],
  ['cancelled', {}, { kind: 'cancelled', error }, { kind: 'cancel', counted: true, rule: 'cancelled' }],
];

const failures: Case[] = [
  ['a job error is retried', {}, failed(), retry()],
  [
    'an environment error is retried',
    {},
    failed({ class: 'environment', rule: 'http:503' }),
    retry({ rule: 'http:503' }),
  ],
  ['the first attempt waits the first delay', { attempts: 1 }, failed(), retry({ delayMs: 500 })],
  [
    'a permanent error is not',
    {},
    failed({ class: 'permanent', rule: 'http:404' }),
    { kind: 'dead', reason: 'unrecoverable', counted: true, rule: 'http:404' },
  ],
  [
    'permanent on the last attempt',
    spent,
    failed({ class: 'permanent', rule: 'thrown:Unrecoverable' }),
    { kind: 'dead', reason: 'unrecoverable', counted: true, rule: 'thrown:Unrecoverable' },
  ],
  ['the attempts are spent', spent, failed(), exhausted],
  ['the attempts are more than spent', { attempts: 9 }, failed(), { ...exhausted, rule: 'attempts 9 of 4' }],
  ['one shot', { attempts: 1, ...withPolicy({ maxAttempts: 1 }) }, failed(), { ...exhausted, rule: 'attempts 1 of 1' }],
  ['to be cancelled', cancelRequested, failed(), cancel],
  ['to be cancelled, permanent', cancelRequested, failed({ class: 'permanent' }), cancel],
  ['to be cancelled, spent', { ...spent, ...cancelRequested }, failed(), cancel],
  [
    'the next start lies beyond the deadline',
    withPolicy({ deadlineMs: 60_999 }),
    failed(),
    late(true, 'deadline 60999ms'),
  ],
  ['the next start lies on the deadline', withPolicy({ deadlineMs: 61_000 }), failed(), retry()],
  ['exhausted before deadline', { ...spent, ...withPolicy({ deadlineMs: 1 }) }, failed(), exhausted],
  ['a note is handed on', {}, failed({ note: 'n' }), retry({ note: 'n' })],
  ['a note is handed on to the grave', spent, failed({ note: 'n' }), { ...exhausted, note: 'n' }],
  ['one crash left: alone', { crashes: 2 }, failed(), retry({ lane: 'suspect' })],
  ['two crashes left', { crashes: 1 }, failed(), retry()],
  ['no crash is ever forgiven, none happened', withPolicy({ maxCrashes: 1 }), failed(), retry()],
];

const delays: Case[] = [
  ['a custom delay replaces the backoff', {}, failed({ customDelayMs: 7 }), retry({ delayMs: 7 })],
  ['a custom delay of 0', {}, failed({ customDelayMs: 0 }), retry({ delayMs: 0 })],
  ['a longer Retry-After', {}, failed({ retryAfterMs: 9_000 }), retry({ why: 'retry-after', delayMs: 9_000 })],
  [
    'a Retry-After beyond the cap',
    {},
    failed({ retryAfterMs: 86_400_000 }),
    retry({ why: 'retry-after', delayMs: 86_400_000 }),
  ],
  ['a Retry-After as long as the backoff', {}, failed({ retryAfterMs: 1_000 }), retry({ why: 'retry-after' })],
  ['a shorter Retry-After', {}, failed({ retryAfterMs: 10 }), retry()],
  ['a Retry-After in the past', {}, failed({ retryAfterMs: 0 }), retry()],
  [
    'a Retry-After beats a custom delay',
    {},
    failed({ retryAfterMs: 9, customDelayMs: 7 }),
    retry({ why: 'retry-after', delayMs: 9 }),
  ],
  ['a custom delay beats a Retry-After', {}, failed({ retryAfterMs: 7, customDelayMs: 9 }), retry({ delayMs: 9 })],
  [
    'a Retry-After beyond the deadline',
    withPolicy({ deadlineMs: 300_000 }),
    failed({ retryAfterMs: 900_000 }),
    late(true, 'deadline 5m'),
  ],
];

const crashes: Case[] = [
  ['the first', {}, crashed, retry({ why: 'crash', rule: 'crash 1 of 3' })],
  [
    'the last but one: it becomes a suspect',
    { crashes: 1 },
    crashed,
    retry({ why: 'crash', lane: 'suspect', rule: 'crash 2 of 3' }),
  ],
  ['the last', { crashes: 2 }, crashed, poison],
  [
    'of a run beyond the last attempt, which only asks whether there is an outage',
    { attempts: 5 },
    crashed,
    { kind: 'dead', reason: 'exhausted', counted: false, rule: 'attempts 4 of 4, no verdict' },
  ],
  ['the last of a job that is no suspect, beside others or alone', { crashes: 2, alone: true }, crashed, poison],
  ['the last of a redriven job', { crashes: 2, lane: 'redrive' }, crashed, poison],
  ['a suspect that crashed alone', { ...suspect, crashes: 2, alone: true }, crashed, poison],
  [
    'a suspect that crashed beside others is tried again',
    { ...suspect, crashes: 2 },
    crashed,
    retry({ why: 'crash', lane: 'suspect', rule: 'crash 3 of 6, not alone' }),
  ],
  [
    'a suspect before twice the crashes is tried again',
    { ...suspect, crashes: 4 },
    crashed,
    retry({ why: 'crash', lane: 'suspect', rule: 'crash 5 of 6, not alone' }),
  ],
  [
    'a suspect at twice the crashes',
    { ...suspect, crashes: 5 },
    crashed,
    { ...poison, rule: 'maxCrashes 3: crash 6, never alone' },
  ],
  [
    'a suspect with a crash left, alone',
    { ...suspect, crashes: 1, alone: true },
    crashed,
    {
      ...retry({ why: 'crash', lane: 'suspect', rule: 'crash 2 of 3' }),
    },
  ],
  ['a suspect whose attempts are spent', { ...suspect, ...spent, crashes: 2 }, crashed, exhausted],
  ['poison before exhausted', { crashes: 2, ...spent }, crashed, poison],
  ['poison before cancel', { crashes: 2, ...cancelRequested }, crashed, poison],
  ['one crash is too many', withPolicy({ maxCrashes: 1 }), crashed, { ...poison, rule: 'maxCrashes 1' }],
  [
    'two are: the first makes it a suspect',
    withPolicy({ maxCrashes: 2 }),
    crashed,
    retry({ why: 'crash', lane: 'suspect', rule: 'crash 1 of 2' }),
  ],
  ['the attempts are spent', spent, crashed, exhausted],
  ['exhausted before cancel', { ...spent, ...cancelRequested }, crashed, exhausted],
  ['to be cancelled', cancelRequested, crashed, cancel],
  ['cancel before deadline', { ...cancelRequested, ...withPolicy({ deadlineMs: 1 }) }, crashed, cancel],
  ['the deadline', withPolicy({ deadlineMs: 60_000 }), crashed, late(true)],
];

const snoozes: Case[] = [
  ['sleeps, uncounted', {}, snoozed, { kind: 'snooze', delayMs: 5_000, rule: 'snoozed' }],
  ['sleeps on the last attempt', spent, snoozed, { kind: 'snooze', delayMs: 5_000, rule: 'snoozed' }],
  ['to be cancelled', cancelRequested, snoozed, cancelUncounted],
  [
    'until the deadline',
    withPolicy({ deadlineMs: 65_000 }),
    snoozed,
    { kind: 'snooze', delayMs: 5_000, rule: 'snoozed' },
  ],
  ['beyond the deadline', withPolicy({ deadlineMs: 60_000 }), snoozed, late(false)],
];

const releases: Case[] = [
  ['shutdown', {}, shutdown, { kind: 'release', delayMs: 0, rule: 'shutdown' }],
  ['shutdown on the last attempt', spent, shutdown, { kind: 'release', delayMs: 0, rule: 'shutdown' }],
  ['cancelled before the start', {}, { kind: 'released', because: { kind: 'cancelled' } }, cancelUncounted],
  ['shutdown, to be cancelled', cancelRequested, shutdown, cancelUncounted],
  ['late', {}, tooLate, { kind: 'release', delayMs: 0, rule: 'lease over before the start' }],
  ['no handler yet', {}, noHandler(60_001), { kind: 'release', delayMs: 0, rule: 'no-handler', aside }],
  [
    'no handler of a later version',
    { version: 3 },
    noHandler(60_001, 2),
    { kind: 'release', delayMs: 0, rule: 'no-handler: version 3, known 2', aside: { version: 3, isRejected: false } },
  ],
  [
    'no handler for too long',
    {},
    noHandler(60_000),
    { kind: 'dead', reason: 'no-handler', counted: false, rule: 'no-handler for 1m' },
  ],
  ['no handler, to be cancelled', cancelRequested, noHandler(1), cancelUncounted],
  [
    'no handler of a later version for too long',
    { version: 3 },
    noHandler(60_000, 2),
    { kind: 'dead', reason: 'no-handler', counted: false, rule: 'no-handler: version 3, known 2 for 1m' },
  ],
  ['a payload rejected for the first time', { version: 2 }, rejected(0, 0), rejectedAfter(0, 2)],
  ['a payload rejected by a few workers', {}, rejected(19, 60_000), rejectedAfter(0)],
  ['a payload rejected by many workers', {}, rejected(20, 60_000), rejectedAfter(15_000)],
  ['a payload rejected for long', {}, rejected(30, 1_800_000), rejectedAfter(300_000)],
  ['a payload rejected before the clock stepped back', {}, rejected(30, -60_000), rejectedAfter(0)],
  ['a payload rejected, to be cancelled', cancelRequested, rejected(0, 0), cancelUncounted],
  [
    'a payload rejected for too long',
    {},
    rejected(1, 3_600_000),
    { kind: 'dead', reason: 'unrecoverable', counted: false, rule: 'payload rejected for 1h' },
  ],
  ['deadline', withPolicy({ deadlineMs: 60_000 }), pastDeadline, late(false)],
  ['deadline of a policy that has none', {}, pastDeadline, late(false, 'deadline')],
  ['deadline, to be cancelled', cancelRequested, pastDeadline, cancelUncounted],
];

describe.each([
  ['completed and cancelled', completedAndCancelled],
  ['failed', failures],
  ['failed: how long', delays],
  ['crashed', crashes],
  ['snoozed', snoozes],
  ['released', releases],
])('%s', (_, cases) => {
  test.each(cases)('%s', (_rule, change, outcome, decision) => {
    expect(decide({ ...job, ...change }, outcome, now, () => 0.5)).toEqual(decision);
  });
});

describe('jitter', () => {
  const delayOf = (decision: Decision): number => ('delayMs' in decision ? decision.delayMs : NaN);
  const jittered: DecidableJob = { ...job, policy: { ...policy, jitter: 'full' } };

  test('is drawn for every delay that a herd could share', () => {
    for (const outcome of [failed(), failed({ retryAfterMs: 9_000 }), crashed]) {
      const [least, most] = [0, 1 - 2 ** -53].map((drawn) => delayOf(decide(jittered, outcome, now, () => drawn)));
      expect(least).toBeLessThan(most as number);
    }
  });

  test('lengthens a Retry-After by up to a tenth, and by no more than 5 minutes', () => {
    const delay = (retryAfterMs: number, drawn: number): number =>
      delayOf(decide(jittered, failed({ retryAfterMs }), now, () => drawn));
    expect([delay(60_000, 0), delay(60_000, 1)]).toEqual([60_000, 66_000]);
    expect(delay(9_005, 1)).toBe(9_905);
    expect([delay(86_400_000, 0), delay(86_400_000, 1)]).toEqual([86_400_000, 86_700_000]);
  });

  test('grows a decorrelated delay from the one before', () => {
    const decorrelated: DecidableJob = {
      ...job,
      previousDelayMs: 4_000,
      policy: { ...policy, jitter: 'decorrelated' },
    };
    expect(delayOf(decide(decorrelated, failed(), now, () => 1))).toBe(12_000);
    expect(delayOf(decide(decorrelated, crashed, now, () => 1))).toBe(12_000);
  });
});

describe('any job and any outcome', () => {
  const delay = fc.nat(LONGEST_DELAY_MS);
  const anyPolicy: fc.Arbitrary<RetryPolicy> = fc.record({
    maxAttempts: fc.integer({ min: 1, max: 10_000 }),
    backoff: fc.oneof(
      fc.record({
        kind: fc.constant('exponential' as const),
        baseMs: delay,
        factor: fc.constantFrom(1, 2, 10),
        maxMs: delay,
      }),
      fc.record({ kind: fc.constant('table' as const), delaysMs: fc.array(delay, { minLength: 1, maxLength: 5 }) }),
    ),
    jitter: fc.constantFrom<Jitter[]>('none', 'full', 'equal', 'decorrelated', { spread: 0.3 }),
    deadlineMs: fc.option(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })),
    maxCrashes: fc.integer({ min: 1, max: 5 }),
    maxRuns: fc.integer({ min: 1, max: 20_000 }),
  });
  const anyJob: fc.Arbitrary<DecidableJob> = fc.record({
    policy: anyPolicy,
    run: fc.integer({ min: 1, max: 10_000 }),
    attempts: fc.integer({ min: 1, max: 10_000 }),
    crashes: fc.nat(6),
    givenBack: fc.nat(20_000),
    snoozes: fc.nat(20),
    version: fc.option(fc.integer({ min: 1, max: 1_000_000 })),
    lane: fc.constantFrom(...lanes),
    alone: fc.boolean(),
    firstStartedAt: fc.nat(now),
    availableAt: fc.nat(now),
    previousDelayMs: fc.option(delay),
    cancelRequested: fc.boolean(),
  });
  const anyFailure = fc.record({
    class: fc.constantFrom('permanent', 'environment', 'job'),
    retryAfterMs: fc.option(fc.nat(8_000_000_000_000_000)),
    customDelayMs: fc.option(delay),
    note: fc.option(fc.string()),
  });
  const anyOutcome: fc.Arbitrary<Outcome> = fc.oneof(
    fc.constant<Outcome>({ kind: 'completed' }),
    fc.constant<Outcome>({ kind: 'cancelled', error: null }),
    anyFailure.map((change) => failed(change as Partial<Failure>)),
    fc.constant(crashed),
    delay.map((delayMs): Outcome => ({ kind: 'snoozed', delayMs })),
    fc.constantFrom(shutdown, tooLate, pastDeadline, noHandler(1), noHandler(now), rejected(50, 1), rejected(1, now)),
  );
  const drawn = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

  test('make a decision that can be settled', () => {
    fc.assert(
      fc.property(anyJob, anyOutcome, drawn, (one, outcome, value) => {
        const decision = decide(one, outcome, now, () => value);
        expect(decision.rule).not.toBe('');
        const settled = settledBy(decision, false, now);
        const hasEnded = ['completed', 'dead', 'cancelled'].includes(settled.state);
        expect(settled.dueAt === null).toBe(hasEnded);
        expect(settled.dueAt === null || (Number.isSafeInteger(settled.dueAt) && settled.dueAt >= now)).toBe(true);
        expect(settled.deadReason === null).toBe(settled.state !== 'dead');
        expect(JSON.parse(JSON.stringify(decision))).toEqual(decision);
      }),
      { numRuns: 3_000 },
    );
  });

  test('never run past the attempts, the crashes, the deadline or a Retry-After', () => {
    fc.assert(
      fc.property(anyJob, anyOutcome, drawn, (one, outcome, value) => {
        const decision = decide(one, outcome, now, () => value);
        if (decision.kind !== 'retry') return;
        const { maxAttempts, maxCrashes, deadlineMs } = one.policy;
        const crashCount = one.crashes + (outcome.kind === 'crashed' ? 1 : 0);
        expect(one.attempts).toBeLessThan(maxAttempts);
        expect(one.cancelRequested).toBe(false);
        const isOnTrial = one.lane === 'suspect' && !one.alone;
        if (outcome.kind === 'crashed') expect(crashCount).toBeLessThan(isOnTrial ? 2 * maxCrashes : maxCrashes);
        if (deadlineMs !== null) expect(now + decision.delayMs - one.firstStartedAt).toBeLessThanOrEqual(deadlineMs);
        if (outcome.kind === 'failed')
          expect(decision.delayMs).toBeGreaterThanOrEqual(outcome.failure.retryAfterMs ?? 0);
        expect(decision.lane).toBe(maxCrashes > 1 && crashCount >= maxCrashes - 1 ? 'suspect' : 'retry');
      }),
      { numRuns: 3_000 },
    );
  });

  test('never bury a suspect that crashed beside others before twice its crashes', () => {
    const suspectBesideOthers = anyJob.map((one): DecidableJob => ({ ...one, lane: 'suspect', alone: false }));
    fc.assert(
      fc.property(suspectBesideOthers, drawn, (one, value) => {
        const decision = decide(one, crashed, now, () => value);
        const isPoison = decision.kind === 'dead' && decision.reason === 'poison';
        expect(isPoison).toBe(one.crashes + 1 >= 2 * one.policy.maxCrashes);
      }),
      { numRuns: 3_000 },
    );
  });

  test('bury every other job at its crashes', () => {
    const decided = anyJob.filter(({ lane, alone }) => lane !== 'suspect' || alone);
    fc.assert(
      fc.property(decided, drawn, (one, value) => {
        const decision = decide(one, crashed, now, () => value);
        const isPoison = decision.kind === 'dead' && decision.reason === 'poison';
        expect(isPoison).toBe(one.crashes + 1 >= one.policy.maxCrashes);
      }),
      { numRuns: 3_000 },
    );
  });

  test('decide the same when asked the same', () => {
    fc.assert(
      fc.property(anyJob, anyOutcome, drawn, (one, outcome, value) => {
        const ask = (): Decision => decide(one, outcome, now, () => value);
        expect(ask()).toEqual(ask());
      }),
    );
  });
});

describe('behind a gate', () => {
  const plain = { ...job, run: 9, policy: { ...policy, jitter: 'none' as const, deadlineMs: null } };
  const uncounted = { counts: false, rule: 'api: gate open', pendingMs: null };
  const delayOf = (longestWaitMs: number | null, failure: Parameters<typeof failed>[0] = {}): unknown => {
    const down = failed({ class: 'environment', ...failure });
    const decision = decide(plain, down, now, () => 0.5, { ...uncounted, longestWaitMs });
    return 'delayMs' in decision && decision.delayMs;
  };

  test('a job that its outage gave the attempt back to waits no longer than the gate says, whatever its own backoff', () => {
    const own = delayOf(null) as number;
    expect(own).toBeGreaterThan(2_000);
    expect([delayOf(0), delayOf(2_000), delayOf(own + 1)]).toEqual([0, 2_000, own]);
    expect(delayOf(2_000, { customDelayMs: 60_000 })).toBe(2_000);
  });

  test('a Retry-After holds all the same', () => {
    expect(delayOf(0, { retryAfterMs: 7_000_000 })).toBe(3_600_000);
    expect(delayOf(0, { retryAfterMs: 1_000 })).toBe(1_000);
  });
});

test('what a job behind a gate was told to wait is an hour at most', () => {
  const verdict = { counts: false, rule: 'api: throttled', pendingMs: null, longestWaitMs: 0 };
  const plain = { ...job, policy: { ...policy, jitter: 'none' as const, deadlineMs: null } };
  const year = failed({ class: 'environment', retryAfterMs: 365 * 86_400_000 });
  expect(decide(plain, year, now, () => 0.5, verdict)).toMatchObject({ kind: 'defer', delayMs: 3_600_000 });
});

describe('a run that a soft gate gives back', () => {
  const verdict = { counts: false, rule: 'call: no sign of life', pendingMs: null, longestWaitMs: null };
  const at = (
    givenBack: number,
    change: Partial<DecidableJob> = {},
    failure: Partial<Failure> = {},
    value = 0,
  ): unknown =>
    decide(
      { ...job, ...withPolicy({ backoff: { kind: 'fixed', baseMs: 0 } }), givenBack, ...change },
      failed({ class: 'environment', ...failure }),
      now,
      () => value,
      verdict,
    );

  test('waits 2 s, doubling to a minute, whatever its backoff is; jitter only adds, up to half', () => {
    const waits = [0, 1, 2, 3, 4, 5, 6, 9_000];
    expect(waits.map((givenBack) => at(givenBack))).toEqual(
      [2, 4, 8, 16, 32, 60, 60, 60].map((seconds) =>
        expect.objectContaining({ kind: 'defer', delayMs: seconds * 1_000 }),
      ),
    );
    expect(at(0, {}, {}, 0.999_999)).toMatchObject({ delayMs: 3_000 });
    expect(at(0, {}, { customDelayMs: 0 })).toMatchObject({ delayMs: 2_000 });
  });

  test('keeps a longer wait of its own', () => {
    expect(at(0, withPolicy({ backoff: { kind: 'fixed', baseMs: 90_000 } }))).toMatchObject({ delayMs: 90_000 });
    expect(at(0, {}, { retryAfterMs: 90_000 })).toMatchObject({ delayMs: 90_000 });
  });

  test('waits by its own backoff alone behind the gate of a resource, which holds it', () => {
    const named = decide(
      { ...job, ...withPolicy({ backoff: { kind: 'fixed', baseMs: 20 } }) },
      failed(),
      now,
      () => 0,
      {
        ...verdict,
        longestWaitMs: 60_000,
      },
    );
    expect(named).toMatchObject({ kind: 'defer', delayMs: 20 });
  });
});

describe('of maxRuns runs', () => {
  const verdict = { counts: false, rule: 'call: outage', pendingMs: null, longestWaitMs: null };
  const outOfRuns: Decision = { kind: 'dead', reason: 'runs', counted: false, rule: 'maxRuns 5' };
  /** Two attempts are spent. */
  const decided = (givenBack: number, outcome: Outcome): Decision =>
    decide({ ...job, ...withPolicy({ maxRuns: 5 }), givenBack }, outcome, now, () => 0, verdict);

  test.each([
    ['deferred', failed({ class: 'environment' })],
    ['released', shutdown],
    ['released for want of a handler', noHandler(now)],
  ])('the last one is not %s: the job is dead', (_, outcome) => {
    expect(['defer', 'release']).toContain(decided(2, outcome).kind);
    expect(decided(3, outcome)).toEqual(outOfRuns);
  });

  test('a snooze is none, and a run that counts is bounded by the attempts', () => {
    const beyond = (outcome: Outcome) =>
      decide({ ...job, ...withPolicy({ maxRuns: 5 }), givenBack: 100, run: 1_000 }, outcome, now, () => 0).kind;
    expect([snoozed, failed(), crashed, { kind: 'completed' } as const].map(beyond)).toEqual([
      ...['snooze', 'retry', 'retry', 'complete'],
    ]);
  });
});

test('from the tenth snooze in a row on, one shorter than a second is a second', () => {
  const waits = (snoozes: number) =>
    [0, 999, 5_000].map((delayMs) => decide({ ...job, snoozes }, { kind: 'snoozed', delayMs }, now, () => 0));
  const delays = (snoozes: number) => waits(snoozes).map((decision) => 'delayMs' in decision && decision.delayMs);
  expect([8, 9, 1_000].map(delays)).toEqual([
    [0, 999, 5_000],
    [1_000, 1_000, 5_000],
    [1_000, 1_000, 5_000],
  ]);
});
