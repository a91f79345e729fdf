import { describe, expect, it } from 'vitest';
import { knownError } from '../../test/support/known-process.ts';
import { defineJob } from '../definition.ts';
import { defaultPolicy } from '../retry/resolve.ts';
import { type SimulationResult, simulate } from '../simulate/index.ts';
import type { LedgerJob, LedgerRun } from '../store/ledger.ts';
import { testQueue } from '../testing/queue.ts';
import type { NameAdvice } from './advice.ts';
import { livesOf } from './lives.ts';
import { longestOutage } from './outage.ts';
import { policiesToTry, scenarioOf } from './scenario.ts';
import { withdraw, worseInReplay } from './verdict.ts';

const MINUTE_MS = 60_000;
const busy = knownError('BusyError', { status: 503 });

/** A job that began at this minute; its runs begin a minute apart. */
function job(minute: number, ...outcomes: readonly LedgerRun['outcome'][]): LedgerJob {
  const runs = outcomes.map((outcome, index): LedgerRun => {
    const startedAt = (minute + index) * MINUTE_MS;
    const isFailure = outcome !== 'completed';
    const decision = isFailure
      ? { kind: 'retry', why: 'backoff', delayMs: MINUTE_MS, lane: 'retry', rule: '' }
      : { kind: 'complete', rule: '' };
    return {
      run: index + 1,
      attempt: index + 1,
      outcome,
      counted: outcome !== 'deferred',
      startedAt,
      endedAt: startedAt + 100,
      decision: decision as LedgerRun['decision'],
      fingerprint: isFailure ? 'BusyError' : null,
    };
  });
  const isDone = outcomes.at(-1) === 'completed';
  return {
    id: `${minute}`,
    name: 'a',
    state: isDone ? 'completed' : 'dead',
    deadReason: isDone ? null : 'exhausted',
    resource: null,
    finishedAt: (minute + outcomes.length) * MINUTE_MS,
    policy: 0,
    part: null,
    runs,
  };
}

const healthy = (minute: number): LedgerJob[] => Array.from({ length: 10 }, () => job(minute, 'completed'));
const find = (jobs: readonly LedgerJob[]): ReturnType<typeof longestOutage> =>
  longestOutage(
    jobs.flatMap((one) => livesOf(one, defaultPolicy)),
    { BusyError: busy },
    1,
  );

describe('the longest outage of a ledger', () => {
  it('is the longest row of minutes in which half of the runs failed', () => {
    const jobs = [
      ...[0, 1, 2, 3].flatMap(healthy),
      ...[4, 5].flatMap((minute) => Array.from({ length: 6 }, () => job(minute, 'failed'))),
      ...[6, 7].flatMap(healthy),
      ...[8, 9, 10].flatMap((minute) => Array.from({ length: 6 }, () => job(minute, 'failed'))),
      ...[11, 12, 13, 14].flatMap(healthy),
    ];
    expect(find(jobs)).toMatchObject({
      from: 8 * MINUTE_MS,
      until: 11 * MINUTE_MS,
      share: 1,
      answer: 'unavailable',
      medianMs: 100,
      p99Ms: 100,
      gate: 'none',
    });
    // Around it are all 15 minutes but none before the first: 100 + 30 jobs in 23 minutes.
    expect(find(jobs)?.arrivalsPerSecond).toBeCloseTo(130 / (23 * 60), 5);
    expect(find(jobs)?.poisonShare).toBeCloseTo(12 / 112, 5);
  });

  it('is none where failures are few', () => {
    expect(find([0, 1, 2].flatMap(healthy))).toBeNull();
    expect(find([...healthy(0), job(1, 'failed', 'completed')])).toBeNull();
    // Two jobs that are tried over and over have more runs than all others, and are still two jobs.
    const often = (one: LedgerJob): LedgerJob => ({
      ...one,
      runs: one.runs.map((run) => ({ ...run, startedAt: MINUTE_MS })),
    });
    const poison = Array.from({ length: 2 }, () => often(job(1, ...Array<'failed'>(20).fill('failed'))));
    expect(find([...healthy(1), ...poison])).toBeNull();
  });

  it('counts runs that an outage excused, and knows the gate by them', () => {
    const jobs = Array.from({ length: 6 }, () => job(1, 'deferred', 'completed'));
    expect(find(jobs)).toMatchObject({ from: MINUTE_MS, until: 2 * MINUTE_MS, gate: 'soft' });
    expect(find(jobs.map((one) => ({ ...one, resource: 'smtp' })))).toMatchObject({ gate: 'resource' });
  });
});

it('a policy is worse when fewer jobs complete, or more die', () => {
  const run = (name: string, completed: number, dead: number): SimulationResult['runs'][number] =>
    ({ policy: { name }, figures: { completed, dead } }) as SimulationResult['runs'][number];
  const runs = [run('present', 10, 5), run('same', 10, 5), run('fewer', 9, 5), run('deadlier', 10, 6)];
  expect(worseInReplay({ runs }).map(({ policy }) => policy)).toEqual(['fewer', 'deadlier']);
});

describe('a replay', () => {
  it('simulates the outage with the present policy and the proposed one', async () => {
    const sync = defineJob<number>({
      name: 'sync',
      retry: { maxAttempts: 6, backoff: { kind: 'fixed', base: '10s' }, jitter: 'none' },
      resource: false,
      async run(_, { job }) {
        const minute = Math.floor(job.enqueuedAt.getTime() / MINUTE_MS) % 60;
        // From minute 10 to 13 no run succeeds, not even a retry.
        if (minute >= 10 && minute < 13) throw Object.assign(new Error('down'), { code: 'ECONNREFUSED' });
      },
    });
    await using queue = await testQueue({ jobs: [sync] });
    await queue.clock.advance(60 * MINUTE_MS - (queue.clock.now() % (60 * MINUTE_MS)));
    for (let minute = 0; minute < 20; minute++) {
      await queue.mulligan.enqueueMany(
        sync,
        [1, 2, 3, 4, 5, 6].map((input) => ({ input })),
      );
      await queue.clock.advance(MINUTE_MS);
    }
    await queue.drain();
    const [advice] = (await queue.mulligan.advise({ days: 1 })).names as [NameAdvice];
    const { outage } = advice;
    expect(outage).toMatchObject({ answer: 'refused', share: 1, gate: 'none' });
    expect(((outage?.until ?? 0) - (outage?.from ?? 0)) / MINUTE_MS).toBe(3);
    // The ledger is too small for a proposal about attempts. That jobs died behind no gate is proposal enough.
    expect(advice.tooSmall).not.toBeNull();
    const gates = policiesToTry(advice);
    expect(gates).toMatchObject([
      { name: 'present', gate: 'none', retry: { maxAttempts: 6 } },
      { name: 'with a gate', gate: 'resource', retry: { maxAttempts: 6 } },
    ]);
    const scenario = scenarioOf('sync', outage as NonNullable<typeof outage>);
    const withGate = await simulate(scenario, { policies: gates ?? [] });
    expect(withGate.runs[1]?.figures.dead).toBeLessThan(withGate.runs[0]?.figures.dead ?? 0);
    expect(worseInReplay(withGate)).toEqual([]);
    const proposal = { setting: 'maxAttempts', maxAttempts: 2 } as NameAdvice['proposals'][number];
    const policies = policiesToTry({ ...advice, proposals: [proposal] });
    expect(policies).toMatchObject([
      { name: 'present', gate: 'none', retry: { maxAttempts: 6, backoff: { kind: 'fixed', base: 10_000 } } },
      { name: 'proposed', gate: 'none', retry: { maxAttempts: 2 } },
    ]);
    const result = await simulate(scenario, { policies: policies ?? [] });
    const [present, proposed] = result.runs.map(({ figures }) => figures);
    expect(present?.arrived).toBe(proposed?.arrived);
    expect(proposed?.calls).toBeLessThan(present?.calls ?? 0);
    expect(proposed?.dead).toBeGreaterThan(present?.dead ?? 0);
    const why = `${proposed?.completed} instead of ${present?.completed} jobs completed in the replay of the outage, and ${proposed?.dead} instead of ${present?.dead} died`;
    expect(worseInReplay(result)).toEqual([{ policy: 'proposed', why }]);
    const permanent = { setting: 'classification' } as NameAdvice['proposals'][number];
    const gate = advice.proposals[0] as typeof proposal;
    const both = { ...advice, proposals: [permanent, proposal, gate] };
    expect(policiesToTry(both)?.map(({ name }) => name)).toEqual(['present', 'proposed', 'with a gate']);
    expect(withdraw(both, worseInReplay(result)).proposals).toEqual([permanent, { ...proposal, withdrawn: why }, gate]);
  });
});
