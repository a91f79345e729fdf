import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type KnownError, type KnownProcess, knownError, makeLedger } from '../../test/support/known-process.ts';
import type { RetryPolicy } from '../retry/policy.ts';
import { defaultPolicy } from '../retry/resolve.ts';
import type { LedgerJob } from '../store/ledger.ts';
import { adviseName, type NameAdvice } from './advice.ts';
import { NEEDED } from './bounds.ts';
import { livesOf } from './lives.ts';
import type { Proposal } from './proposals.ts';

const DAY_MS = 86_400_000;

function advise(process: KnownProcess): NameAdvice & { readonly ledger: LedgerJob[] } {
  const policy: RetryPolicy = { ...defaultPolicy, ...process.policy };
  const ledger = makeLedger(process);
  const lives = ledger.flatMap((job) => livesOf(job, policy));
  const errors = Object.fromEntries(process.errors.map(({ error }) => [error.fingerprint, error]));
  return { ...adviseName('email.send', lives, errors, { factor: 1, parts: new Map(), spanMs: 30 * DAY_MS }), ledger };
}

/** Attempt n succeeds with the n-th of these, from attempt 2 on, and never beyond them. */
function recovering(name: string, shares: readonly number[], changes: Partial<KnownError> = {}): KnownError {
  return { error: knownError(name), succeeds: (attempt) => shares[attempt - 2] ?? 0, ...changes };
}

const only = (proposals: readonly Proposal[]): Proposal => {
  expect(proposals).toHaveLength(1);
  return proposals[0] as Proposal;
};

describe('maxAttempts', () => {
  it('is the last attempt that ever succeeds, with what the others cost', () => {
    const { proposals, ledger, attempts } = advise({
      errors: [recovering('BusyError', [0.5, 0.4, 0.3])],
      jobs: 3_000,
      policy: { maxAttempts: 25 },
    });
    const proposal = only(proposals);
    const wasted = ledger.flatMap(({ runs }) => runs.filter(({ attempt }) => attempt > 4));
    expect(proposal).toMatchObject({ setting: 'maxAttempts', maxAttempts: 4, jobsLost: 0, runsSaved: wasted.length });
    expect(proposal.runMsSaved).toBe(wasted.length * 100);
    expect(proposal.text).toMatch(
      /^attempts 5-25 never succeeded in 30d, tried by 6\d\d jobs: maxAttempts 4 would have saved 1\d,\d{3} runs, \d+m .* of run time, and lost 0 jobs\.$/,
    );
    expect(attempts.map(({ attempt }) => attempt)).toEqual(Array.from({ length: 24 }, (_, index) => index + 2));
    expect(attempts[0]?.share).toBeCloseTo(0.5, 1);
    expect(attempts[1]?.share).toBeCloseTo(0.4, 1);
  });

  it('is found for any process that stops to succeed at some attempt', () => {
    const process = fc.record({
      shares: fc.array(fc.double({ min: 0.1, max: 0.5, noNaN: true }), { minLength: 1, maxLength: 6 }),
      seed: fc.integer({ min: 1, max: 1_000_000 }),
      beyond: fc.integer({ min: 1, max: 10 }),
    });
    fc.assert(
      fc.property(process, ({ shares, seed, beyond }) => {
        const optimum = shares.length + 1;
        const left = shares.reduce((share, chance) => share * (1 - chance), 1);
        // So many that enough of them go beyond the optimum, and some succeed at it.
        const jobs = Math.ceil(500 / left);
        const policy = { maxAttempts: optimum + beyond };
        const { proposals } = advise({ errors: [recovering('BusyError', shares)], jobs, seed, policy });
        expect(only(proposals)).toMatchObject({ setting: 'maxAttempts', maxAttempts: optimum, jobsLost: 0 });
      }),
      { numRuns: 30, seed: 17 },
    );
  });

  it('has choices that lose jobs, with what each would have saved and lost', () => {
    const errors = [recovering('BusyError', [0.5, 0.4, 0.3, 0, 0.01])];
    const { choices, ledger } = advise({ errors, jobs: 3_000, policy: { maxAttempts: 8 } });
    expect(choices.map(({ maxAttempts }) => maxAttempts)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    const late = ledger.filter(({ state, runs }) => state === 'completed' && runs.length > 4).length;
    expect(late).toBeGreaterThan(0);
    const cut = ledger.reduce((sum, { runs }) => sum + Math.max(0, runs.length - 4), 0);
    expect(choices[3]).toEqual({ maxAttempts: 4, runsSaved: cut, jobsLost: late });
    expect(choices[0]?.jobsLost).toBe(ledger.filter(({ state }) => state === 'completed').length);
  });

  it('stays as it is where the last attempt is needed', () => {
    const errors = [recovering('BusyError', [0.6, 0.6, 0.6, 0.04])];
    expect(advise({ errors, jobs: 20_000, policy: { maxAttempts: 5 } }).proposals).toEqual([]);
  });

  it('is higher where the last attempt still succeeds often', () => {
    const { proposals, ledger } = advise({ errors: [recovering('BusyError', Array(50).fill(0.3))], jobs: 5_000 });
    const proposal = only(proposals);
    // 0.7 to the power of 13 is below 1 in 100.
    expect(proposal).toMatchObject({ setting: 'maxAttempts', jobsLost: 0 });
    expect(proposal.maxAttempts).toBeGreaterThanOrEqual(4 + 12);
    expect(proposal.maxAttempts).toBeLessThanOrEqual(4 + 15);
    const dead = ledger.filter(({ state }) => state === 'dead').length;
    expect(proposal.jobsGained / dead).toBeGreaterThan(0.98);
    expect(-proposal.runsSaved / dead).toBeCloseTo(1 / 0.3, 0);
    expect(proposal.text).toMatch(/^the last attempt still succeeded (2[89]|3[012]) % of the time/);
  });
});

describe('classification', () => {
  const busy = recovering('BusyError', [0.9, 0.9], { error: knownError('BusyError', { code: 'BUSY' }) });
  const never = (changes: Partial<KnownError['error']>): KnownError =>
    recovering('BadError', [], { error: { ...knownError('BadError'), ...changes } });
  const found = (error: KnownError, other = busy): Proposal | undefined =>
    advise({ errors: [other, error], jobs: 2_000, policy: { maxAttempts: 6 } }).proposals.find(
      ({ setting }) => setting === 'classification',
    );

  it('calls an error permanent after which no job ever completed, with the runs that its retries cost', () => {
    const { proposals, ledger } = advise({
      errors: [busy, never({ code: 'E_BAD' })],
      jobs: 2_000,
      policy: { maxAttempts: 6 },
    });
    const bad = ledger.filter(({ runs }) => runs[0]?.fingerprint === 'BadError');
    expect(proposals[0]).toMatchObject({
      setting: 'classification',
      fingerprint: 'BadError',
      rule: { code: 'E_BAD', class: 'permanent' },
      runsSaved: bad.length * 5,
      jobsLost: 0,
    });
    expect(proposals[0]?.text).toContain("rules: [{ code: 'E_BAD', class: 'permanent' }]");
  });

  it('proposes a rule that no error matches which recovers', () => {
    expect(found(never({ code: 'BUSY' }))?.rule).toEqual({ name: 'BadError', class: 'permanent' });
    expect(found(never({ code: 'BUSY', name: 'BusyError', status: 418 }))?.rule).toEqual({
      status: 418,
      class: 'permanent',
    });
    const none = found(never({ code: 'BUSY', name: 'Error' }));
    expect(none).toMatchObject({ rule: null });
    expect(none?.text).toContain('Throwing Unrecoverable instead');
  });

  it('leaves errors of the environment alone: their dependency comes back', () => {
    expect(found(never({ code: 'ECONNREFUSED' }))).toBeUndefined();
    expect(found(never({ status: 503 }))).toBeUndefined();
  });

  it('leaves an error alone that one job has recovered from', () => {
    const rarely = recovering('BadError', [], { succeeds: (attempt) => (attempt === 6 ? 0.02 : 0) });
    expect(found(rarely)).toBeUndefined();
  });
});

describe('base and cap', () => {
  const delays = [1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 30].map((seconds) => seconds * 1_000);
  const policy: Partial<RetryPolicy> = {
    maxAttempts: 12,
    jitter: 'none',
    backoff: { kind: 'exponential', baseMs: 1_000, factor: 2, maxMs: 30_000 },
  };
  const delayMs = (attempt: number): number => delays[attempt - 1] ?? 30_000;

  it('begin when jobs recover, and reach to the last that does, in fewer attempts', () => {
    const errors = [recovering('BusyError', [], { succeeds: (_, elapsedMs) => (elapsedMs < 60_000 ? 0 : 0.5) })];
    const { proposals } = advise({ errors, jobs: 1_000, policy, delayMs });
    const proposal = only(proposals);
    expect(proposal).toMatchObject({ setting: 'backoff', jobsLost: 0 });
    const { baseMs } = proposal.backoff as { baseMs: number };
    // The first retry beyond 60 s comes at 61.6 s.
    expect(baseMs).toBeGreaterThanOrEqual(60_000);
    expect(baseMs).toBeLessThanOrEqual(62_000);
    expect(proposal.maxAttempts).toBeLessThan(12 - 4);
    expect(proposal.runsSaved).toBeGreaterThan(1_000);
  });

  it('have the shortest cap with which the attempts reach to the last job that recovered', () => {
    const errors = [recovering('BusyError', [], { succeeds: (_, elapsedMs) => (elapsedMs < 60_000 ? 0 : 0.5) })];
    const doubling = {
      ...policy,
      maxAttempts: 11,
      backoff: { kind: 'exponential', baseMs: 1_000, factor: 2, maxMs: 512_000 },
    };
    const { proposals } = advise({
      errors,
      jobs: 1_000,
      policy: doubling as Partial<RetryPolicy>,
      delayMs: (attempt) => 1_000 * 2 ** (attempt - 1),
    });
    // Retries start 63.5 s, 127.6 s, ... 1,024 s after the first failure, and five of them are left.
    expect(only(proposals)).toMatchObject({ setting: 'backoff', jobsLost: 0, maxAttempts: 6 });
    expect(only(proposals).backoff).toEqual({ kind: 'exponential', baseMs: 63_000, factor: 2, maxMs: 504_000 });
  });

  it('are left alone where the first retry sometimes succeeds: then it is tries that count', () => {
    const errors = [recovering('BusyError', Array(20).fill(0.2))];
    const { proposals } = advise({ errors, jobs: 1_000, policy, delayMs });
    expect(proposals.filter(({ setting }) => setting === 'backoff')).toEqual([]);
  });
});

describe('a ledger that is too small', () => {
  const errors = [recovering('BusyError', [0.5])];
  const policy = { maxAttempts: 10 };

  it('gives figures, says how many jobs are needed, and proposes nothing', () => {
    const { proposals, tooSmall, attempts } = advise({ errors, jobs: NEEDED - 1, policy });
    expect(proposals).toEqual([]);
    expect(tooSmall).toMatch(/^only 298 jobs were retried\. At least 299 are needed/);
    expect(attempts[0]?.tried).toBe(298);
  });

  it('is one of a single incident, too', () => {
    const { proposals, tooSmall } = advise({ errors, jobs: 5_000, policy, hours: 0.5 });
    expect(proposals).toEqual([]);
    expect(tooSmall).toContain('failed within one hour. At least 5 are needed');
  });

  it('proposes nothing about attempts that too few jobs have reached', () => {
    const { proposals, tooSmall } = advise({ errors: [recovering('BusyError', [0.95])], jobs: 1_000, policy });
    expect([proposals, tooSmall]).toEqual([[], null]);
  });

  it('has nothing to say about jobs that never fail', () => {
    const [job] = makeLedger({ errors, jobs: 1 }) as [LedgerJob];
    const last = { ...job.runs[0], outcome: 'completed', fingerprint: null, decision: { kind: 'complete', rule: '' } };
    const lives = livesOf({ ...job, state: 'completed', runs: [last] } as LedgerJob, defaultPolicy);
    const advice = adviseName('a', lives, {}, { factor: 1, parts: new Map(), spanMs: DAY_MS });
    expect(advice).toMatchObject({ failed: 0, proposals: [], tooSmall: null, attempts: [] });
  });
});

describe('error groups', () => {
  it('say how often each attempt succeeded after them, and how many jobs recovered', () => {
    const errors = [recovering('BusyError', [0.8, 0.5]), recovering('SlowError', [0, 0, 0.5])];
    const { groups, retries, ledger } = advise({ errors, jobs: 4_000, policy: { maxAttempts: 4 } });
    const shares = new Map(
      groups.map(({ fingerprint, attempts }) => [fingerprint, attempts.map(({ share }) => share)]),
    );
    expect(shares.get('BusyError')?.[0]).toBeCloseTo(0.8, 1);
    expect(shares.get('SlowError')).toEqual([0, 0, expect.closeTo(0.5, 1)]);
    expect(groups.reduce((sum, { recovered }) => sum + recovered, 0)).toBe(retries.recovered);
    expect(retries.recovered).toBe(ledger.filter(({ state }) => state === 'completed').length);
    expect(retries.runs).toBe(ledger.reduce((sum, { runs }) => sum + runs.length - 1, 0));
  });
});
