import { describe, expect, it } from 'vitest';
import type { Lane } from '../job.ts';
import type { Outcome } from '../retry/outcome.ts';
import { Averages } from './averages.ts';

const completed: Outcome = { kind: 'completed' };
const failed = { kind: 'failed' } as Outcome;
const unknown: Outcome = { kind: 'released', because: { kind: 'no-handler', giveUpAfterMs: 1 } };
const stopped: Outcome = { kind: 'released', because: { kind: 'shutdown' } };

function averagesOf(lane: Lane, outcomes: readonly Outcome[], ms = 100): Averages {
  const averages = new Averages();
  for (const outcome of outcomes) averages.observe(lane, outcome, ms);
  return averages;
}

describe('the averages of a worker', () => {
  it('know nothing before the first run, and not by runs whose handler was not called', () => {
    expect(new Averages().runMs).toBeNull();
    expect(averagesOf('fresh', [unknown, unknown]).runMs).toBeNull();
    expect(averagesOf('fresh', [stopped]).runMs).toBe(100);
    const averages = averagesOf('fresh', [completed]);
    averages.observe('fresh', completed, 200);
    expect(averages.runMs).toBeCloseTo(110);
  });

  it('call second chances vain when nearly all fail, and not after one that did some good', () => {
    const many = new Array<Outcome>(30).fill(failed);
    expect(averagesOf('retry', many).inVain).toBe(true);
    expect(averagesOf('redrive', many).inVain).toBe(true);
    expect(averagesOf('fresh', many).inVain).toBe(false);
    expect(averagesOf('retry', [...many, completed]).inVain).toBe(false);
    expect(averagesOf('retry', [...many, unknown]).inVain).toBe(true);
    expect(averagesOf('retry', many.slice(0, 5)).inVain).toBe(false);
  });
});
