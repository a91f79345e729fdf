import { describe, expect, test } from 'vitest';
import type { Failure, Outcome } from '../retry/outcome.ts';
import { type EndedRun, evidenceOf, foldRuns } from './evidence.ts';
import { countJobs, workerKey } from './sets.ts';

function failed(facts: Partial<Failure> & { status?: number }): Outcome {
  const error = { name: 'Error', message: '', code: null, status: facts.status ?? null, stack: null };
  const rest = { retryAfterMs: null, customDelayMs: null, note: null };
  return { kind: 'failed', failure: { error, class: 'environment', rule: 'x', ...rest, ...facts } };
}

const completed: Outcome = { kind: 'completed' };

describe('what a run proves', () => {
  test.each<[string, Outcome, string]>([
    ['a completed run', completed, 'alive'],
    ['a failure by the job’s own fault', failed({ class: 'job' }), 'alive'],
    ['a permanent failure', failed({ class: 'permanent', status: 404 }), 'alive'],
    ['a 503', failed({ status: 503 }), 'environment'],
    ['a 503 with Retry-After', failed({ status: 503, retryAfterMs: 5 }), 'environment'],
    ['a 429', failed({ status: 429 }), 'throttled'],
    ['a thrown RetryAfter', failed({ rule: 'thrown:RetryAfter', retryAfterMs: 5 }), 'throttled'],
    ['a 429 that the definition calls the job’s own', failed({ class: 'job', status: 429 }), 'alive'],
    ['a crash', { kind: 'crashed' }, 'none'],
    ['a release', { kind: 'released', because: { kind: 'shutdown' } }, 'none'],
    ['a snooze', { kind: 'snoozed', delayMs: 1 }, 'none'],
    ['a cancelled run', { kind: 'cancelled', error: null }, 'none'],
  ])('%s', (_, outcome, evidence) => {
    expect(evidenceOf(outcome)).toBe(evidence);
  });
});

describe('a batch of one worker', () => {
  let next = 0;
  const run = (outcome: Outcome, facts: Partial<EndedRun> = {}): EndedRun => ({
    jobId: `job-${next++}`,
    outcome,
    epoch: 0,
    claimedAt: 100,
    durationMs: 10,
    isFirstAttempt: true,
    isRetry: false,
    ...facts,
  });

  test('becomes one report', () => {
    const runs = [run(completed), run(failed({ status: 503 })), run(failed({ status: 503 }), { durationMs: 70 })];
    const [report, ...others] = foldRuns('w', runs, 1_234);
    expect(others).toEqual([]);
    expect(report).toMatchObject({
      alive: 1,
      environment: 2,
      tail: 2,
      throttled: 0,
      none: 0,
      slowestMs: 70,
      spanMs: 1_234,
    });
    expect(report).toMatchObject({ worker: workerKey('w'), firstSuccesses: 1 });
    expect(countJobs(report?.jobs ?? [0, 0])).toBe(2);
  });

  test('tells its worker from others', () => {
    const workers = ['a', 'b', 'c'].map((name) => foldRuns(name, [run(completed)], 0)[0]?.worker);
    expect(new Set(workers).size).toBe(3);
  });

  test('counts its tail from the last run that was answered', () => {
    const runs = [run(failed({})), run(failed({ status: 429 })), run(failed({})), run({ kind: 'crashed' })];
    expect(foldRuns('w', runs, 0)).toMatchObject([{ tail: 1, environment: 2, throttled: 1, none: 1 }]);
    expect(foldRuns('w', [...runs, run(completed)], 0)).toMatchObject([{ tail: 0 }]);
  });

  test('is split by epoch, and each part knows its earliest claim', () => {
    const runs = [run(completed, { claimedAt: 9 }), run(completed, { epoch: 5 }), run(completed, { claimedAt: 7 })];
    expect(foldRuns('w', runs, 0)).toMatchObject([
      { epoch: 0, alive: 2, claimedFrom: 7 },
      { epoch: 5, alive: 1, claimedFrom: 100 },
    ]);
  });

  test('asks for the longest wait that the environment asked for', () => {
    const runs = [
      run(failed({ retryAfterMs: 5 })),
      run(failed({ retryAfterMs: 9 })),
      run(failed({ class: 'job', retryAfterMs: 99 })),
    ];
    expect(foldRuns('w', runs, 0)).toMatchObject([{ retryAfterMs: 9 }]);
  });

  test('pays for retries with first attempts that completed, and nothing else', () => {
    const runs = [run(completed), run(completed, { isFirstAttempt: false }), run(failed({ class: 'job' }))];
    expect(foldRuns('w', runs, 0)).toMatchObject([{ alive: 3, firstSuccesses: 1 }]);
  });
});
