import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { UnansweredFailures } from './unanswered-failures.ts';

function setUp() {
  const clock = new VirtualClock();
  let answers = 0;
  const failures = new UnansweredFailures(clock, () => answers++);
  const fail = (times: number, resource = 'api'): void => {
    for (let n = 0; n < times; n++) failures.failed(resource);
  };
  return { clock, failures, fail, answers: () => answers };
}

describe('five failures of a resource in a row', () => {
  it('are many until the report on them is answered', () => {
    const { failures, fail, answers } = setUp();
    fail(4);
    expect(failures.areMany('api')).toBe(false);
    fail(1);
    expect([failures.areMany('api'), failures.areMany('other'), failures.areMany(null)]).toEqual([true, false, false]);
    failures.reportSent();
    expect([failures.areMany('api'), answers()]).toEqual([true, 0]);
    failures.reportAnswered();
    expect([failures.areMany('api'), answers()]).toEqual([false, 1]);
  });

  it('are many still when as many more follow before the answer, which covers only those before', () => {
    const { failures, fail } = setUp();
    fail(5);
    failures.reportSent();
    fail(5);
    failures.reportAnswered();
    expect(failures.areMany('api')).toBe(true);
    failures.reportSent();
    failures.reportAnswered();
    expect(failures.areMany('api')).toBe(false);
  });

  it('are forgotten after a sign of life', () => {
    const { failures, fail } = setUp();
    fail(5);
    failures.alive('api');
    expect(failures.areMany('api')).toBe(false);
    fail(4);
    expect(failures.areMany('api')).toBe(false);
  });

  it('are many again after a sign of life, whatever the report sent before it contains', () => {
    const { failures, fail } = setUp();
    fail(5);
    failures.reportSent();
    failures.alive('api');
    fail(5);
    failures.reportAnswered();
    expect(failures.areMany('api')).toBe(true);
  });

  it('are forgotten after a second without an answer', async () => {
    const { clock, failures, fail, answers } = setUp();
    fail(5);
    failures.reportSent();
    await clock.advance(999);
    expect([failures.areMany('api'), answers()]).toEqual([true, 0]);
    await clock.advance(1);
    expect([failures.areMany('api'), answers()]).toEqual([false, 1]);
  });

  it('leave no timer behind', () => {
    const { clock, failures, fail } = setUp();
    fail(5);
    failures.reportSent();
    fail(5);
    failures.reportAnswered();
    expect(clock.pending).toBe(1);
    failures.stop();
    expect(clock.pending).toBe(0);
  });
});
