import { describe, expect, it } from 'vitest';
import { readExposition } from '../../test/support/exposition.ts';
import { defineJob } from '../definition.ts';
import { ConfigError } from '../errors.ts';
import { Mulligan } from '../mulligan.ts';
import { Unrecoverable } from '../retry/control-errors.ts';
import { claimOne, enqueueOne } from '../store/conformance/builders.ts';
import { MemoryStore } from '../store/memory/store.ts';
import { type TestQueue, testQueue } from '../testing/queue.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { Metrics } from './metrics.ts';

/** The value of one series; every label has to be named. */
async function value(mulligan: Mulligan, sample: string, labels: Record<string, string>): Promise<number | undefined> {
  for (const { samples } of readExposition(await mulligan.metrics()).values()) {
    const found = samples.find(
      (one) =>
        one.name === sample &&
        Object.keys(one.labels).length === Object.keys(labels).length &&
        Object.entries(labels).every(([label, text]) => one.labels[label] === text),
    );
    if (found) return found.value;
  }
  return undefined;
}

const retry = { maxAttempts: 3, backoff: { kind: 'fixed', base: '2s' }, jitter: 'none' } as const;

/** Fails as often as its input says, then completes. */
const flaky = defineJob<number>({
  name: 'flaky',
  retry,
  run(failures, { attempt }) {
    if (attempt <= failures) throw new Error('no');
  },
});
const hopeless = defineJob<null>({
  name: 'hopeless',
  queue: 'other',
  retry,
  run() {
    throw new Unrecoverable('never');
  },
});
const sleepy = defineJob<null>({
  name: 'sleepy',
  retry,
  run(_, { run, snooze }) {
    if (run === 1) throw new Error('no');
    if (run < 4) snooze('1m');
  },
});

async function drained(): Promise<TestQueue> {
  const queue = await testQueue({
    jobs: [flaky, hopeless, sleepy],
    work: { queues: ['default', 'other'] },
    retention: { completed: null },
  });
  await queue.mulligan.enqueueMany(flaky, [{ input: 0 }, { input: 1 }, { input: 2 }, { input: 9 }]);
  await queue.mulligan.enqueue(hopeless, null);
  await queue.mulligan.enqueue(sleepy, null);
  await queue.drain();
  return queue;
}

const own = { queue: 'default', name: 'flaky' };

describe('the metrics of a queue that has run dry', () => {
  it('are valid text in Prometheus’ format, each family announced once', async () => {
    await using queue = await drained();
    const families = readExposition(await queue.mulligan.metrics());
    expect(Object.fromEntries([...families].map(([name, { kind }]) => [name, kind]))).toEqual({
      mulligan_runs_total: 'counter',
      mulligan_retries_total: 'counter',
      mulligan_retry_exhausted_total: 'counter',
      mulligan_dead_total: 'counter',
      mulligan_leases_lost_total: 'counter',
      mulligan_settle_failures_total: 'counter',
      mulligan_retry_latency_seconds: 'histogram',
      mulligan_run_duration_seconds: 'histogram',
      mulligan_wait_seconds: 'histogram',
      mulligan_gate_changes_total: 'counter',
      mulligan_limited_total: 'counter',
      mulligan_claim_duration_seconds: 'histogram',
      mulligan_settle_batch_size: 'histogram',
      mulligan_enqueued_total: 'counter',
      mulligan_gates: 'gauge',
      mulligan_gates_held: 'gauge',
      mulligan_gates_pinned: 'gauge',
      mulligan_gate_retry_budget: 'gauge',
      mulligan_limit_jobs: 'gauge',
      mulligan_schedules: 'gauge',
      mulligan_schedules_due: 'gauge',
      mulligan_schedule_lateness_seconds: 'gauge',
      mulligan_queue_paused: 'gauge',
      mulligan_workers: 'gauge',
      mulligan_worker_places: 'gauge',
      mulligan_operations: 'gauge',
      mulligan_jobs: 'gauge',
    });
  });

  it('count each outcome in the batch that carried it, and every claim by its kind', async () => {
    await using queue = await drained();
    const runs = Object.values((await queue.mulligan.stats()).totals.runs).reduce((sum, n) => sum + n, 0);
    expect(await value(queue.mulligan, 'mulligan_settle_batch_size_sum', {})).toBe(runs);
    expect(await value(queue.mulligan, 'mulligan_settle_batch_size_count', {})).toBeGreaterThan(1);
    expect(await value(queue.mulligan, 'mulligan_claim_duration_seconds_count', { claim: 'ordinary' })).toBeGreaterThan(
      3,
    );
    expect(await value(queue.mulligan, 'mulligan_claim_duration_seconds_count', { claim: 'limited' })).toBeUndefined();
  });

  it('count what was enqueued, and the workers and their places', async () => {
    await using queue = await drained();
    expect(await value(queue.mulligan, 'mulligan_enqueued_total', own)).toBe(4);
    expect(await value(queue.mulligan, 'mulligan_workers', { state: 'alive' })).toBe(1);
    expect(await value(queue.mulligan, 'mulligan_workers', { state: 'missing' })).toBe(0);
    expect(await value(queue.mulligan, 'mulligan_worker_places', { queue: 'other' })).toBe(10);
  });

  it('count every counted run after the first as a retry', async () => {
    await using queue = await drained();
    // 1 of the second job, 2 of the third, 2 of the fourth.
    expect(await value(queue.mulligan, 'mulligan_retries_total', own)).toBe(5);
    expect(await value(queue.mulligan, 'mulligan_retries_total', { queue: 'other', name: 'hopeless' })).toBeUndefined();
    // It failed once, snoozed twice and then completed.
    expect(await value(queue.mulligan, 'mulligan_retries_total', { queue: 'default', name: 'sleepy' })).toBe(1);
  });

  it('agree with the statistics of the store', async () => {
    await using queue = await drained();
    const { totalRetries, totals } = await queue.mulligan.stats();
    const retries = await Promise.all(
      ['flaky', 'sleepy'].map((name) => value(queue.mulligan, 'mulligan_retries_total', { queue: 'default', name })),
    );
    expect(retries.reduce<number>((sum, one) => sum + (one ?? 0), 0)).toBe(totalRetries);
    for (const outcome of ['completed', 'failed'] as const) {
      const names = ['flaky', 'sleepy', 'hopeless'].map((name) => ({
        queue: name === 'hopeless' ? 'other' : 'default',
        name,
        outcome,
      }));
      const counted = await Promise.all(names.map((labels) => value(queue.mulligan, 'mulligan_runs_total', labels)));
      expect(counted.reduce<number>((sum, one) => sum + (one ?? 0), 0)).toBe(totals.runs[outcome]);
    }
  });

  it('count the jobs that died, by reason, and those that ran out of attempts apart', async () => {
    await using queue = await drained();
    const labels = { queue: 'other', name: 'hopeless' };
    expect(await value(queue.mulligan, 'mulligan_retry_exhausted_total', own)).toBe(1);
    expect(await value(queue.mulligan, 'mulligan_dead_total', { ...own, reason: 'exhausted' })).toBe(1);
    expect(await value(queue.mulligan, 'mulligan_retry_exhausted_total', labels)).toBeUndefined();
    expect(await value(queue.mulligan, 'mulligan_dead_total', { ...labels, reason: 'unrecoverable' })).toBe(1);
  });

  it('show how long retried jobs waited out their backoff', async () => {
    await using queue = await drained();
    const name = 'mulligan_retry_latency_seconds';
    expect(await value(queue.mulligan, `${name}_count`, own)).toBe(5);
    expect(await value(queue.mulligan, `${name}_sum`, own)).toBe(10);
    expect(await value(queue.mulligan, `${name}_bucket`, { ...own, le: '1' })).toBe(0);
    expect(await value(queue.mulligan, `${name}_bucket`, { ...own, le: '5' })).toBe(5);
    expect(await value(queue.mulligan, `${name}_bucket`, { ...own, le: '+Inf' })).toBe(5);
  });

  it('count a backoff once, however often the run after it is given back', async () => {
    await using queue = await drained();
    const name = 'mulligan_retry_latency_seconds';
    const labels = { queue: 'default', name: 'sleepy' };
    expect(await value(queue.mulligan, `${name}_count`, labels)).toBe(1);
    expect(await value(queue.mulligan, `${name}_sum`, labels)).toBe(2);
  });

  it('count no backoff for a redriven job: it waited for an operator', async () => {
    const doomed = defineJob<null>({
      name: 'doomed',
      retry,
      run(_, { attempt }) {
        throw attempt === 1 ? new Error('no') : new Unrecoverable('never');
      },
    });
    await using queue = await testQueue({ jobs: [doomed] });
    const { id } = await queue.mulligan.enqueue(doomed, null);
    await queue.drain();
    expect(await queue.mulligan.dead.redrive({ ids: [id], keepAttempts: true })).toMatchObject({ ids: [id] });
    await queue.drain();
    const labels = { queue: 'default', name: 'doomed' };
    expect(await value(queue.mulligan, 'mulligan_retries_total', labels)).toBe(2);
    expect(await value(queue.mulligan, 'mulligan_retry_latency_seconds_count', labels)).toBe(1);
  });

  it('count finished runs by outcome, the uncounted ones too', async () => {
    await using queue = await drained();
    const runs = (name: string, outcome: string) =>
      value(queue.mulligan, 'mulligan_runs_total', { queue: 'default', name, outcome });
    expect(await runs('flaky', 'failed')).toBe(6);
    expect(await runs('flaky', 'completed')).toBe(3);
    expect(await runs('sleepy', 'snoozed')).toBe(2);
    expect(await runs('sleepy', 'completed')).toBe(1);
  });

  it('show the jobs of the store by state', async () => {
    await using queue = await drained();
    const { id } = await queue.mulligan.enqueue(flaky, 0, { delay: '1h' });
    await queue.mulligan.jobs.cancel(id);
    await queue.mulligan.enqueue(flaky, 0, { delay: '1h' });
    const jobs = async (state: string) => value(queue.mulligan, 'mulligan_jobs', { ...own, state });
    expect(await jobs('completed')).toBe(3);
    expect(await jobs('dead')).toBe(1);
    expect(await jobs('scheduled')).toBe(1);
    expect(await jobs('cancelled')).toBe(1);
    expect(await jobs('ready')).toBe(0);
  });
});

describe('the runs of a job whose retries wait in a queue of their own', () => {
  it('are all counted in the queue it was enqueued to, as in the statistics', async () => {
    const apart = defineJob<null>({
      name: 'apart',
      queue: 'mail',
      retryQueue: 'mail.retry',
      retry,
      run(_, { attempt }) {
        if (attempt === 1) throw new Error('no');
      },
    });
    await using queue = await testQueue({ jobs: [apart] });
    await queue.mulligan.enqueue(apart, null);
    await queue.drain();
    const labels = { queue: 'mail', name: 'apart' };
    expect((await queue.mulligan.stats()).queues.mail).toMatchObject({ totalRetries: 1 });
    expect(await value(queue.mulligan, 'mulligan_retries_total', labels)).toBe(1);
    expect(await value(queue.mulligan, 'mulligan_runs_total', { ...labels, outcome: 'completed' })).toBe(1);
    expect(await value(queue.mulligan, 'mulligan_wait_seconds_count', labels)).toBe(2);
    const ofRuns = (await queue.mulligan.metrics()).split('\n').filter((line) => line.includes('name="apart"'));
    expect(ofRuns.join('\n')).not.toContain('mail.retry');
  });
});

describe('the time a run took, and the time a due job waited', () => {
  it('are measured in seconds', async () => {
    const clock = new VirtualClock();
    const slow = defineJob<null>({ name: 'slow', run: () => new Promise<void>((done) => clock.after(3_000, done)) });
    await using mulligan = await Mulligan.open(new MemoryStore({ clock }), { clock, jobs: [slow], log: () => {} });
    await mulligan.enqueueMany(slow, [{ input: null }, { input: null }]);
    await clock.advance(10_000);
    const worker = mulligan.work({ concurrency: 1 });
    await clock.advance(10_000);
    const labels = { queue: 'default', name: 'slow' };
    expect(await value(mulligan, 'mulligan_run_duration_seconds_sum', labels)).toBe(6);
    expect(await value(mulligan, 'mulligan_run_duration_seconds_count', labels)).toBe(2);
    // The first waited 10 s, the second 3 s more.
    expect(await value(mulligan, 'mulligan_wait_seconds_sum', labels)).toBe(23);
    await worker.stop();
  });
});

describe('what went wrong on our side', () => {
  it('is counted: leases lost, and outcomes that could not be recorded', async () => {
    const store = new MemoryStore({ clock: new VirtualClock() });
    await enqueueOne(store, { name: 'job' });
    const job = await claimOne(store);
    const metrics = new Metrics('mulligan');
    metrics.leaseLost(job);
    metrics.leaseLost(job);
    metrics.settleFailed(job);
    const families = readExposition(metrics.render());
    const labels = { queue: 'default', name: 'job' };
    expect(families.get('mulligan_leases_lost_total')?.samples).toMatchObject([{ labels, value: 2 }]);
    expect(families.get('mulligan_settle_failures_total')?.samples).toMatchObject([{ labels, value: 1 }]);
  });
});

it('a deferred run has an outcome of its own, is no counted retry, and has waited out its backoff', async () => {
  const store = new MemoryStore({ clock: new VirtualClock() });
  await enqueueOne(store, { name: 'job' });
  const job = { ...(await claimOne(store)), lane: 'retry', attempts: 2, previousDelayMs: 2_000 } as const;
  const metrics = new Metrics('mulligan');
  const { id, run, worker } = job;
  const ended = { id, run, worker, error: null, startedAt: 0, endedAt: 5 };
  const decision = { kind: 'defer', delayMs: 100, lane: 'retry', rule: 'gate open' } as const;
  metrics.settled(job, { ...ended, outcome: 'deferred', decision });
  const families = readExposition(metrics.render());
  expect(families.get('mulligan_runs_total')?.samples).toMatchObject([{ labels: { outcome: 'deferred' }, value: 1 }]);
  expect(families.get('mulligan_retries_total')?.samples).toEqual([]);
  expect(families.get('mulligan_retry_latency_seconds')?.samples.at(-1)).toMatchObject({ value: 1 });
});

it('gates are counted by phase, all keys of a parent as one, and each named gate has its retry budget', async () => {
  const store = new MemoryStore({ clock: new VirtualClock() });
  await using mulligan = await Mulligan.open(store, { log: () => {} });
  await mulligan.gates.open('smtp');
  await mulligan.gates.open('webhook/a.example');
  await mulligan.gates.open('webhook/b.example');
  await mulligan.gates.close('webhook/c.example');
  const families = readExposition(await mulligan.metrics());
  const gates = families.get('mulligan_gates')?.samples.map(({ labels, value: n }) => [labels.gate, labels.phase, n]);
  expect(gates?.sort()).toEqual([
    ['smtp', 'closed', 0],
    ['smtp', 'open', 1],
    ['smtp', 'ramp', 0],
    ['webhook/*', 'closed', 1],
    ['webhook/*', 'open', 2],
    ['webhook/*', 'ramp', 0],
  ]);
  expect(families.get('mulligan_gate_retry_budget')?.samples).toMatchObject([{ labels: { gate: 'smtp' }, value: 10 }]);
});

describe('the prefix', () => {
  it('opens every name', async () => {
    await using queue = await testQueue({ jobs: [flaky], metricsPrefix: 'acme_jobs' });
    await queue.mulligan.enqueue(flaky, 1);
    await queue.drain();
    const names = [...readExposition(await queue.mulligan.metrics()).keys()];
    expect(names).toHaveLength(27);
    for (const name of names) expect(name).toMatch(/^acme_jobs_[a-z]/);
  });

  it.each(['', '9lives', 'a-b', 'a b', 'a{', 5])('cannot be %j', async (metricsPrefix) => {
    const opening = Mulligan.open('memory:', { metricsPrefix: metricsPrefix as string });
    await expect(opening).rejects.toThrow(ConfigError);
    await expect(opening).rejects.toThrow('Mulligan.open: metricsPrefix: expected letters, digits and underscores');
  });
});

it('a thousand made-up names do not make the metrics grow for ever', async () => {
  const store = new MemoryStore({ clock: new VirtualClock() });
  const metrics = new Metrics('mulligan');
  await enqueueOne(store);
  const job = await claimOne(store);
  for (let n = 0; n < 3_000; n++) metrics.leaseLost({ ...job, name: `made-up-${n}` });
  const { samples } = readExposition(metrics.render()).get('mulligan_leases_lost_total') ?? {};
  expect(samples).toHaveLength(1_001);
  expect(samples?.reduce((sum, sample) => sum + sample.value, 0)).toBe(3_000);
});
