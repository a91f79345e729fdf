import { expect, it } from 'vitest';
import { fakeOutput } from '../../test/support/terminal.ts';
import { systemClock } from '../clock.ts';
import type { RegisteredWorker } from '../store/store.ts';
import { workerListLines } from './worker-facts.ts';

function worker(id: string): RegisteredWorker {
  const now = systemClock.now();
  return {
    ...{
      id,
      name: null,
      version: '2026.10.1-build.7',
      mulligan: '0.1.0',
      host: 'worker-host-0001.internal',
      pid: 4711,
    },
    ...{ concurrency: 10, queues: ['default', 'emails', 'reports'], jobs: ['email.send', 'report.make'], running: 3 },
    ...{ leaseMs: 30_000, loopDelayMs: 14, http: null, startedAt: now - 86_400_000, lastSeenAt: now - 4_000 },
    ...{ alive: true, state: 'alive' },
  };
}

it.each([60, 80, 120])('the list has the whole id of each worker at %i columns, and when it was seen', (columns) => {
  const ids = ['worker-host-0001-4711-9f3a01c4', 'worker-host-0001-4712-9f3a01c5'];
  const { output } = fakeOutput({ terminal: { columns, rows: 24 } });
  const [heading, ...rows] = workerListLines(ids.map(worker), output);
  expect(heading).toMatch(/^worker .* running .* seen$/);
  expect(rows.map((row) => row.split(/ +/)[0])).toEqual(ids);
  expect(rows.every((row) => row.length <= columns)).toBe(true);
});
