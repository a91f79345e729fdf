import { expect, it } from 'vitest';
import type { RetryPolicy } from '../../retry/policy.ts';
import { defaultPolicy } from '../../retry/resolve.ts';
import { forecast } from './forecast.ts';
import { explainLines, policySummary } from './words.ts';

const explain = (changes: Partial<RetryPolicy>): string => {
  const policy = { ...defaultPolicy, ...changes };
  return explainLines(
    'it',
    policy,
    forecast(policy, policy.maxAttempts - 1, () => 0),
  ).join('\n');
};

it.each<[Partial<RetryPolicy>, string]>([
  [{}, '4 attempts; exponential: 500ms, times 2 each time, at most 30s; jitter full'],
  [{ maxAttempts: 1 }, '1 attempt, never retried'],
  [
    { backoff: { kind: 'linear', baseMs: 60_000, maxMs: 365 * 86_400_000 }, jitter: { spread: 0.2 } },
    '4 attempts; linear: 1m more each time; jitter spread 0.2',
  ],
  [
    { backoff: { kind: 'fibonacci', baseMs: 1_000, maxMs: 60_000 }, jitter: 'none', deadlineMs: 86_400_000 },
    '4 attempts; fibonacci: 1s times 1, 1, 2, 3, 5, ..., at most 1m; jitter none; deadline 1d',
  ],
  [
    { backoff: { kind: 'table', delaysMs: [1_000, 5_000] }, jitter: 'none' },
    '4 attempts; table: 1s, 5s, the last one repeating; jitter none',
  ],
])('%j in one line', (changes, line) => {
  expect(policySummary({ ...defaultPolicy, ...changes })).toBe(line);
});

it('says when it gives up', () => {
  expect(explain({})).toContain('when attempt 4 fails: dead, exhausted');
  expect(explain({})).toContain('when 3 runs take the worker process down: dead, poison');
  expect(explain({ maxCrashes: 1 })).toContain('when a run takes the worker process down: dead, poison');
  expect(explain({ maxAttempts: 2 })).not.toContain('poison');
  expect(explain({})).toContain(
    'after 10,000 runs in all, when an outage, a gate or a release would give one more back: dead, runs',
  );
  expect(explain({})).toContain('there is no deadline');
  expect(explain({ deadlineMs: 60_000 })).toMatch(/more than 1m after the first: dead, deadline\.$/m);
  expect(explain({ deadlineMs: 1_500 })).toContain('after attempt 3 already');
});

it('says how long it takes', () => {
  expect(explain({ jitter: 'none' })).toContain('The waits add up to 3.5s, always.');
  expect(explain({ jitter: 'equal' })).toContain(
    '3.5s before jitter; with it, from 2s to 3.3s for 98 of 100 jobs, and anything from 1.8s to 3.5s at worst',
  );
  expect(explain({ maxAttempts: 1 })).toMatch(/^it: a job is tried once and never retried\./);
});
