import { expect, it } from 'vitest';
import type { WaitingJobs } from './served.ts';
import { waiting } from './waiting.ts';

const NOW = 1_000_000_000;
const jobs = (changes: Partial<WaitingJobs>): WaitingJobs => ({
  ...{ queue: 'q', name: 'x', count: 1, due: 1, oldestDueAt: NOW - 1_000, gate: null, limits: [], isAside: false },
  ...changes,
});
const found = (...groups: WaitingJobs[]) => waiting(NOW, groups, new Set(['paused']));

it('is content with few jobs that wait for a short time, and says what for', () => {
  expect(found()).toMatchObject({ health: 'ok', found: 'no job is due' });
  expect(found(jobs({ due: 0, oldestDueAt: NOW + 1 }))).toMatchObject({ health: 'ok', found: 'no job is due' });
  expect(found(jobs({}), jobs({ due: 49, limits: ['a', 'b'] }), jobs({ queue: 'paused', due: 900 }))).toEqual({
    ...{ name: 'waiting', health: 'ok', advice: null },
    found:
      'the oldest due job has waited for 1s in q (x); 900 due jobs in paused queues: paused (900 jobs); 49 due jobs behind limits: a (49 jobs), b (49 jobs)',
  });
});

it('warns of many jobs, and of long waits, behind gates and limits', () => {
  expect(found(jobs({ due: 50, limits: ['a'] }))).toMatchObject({ health: 'warn' });
  expect(found(jobs({ gate: 'smtp', limits: ['a'], oldestDueAt: NOW - 60_000 }))).toMatchObject({
    ...{ health: 'warn', found: '1 due job behind gates: smtp (1 job)' },
  });
});

it('does not blame missing workers for jobs that a worker set aside, wherever else they would wait', () => {
  const aside = jobs({ isAside: true, due: 3 });
  expect(found(aside)).toMatchObject({ health: 'ok', found: '3 due jobs set aside: x (3 jobs)' });
  const late = { ...aside, gate: 'smtp', limits: ['a'], oldestDueAt: NOW - 540_000 };
  expect(found(late)).toEqual({
    ...{ name: 'waiting', health: 'warn', found: '3 due jobs set aside: x (3 jobs)' },
    advice: 'check that a live worker knows their names and versions and accepts their payloads, or deploy one',
  });
  expect(found(late, jobs({ name: 'y' }))).toMatchObject({
    found: 'the oldest due job has waited for 1s in q (y); 3 due jobs set aside: x (3 jobs)',
  });
  expect(found(jobs({ isAside: true, queue: 'paused' }))).toMatchObject({
    found: '1 due job in paused queues: paused (1 job)',
  });
});
