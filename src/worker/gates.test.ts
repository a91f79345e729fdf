import { describe, expect, it } from 'vitest';
import { defineJob } from '../definition.ts';
import { closedGate } from '../gate/index.ts';
import { Mulligan } from '../mulligan.ts';
import { MemoryStore } from '../store/memory/store.ts';
import type { ClaimedJob, GateAnswer, WorkerReport } from '../store/store.ts';
import { testQueue } from '../testing/queue.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { ActiveJob } from './active-job.ts';
import { Gates } from './gates.ts';
import { Lease } from './lease.ts';

/** What a worker reports on one completed run of this job. */
async function reportOn(job: Partial<ClaimedJob>): Promise<WorkerReport[]> {
  const clock = new VirtualClock();
  const sent: WorkerReport[] = [];
  const nothing = (): void => {};
  const gates = new Gates({
    store: {
      report: async (reports): Promise<GateAnswer[]> => {
        sent.push(...reports);
        return [];
      },
    },
    clock,
    worker: 'w',
    definitions: new Map(),
    onChange: nothing,
    onShut: nothing,
    onAdmitted: nothing,
    onAnswered: nothing,
    onError: nothing,
  });
  const claimed = {
    id: 'job-1',
    name: 'call',
    resource: 'api',
    lane: 'retry',
    run: 2,
    attempts: 2,
    worker: 'w',
  } as const;
  const rest = { claimedAt: 0, gateEpoch: 0, spent: null, ...job };
  const active = new ActiveJob(new Lease({ ...claimed, ...rest } as ClaimedJob, 30_000, 0, clock));
  expect(gates.ended(active, { kind: 'completed' })).toBeNull();
  await clock.advance(5_000);
  gates.stop();
  return sent;
}

describe('the retry budget of a gate is charged', () => {
  it('for a retry after a failure by the environment', async () => {
    const [sent] = await reportOn({ spent: { at: 0, count: 1 } });
    expect(sent?.report).toMatchObject({ alive: 1, retries: 1 });
  });

  it('not for a retry after a failure by its own fault', async () => {
    const [sent] = await reportOn({ spent: null });
    expect(sent?.report).toMatchObject({ alive: 1, retries: 0 });
  });
});

it('a question that the answer to another one leads to is sent as well', async () => {
  const clock = new VirtualClock();
  const nothing = (): void => {};
  const gates = new Gates({
    store: {
      report: async (reports): Promise<GateAnswer[]> =>
        reports.map(({ gate }) => ({ gate, state: closedGate(clock.now()), now: clock.now(), events: [] })),
    },
    clock,
    worker: 'w',
    definitions: new Map(),
    onChange: nothing,
    onShut: nothing,
    onAdmitted: nothing,
    onAnswered: nothing,
    onError: nothing,
  });
  const lease = new Lease(
    { resource: 'api', name: 'call', spent: { at: 0, count: 1 } } as ClaimedJob,
    30_000,
    0,
    clock,
  );
  let answered = 0;
  const askFor = async (times: number): Promise<void> => {
    for (let i = 0; i < times; i++) {
      await gates.refundOf(lease);
      answered++;
    }
  };
  const asking = askFor(5);
  await clock.advance(1_000);
  expect(answered).toBe(5);
  await asking;
});

describe('after five failures in a row, buffered jobs of the resource', () => {
  /** Thirty calls are refused, and ten other jobs wait beside them. Reports are answered after so long. Answers how many have run at each time. */
  async function refuse(answerMs: number, times: readonly number[]): Promise<{ call: number; other: number }[]> {
    const clock = new VirtualClock();
    class SlowReports extends MemoryStore {
      override async report(...args: Parameters<MemoryStore['report']>): Promise<GateAnswer[]> {
        if (isDown) await new Promise<void>((resolve) => clock.after(answerMs, resolve));
        return super.report(...args);
      }
    }
    let isDown = false;
    const ran = { call: 0, other: 0 };
    const call = defineJob<null>({
      name: 'call',
      resource: 'api',
      run() {
        if (!isDown) return;
        ran.call++;
        throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
      },
    });
    const other = defineJob<null>({ name: 'other', resource: false, run: () => void ran.other++ });
    const jobs = (count: number): { input: null }[] => Array.from({ length: count }, () => ({ input: null }));
    const options = { jobs: [call, other], clock, log: () => {} };
    await using mulligan = await Mulligan.open(new SlowReports({ clock }), options);
    const worker = mulligan.work({ concurrency: 5 });
    // It learns that these jobs are short, and claims them ahead from then on.
    await mulligan.enqueueMany(call, jobs(20));
    await clock.advance(10_000);
    isDown = true;
    await Promise.all([mulligan.enqueueMany(call, jobs(30)), mulligan.enqueueMany(other, jobs(10))]);
    const seen: { call: number; other: number }[] = [];
    for (const [index, at] of times.entries()) {
      await clock.advance(at - (times[index - 1] ?? 0));
      seen.push({ ...ran });
    }
    const stopping = worker.stop();
    await clock.advance(60_000);
    await stopping;
    return seen;
  }

  it('wait for the answer to the report, and those of others do not', async () => {
    expect(await refuse(300, [200, 400])).toEqual([
      { call: 5, other: 10 },
      { call: 10, other: 10 },
    ]);
  });

  it('wait for a second when no answer comes', async () => {
    expect(await refuse(10_000, [900, 1_100])).toEqual([
      { call: 5, other: 10 },
      { call: 10, other: 10 },
    ]);
  });
});

it('the outage that a soft gate sees ends when all jobs have completed and none runs any more', async () => {
  let isDown = true;
  const job = defineJob<number>({
    name: 'call',
    retry: { maxAttempts: 5, backoff: { kind: 'fixed', base: '2s' }, jitter: 'none' },
    run() {
      if (isDown) throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    },
  });
  await using queue = await testQueue({ jobs: [job], work: { concurrency: 20 } });
  const { mulligan, clock } = queue;
  const phase = async () => (await mulligan.gates.show('call')).gate.phase;
  await mulligan.enqueueMany(
    job,
    Array.from({ length: 10 }, (_, input) => ({ input })),
  );
  await clock.advance(3_000);
  expect(await phase()).toBe('open');
  isDown = false;
  await clock.advance(10_000);
  expect((await mulligan.stats()).states.completed).toBe(10);
  await clock.advance(60_000);
  expect(await phase()).toBe('closed');
});
