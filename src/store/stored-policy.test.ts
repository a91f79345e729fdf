import { expect, test } from 'vitest';
import { defaultPolicy } from '../retry/resolve.ts';
import { formatPolicy, parsePolicy } from './stored-policy.ts';

test('a policy is read as it was stored, with the version of its definition', () => {
  expect(parsePolicy(formatPolicy(defaultPolicy, undefined))).toEqual({ policy: defaultPolicy, version: null });
  expect(parsePolicy(formatPolicy(defaultPolicy, 3))).toEqual({ policy: defaultPolicy, version: 3 });
});

test('a policy that was stored without a bound on runs has the default one, or as many as attempts', () => {
  const { maxRuns, ...older } = defaultPolicy;
  const runsOf = (maxAttempts: number) => parsePolicy(JSON.stringify({ ...older, maxAttempts })).policy.maxRuns;
  expect([4, 20_000].map(runsOf)).toEqual([maxRuns, 20_000]);
});
