import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Fleet } from '../processes/fleet.ts';
import { blocks, leavesBehind, short, waitsForStop } from '../processes/jobs.ts';
import { checkLedgers } from './ledger-check.ts';
import { hardy } from './load.ts';

describe('a handler that blocks its process for longer than the lease', () => {
  it('loses the job to another worker, and its late result is rejected', async () => {
    await using fleet = await Fleet.open();
    const { mulligan } = fleet;
    const until = `${fleet.path}.unblock`;
    const blocked = await fleet.start({ concurrency: 1, lease: '1s', name: 'blocked' });
    const { id } = await mulligan.enqueue(blocks, { until, extend: null });
    await fleet.until(async () => (await mulligan.jobs.get(id))?.state === 'running');
    const other = await fleet.start({ concurrency: 1, lease: '1s', name: 'other' });
    await fleet.until(async () => (await mulligan.jobs.get(id))?.worker?.startsWith('other-') === true);
    writeFileSync(until, '');
    expect(await blocked.heard(({ leaseLost }) => leaseLost !== undefined)).toEqual({ leaseLost: { id, run: 1 } });
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'running', runs: 2 });
    other.child.kill('SIGUSR2');
    await fleet.allEnded();
    const { ledgers } = await checkLedgers(mulligan, { acknowledged: [id] });
    expect(ledgers.get(id)).toMatchObject([
      { outcome: 'crashed', worker: expect.stringMatching(/^blocked-/) },
      { outcome: 'completed', worker: expect.stringMatching(/^other-/) },
    ]);
  });

  it('keeps the job when it asked for a longer lease before', async () => {
    await using fleet = await Fleet.open();
    const { mulligan } = fleet;
    const until = `${fleet.path}.unblock`;
    const blocked = await fleet.start({ concurrency: 1, lease: '1s', name: 'blocked' });
    const { id } = await mulligan.enqueue(blocks, { until, extend: '5m' });
    await fleet.until(async () => (await mulligan.jobs.get(id))?.state === 'running');
    const other = await fleet.start({ concurrency: 1, lease: '1s', name: 'other' });
    // Two of the leases it would have had: time enough for the other to take it over.
    const claimedAt = (await mulligan.jobs.get(id))?.firstStartedAt as number;
    while (Date.now() < claimedAt + 2_000) await sleep(20);
    writeFileSync(until, '');
    await fleet.allEnded();
    const { ledgers } = await checkLedgers(mulligan, { acknowledged: [id] });
    expect(ledgers.get(id)).toMatchObject([
      { run: 1, outcome: 'completed', worker: expect.stringMatching(/^blocked-/) },
    ]);
    expect([...blocked.messages, ...other.messages].filter(({ leaseLost }) => leaseLost)).toEqual([]);
  });
});

describe.each(['a rejection', 'a throw'] as const)('a handler that leaves %s behind when it has ended', (what) => {
  it('brings down its process: its own job stays completed, its neighbours count a crash and run again', async () => {
    await using fleet = await Fleet.open();
    const { mulligan } = fleet;
    const careless = await fleet.start({ concurrency: 2, lease: '1s' });
    const neighbour = await mulligan.enqueue(waitsForStop, null);
    const { id } = await mulligan.enqueue(leavesBehind, { what });
    await careless.heard(({ completed }) => completed?.id === id);
    await fleet.until(async () => (await mulligan.jobs.get(neighbour.id))?.state === 'running');
    const exit = once(careless.child, 'exit');
    careless.child.kill('SIGUSR2');
    expect(await exit).toEqual([1, null]);
    expect(careless.stderr()).toContain('too late');

    await fleet.start({ concurrency: 2, lease: '1s' });
    await fleet.allEnded();
    const { ledgers } = await checkLedgers(mulligan, { acknowledged: [id, neighbour.id] });
    expect(ledgers.get(id)).toMatchObject([{ outcome: 'completed' }]);
    expect(ledgers.get(neighbour.id)).toMatchObject([{ outcome: 'crashed', counted: true }, { outcome: 'completed' }]);
  });
});

describe('a late rejection that its process only warns of', () => {
  it('changes nothing in the queue', async () => {
    await using fleet = await Fleet.open();
    const { mulligan } = fleet;
    const tolerant = await fleet.start({ concurrency: 2 }, { execArgv: ['--unhandled-rejections=warn'] });
    const { id } = await mulligan.enqueue(leavesBehind, { what: 'a rejection' });
    await tolerant.heard(({ completed }) => completed?.id === id);
    tolerant.child.kill('SIGUSR2');
    const after = await mulligan.enqueueMany(
      short,
      Array(20)
        .fill({ ms: 5 })
        .map((input) => ({ input })),
    );
    await fleet.allEnded();
    await tolerant.stop();
    expect(tolerant.stderr()).toContain('rejected too late');
    const { jobs } = await checkLedgers(mulligan, { acknowledged: [id, ...after.map((job) => job.id)] });
    expect(jobs.filter(({ state, runs }) => state !== 'completed' || runs !== 1)).toEqual([]);
  });
});

describe('a worker that is stopped in the middle of 10,000 runs', () => {
  it('hands all of them back uncounted, ends, and warns of no leak', async () => {
    await using fleet = await Fleet.open();
    const { mulligan } = fleet;
    const count = 10_000;
    const acknowledged = (
      await mulligan.enqueueMany(
        waitsForStop,
        Array(count)
          .fill(null)
          .map((input) => ({ input })),
        hardy,
      )
    ).map(({ id }) => id);
    const worker = await fleet.start({ concurrency: count, lease: '60s' }, { execArgv: ['--trace-warnings'] });
    await fleet.until(async () => (await mulligan.stats()).states.running === count);
    await worker.stop('0s');
    expect(worker.child.exitCode).toBe(0);
    expect(worker.stderr()).toBe('');
    const stopped = await mulligan.stats();
    expect(stopped.states).toMatchObject({ ready: count, running: 0, scheduled: 0, retrying: 0 });
    expect(stopped.totals.runs).toMatchObject({ released: count, completed: 0, failed: 0, crashed: 0 });
    expect(stopped.totalRetries).toBe(0);

    await fleet.start({ concurrency: 100 });
    await fleet.allEnded();
    const { jobs } = await checkLedgers(mulligan, { acknowledged });
    expect(jobs.filter(({ attempts, runs }) => attempts !== 1 || runs !== 2)).toEqual([]);
  });
});
