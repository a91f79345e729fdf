import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type PresetName, policies } from '../../retry/presets.ts';
import { defaultPolicy, resolvePolicy } from '../../retry/resolve.ts';
import { likelyTotals } from './likely.ts';
import { likelyWords } from './words.ts';

const HOUR_MS = 3_600_000;

describe('how long 98 of 100 jobs wait in all', () => {
  it('is less than the delays of patient add up to, because full jitter halves each wait on average', () => {
    const { policy } = resolvePolicy({ definition: policies.patient });
    const { soonestMs, latestMs } = likelyTotals(policy, policy.maxAttempts - 1);
    expect([Math.round(soonestMs / HOUR_MS), Math.round(latestMs / HOUR_MS)]).toEqual([21, 50]);
  });

  it('is the sum of the delays without jitter, and nothing without a retry', () => {
    expect(likelyTotals({ ...defaultPolicy, jitter: 'none' }, 3)).toEqual({ soonestMs: 3_500, latestMs: 3_500 });
    expect(likelyTotals(defaultPolicy, 0)).toEqual({ soonestMs: 0, latestMs: 0 });
  });

  it('is stated for each preset by docs/retries.md', () => {
    const rows = readFileSync(new URL('../../../docs/retries.md', import.meta.url), 'utf8').split('\n');
    for (const preset of Object.keys(policies) as PresetName[]) {
      const { policy } = resolvePolicy({ definition: policies[preset] });
      const window = likelyWords(likelyTotals(policy, policy.maxAttempts - 1));
      const row = rows.find((line) => line.startsWith(`| \`${preset}\``));
      expect(row?.split('|').at(-2)?.trim()).toBe(policy.maxAttempts === 1 ? '-' : window);
    }
  });
});
