import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Fleet, type WorkerProcess } from './fleet.ts';
import { alwaysFails, killer, quick, short, waitsForFile, waitsForStop } from './jobs.ts';

describe('a worker process that is killed', () => {
  it('in the middle of 500 jobs loses none of them: another finishes all, the crashed runs counted on the ledger', async () => {
    await using fleet = await Fleet.open();
    // However fast it is, the victim cannot end these ten.
    const waiting = await fleet.mulligan.enqueueMany(
      waitsForStop,
      Array(10)
        .fill(null)
        .map((input) => ({ input })),
    );
    const shorter = await fleet.mulligan.enqueueMany(
      short,
      Array(490)
        .fill({ ms: 50 })
        .map((input) => ({ input })),
    );
    const ids = [...waiting, ...shorter].map(({ id }) => id);
    const victim = await fleet.start({ concurrency: 20, lease: '1s' });
    await fleet.until(async (mulligan) => (await mulligan.stats()).states.completed >= 100);
    const exit = once(victim.child, 'exit');
    victim.child.kill('SIGKILL');
    await exit;
    const { states } = await fleet.mulligan.stats();
    expect(states.completed).toBeLessThan(500);
    const held = states.running;

    await fleet.start({ concurrency: 20, lease: '1s' });
    await fleet.allEnded();
    const after = await fleet.mulligan.stats();
    expect(after.states.completed).toBe(500);
    expect(after.totals.runs).toMatchObject({ completed: 500, crashed: held });
    expect(held).toBeGreaterThanOrEqual(10);
    for (const id of ids) {
      const runs = await fleet.mulligan.jobs.runs(id);
      expect(runs.filter(({ outcome }) => outcome === 'completed')).toHaveLength(1);
      for (const run of runs.filter(({ outcome }) => outcome === 'crashed')) expect(run.counted).toBe(true);
    }
  });

  it('by one of its jobs each time buries that job as poison after 3 crashes, and completes the others', async () => {
    await using fleet = await Fleet.open();
    const { id } = await fleet.mulligan.enqueue(killer, null);
    await fleet.mulligan.enqueueMany(
      short,
      Array(50)
        .fill({ ms: 5 })
        .map((input) => ({ input })),
    );
    let crashes = 0;
    const keepWorking = async (): Promise<WorkerProcess> => {
      const worker = await fleet.start({ concurrency: 10, lease: '1s' });
      worker.child.once('exit', (_code, signal) => {
        if (signal !== 'SIGKILL' || ++crashes >= 3) return;
        void keepWorking();
      });
      return worker;
    };
    await keepWorking();
    await fleet.until(async () => crashes >= 3);
    await fleet.start({ concurrency: 10, lease: '1s' });
    await fleet.allEnded();
    expect(await fleet.mulligan.jobs.get(id)).toMatchObject({ state: 'dead', deadReason: 'poison', crashes: 3 });
    expect((await fleet.mulligan.stats()).states).toMatchObject({ completed: 50, dead: 1 });
  });
});

describe('several worker processes on one file', () => {
  it('complete each of 20,000 jobs exactly once, and no busy error surfaces', async () => {
    await using fleet = await Fleet.open();
    const workers = await Promise.all(Array.from({ length: 4 }, () => fleet.start({ concurrency: 50 })));
    await fleet.mulligan.enqueueMany(
      quick,
      Array.from({ length: 20_000 }, (_, n) => ({ n })).map((input) => ({ input })),
    );
    await fleet.allEnded();
    const { states, totals } = await fleet.mulligan.stats();
    expect(states.completed).toBe(20_000);
    expect(totals.runs).toEqual({
      completed: 20_000,
      failed: 0,
      crashed: 0,
      snoozed: 0,
      released: 0,
      deferred: 0,
      cancelled: 0,
    });
    const finishers = new Set<string>();
    for (const worker of workers) await worker.stop();
    for (const { messages } of workers) {
      for (const { completed, log } of messages) {
        expect(log).toBeUndefined();
        if (!completed) continue;
        expect(finishers.has(completed.id)).toBe(false);
        finishers.add(completed.id);
      }
    }
    expect(finishers.size).toBe(20_000);
  });

  it('never run more retries at once than maxRetriesInFlight, over 3 processes', async () => {
    await using fleet = await Fleet.open();
    await fleet.mulligan.enqueueMany(
      alwaysFails,
      Array(300)
        .fill(null)
        .map((input) => ({ input })),
    );
    const options = { concurrency: 20, maxRetriesInFlight: 7 };
    await Promise.all(Array.from({ length: 3 }, () => fleet.start(options)));
    let seen = 0;
    await fleet.until(async (mulligan) => {
      const running = await mulligan.jobs.list({ state: 'running', limit: 1_000 });
      const retries = running.filter(({ lane }) => lane === 'retry').length;
      expect(retries).toBeLessThanOrEqual(7);
      seen = Math.max(seen, retries);
      return (await mulligan.stats()).totalRetries > 3_000;
    });
    expect(seen).toBeGreaterThan(0);
  });
});

describe('a worker process that is paused beyond its lease', () => {
  it('finds its late result rejected: it changes nothing', async () => {
    await using fleet = await Fleet.open();
    const { mulligan, path } = fleet;
    const file = `${path}.end`;
    const sleeper = await fleet.start({ concurrency: 1, lease: '3s', name: 'sleeper' }, { tellsStarts: true });
    const { id } = await mulligan.enqueue(waitsForFile, { path: file });
    await sleeper.heard(({ started }) => started?.id === id);
    await fleet.pause(sleeper);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'running', runs: 1 });
    await fleet.start({ concurrency: 1, lease: '3s', name: 'second' });
    await fleet.allEnded();
    const before = { job: await mulligan.jobs.get(id), runs: await mulligan.jobs.runs(id) };
    expect(before.runs).toMatchObject([
      { run: 1, outcome: 'crashed', counted: true, worker: expect.stringMatching(/^sleeper/) },
      { run: 2, outcome: 'completed', worker: expect.stringMatching(/^second/) },
    ]);

    writeFileSync(file, '');
    sleeper.child.kill('SIGCONT');
    const late = await sleeper.heard(({ leaseLost, completed }) => (leaseLost ?? completed) !== undefined);
    expect(late).toEqual({ leaseLost: { id, run: 1 } });
    expect({ job: await mulligan.jobs.get(id), runs: await mulligan.jobs.runs(id) }).toEqual(before);
  });
});

describe('fresh jobs among 20,000 that fail again and again', () => {
  it('keep at least 80% of the starts while both wait, and retries get everything when nothing fresh waits', async () => {
    await using fleet = await Fleet.open();
    await fleet.mulligan.enqueueMany(
      alwaysFails,
      Array(20_000)
        .fill(null)
        .map((input) => ({ input })),
    );
    const churning = await fleet.start({ concurrency: 50 });
    await fleet.until(async (mulligan) => {
      const { totals, totalRetries } = await mulligan.stats();
      return totals.runs.failed - totalRetries >= 20_000;
    });
    await churning.stop();

    // Both lanes wait now.
    await fleet.mulligan.enqueueMany(
      quick,
      Array(2_000)
        .fill({ n: 1 })
        .map((input) => ({ input })),
    );
    const starts: string[] = [];
    const enough = Promise.withResolvers<void>();
    fleet.mulligan.on('started', ({ name }) => {
      if (starts.push(name) >= 6_000) enough.resolve();
    });
    const worker = fleet.mulligan.work({ concurrency: 50, retryShare: 0.2 });
    await enough.promise;
    await worker.stop();

    // The last few fresh jobs share their claim with whatever fills it up; until then both lanes wait.
    const indexes = starts.flatMap((name, index) => (name === 'quick' ? [index] : []));
    expect(indexes).toHaveLength(2_000);
    const whileBothWait = starts.slice(0, indexes[1_900]);
    const fresh = whileBothWait.filter((name) => name === 'quick').length;
    expect(fresh / whileBothWait.length).toBeGreaterThanOrEqual(0.8);
    expect(fresh).toBeLessThan(whileBothWait.length);
    const afterwards = starts.slice((indexes.at(-1) as number) + 1);
    expect(afterwards.length).toBeGreaterThan(3_000);
    expect(new Set(afterwards)).toEqual(new Set(['always-fails']));
  });
});
