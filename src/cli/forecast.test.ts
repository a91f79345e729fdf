import { expect, it } from 'vitest';
import { fakeOutput } from '../../test/support/terminal.ts';
import { MINUTE_MS } from '../duration.ts';
import { toForecast } from '../observe/forecast.ts';
import { type GateInfo, unheardOf } from '../observe/gate-info.ts';
import type { UpcomingJobs } from '../store/store.ts';
import { forecastLines, stallCauses } from './forecast.ts';

const NOW = 1_000_000_000_000;

it('draws the retries of the next hour, and marks what is a lower bound or an estimate', () => {
  const job = { queue: 'default', lane: 'retry', resource: 'smtp', name: 'email.send' } as const;
  const retries = (minute: number, count: number, expected = count): UpcomingJobs => ({
    ...job,
    minute,
    count,
    expected,
    isExact: count === expected,
  });
  const due = { count: 1_000, isExact: false };
  const answer = toForecast({
    now: NOW,
    isComplete: false,
    lanes: [
      { queue: 'default', lane: 'retry', due, later: { count: 7, isExact: true }, oldestDueAt: NOW - 3 * MINUTE_MS },
    ],
    queues: [],
    running: { count: 20, isExact: true },
    ended: { completed: 0, dead: 0, cancelled: 0 },
    upcoming: [retries(0, 10, 1_000), retries(4, 500), retries(7, 750)],
    arrivedPerMinute: 0.5,
    endedPerMinute: 1_250,
  });
  const { output } = fakeOutput({ terminal: { columns: 100, rows: 24 } });
  const lines = forecastLines(answer, output);
  expect(lines).toContain('backlog  1,000+ due, 20 running');
  expect(lines.join('\n')).toMatch(/^outlook {2}empty in at least \d.*, at the present rate$/m);
  expect(lines).toContain('rates    0.5 enqueued, 1,250 ended per minute, over the last 5');
  expect(lines).toContain('default  retry  1,000+      3m      7');
  expect(lines).toContain(`0-5           ~1,500  ${'█'.repeat(40)}`);
  expect(lines).toContain(`5-10             750  ${'█'.repeat(20)}`);
  expect(lines).toContain('55-60              0');
  expect(lines).toContain('smtp      email.send           ~2,250  1,000 in minute 0');
  expect(lines.at(-1)).toMatch(/^Not all /);
});

it('says which gates hold jobs, and whether a worker is alive', () => {
  const gate = (name: string, told: Partial<GateInfo>): GateInfo => ({
    ...unheardOf({ kind: 'resource', name }, null, NOW),
    waiting: 3,
    ...told,
  });
  const gates = [
    gate('smtp', { phase: 'open', waiting: 1 }),
    gate('sms', { nextAt: NOW + 5_000, heldUntil: NOW + 5_000 }),
    gate('idle', { phase: 'open', waiting: 0 }),
    gate('well', {}),
    gate('forced', { phase: 'open', pin: 'closed' }),
  ];
  const lost = { alive: false, queues: ['emails'] };
  expect(stallCauses([lost], gates)).toEqual([
    'no registered worker is alive',
    'gate smtp is open: 1 job behind it',
    'gate sms is closed, held: 3 jobs behind it',
  ]);
  const other = { alive: true, queues: ['default'] };
  expect(stallCauses([lost, other], [])).toEqual([]);
  expect(stallCauses([lost, other], [], 'emails')).toEqual(['no registered worker of queue emails is alive']);
});
