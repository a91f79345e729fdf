import { expect, it } from 'vitest';
import type { ScheduleInfo } from '../../schedules.ts';
import { schedules } from './schedules.ts';

const NOW = 1_000_000_000;

function schedule(name: string, changes: Partial<ScheduleInfo> = {}): ScheduleInfo {
  return {
    ...{ name, job: `${name}.job`, input: {}, queue: 'default', priority: 5, misfire: 'once', misfireLimit: 100 },
    ...{ timing: { kind: 'every', everyMs: 1_000, anchor: 0 }, overlap: 'allow', paused: false, nextAt: NOW + 1 },
    ...{ lastAt: null, lastJobId: null, source: 'stored', updatedAt: 0 },
    ...changes,
  } as ScheduleInfo;
}

it('is content when ticks are fired in time', () => {
  expect(schedules([], null, NOW)).toMatchObject({ health: 'ok', found: 'none' });
  const paused = schedule('b', { paused: true, nextAt: null });
  expect(schedules([schedule('a', { nextAt: NOW - 1_000 }), paused], null, NOW)).toMatchObject({
    ...{ health: 'ok', found: '2, 1 paused' },
  });
});

it('warns of ticks that no worker has fired', () => {
  const late = [schedule('a', { nextAt: NOW - 3_600_000 }), schedule('b', { nextAt: NOW - 120_000 }), schedule('c')];
  expect(schedules(late, null, NOW)).toMatchObject({
    ...{ health: 'warn', found: '2 schedules not fired in time: a, b, for up to 1h' },
  });
});

it('warns of jobs that no worker knows, but not for schedules that will not tick', () => {
  const listed = [schedule('a'), schedule('b'), schedule('over', { nextAt: null })];
  expect(schedules(listed, new Set(['a.job']), NOW)).toMatchObject({
    ...{ health: 'warn', found: '1 schedule whose job no worker knows: b (job b.job)' },
  });
});
