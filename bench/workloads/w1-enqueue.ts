import { chunks, inFlight, wall } from '../harness/measure.ts';
import type { OpenPeer } from '../harness/peer.ts';
import { jobs, type Workload } from '../harness/workload.ts';

const CALLERS = 64;
const PER_CALL = 1_000;
/** So that a queue's code is compiled by then. */
const WARM_MS = 1_000;

export const w1: Workload = {
  id: 'W1',
  title: 'Enqueue',
  what:
    `Jobs enqueued with one call each, ${CALLERS} calls in flight, after a second of the same; and in bulk, ${PER_CALL} per call. No worker runs. ` +
    'Checked: as many jobs wait as were enqueued.',
  metrics: [
    { key: 'single', title: `one call each, ${CALLERS} in flight`, unit: '/s', better: 'higher' },
    { key: 'bulk', title: `bulk by ${PER_CALL.toLocaleString('en')}`, unit: '/s', better: 'higher' },
  ],
  async run(stage) {
    const queue = await stage.open();
    const capMs = stage.size(30_000, 1_000);
    const enqueueOne = (n: number): Promise<void> => queue.enqueueOne({ n, kind: 'noop', sentAt: 0 });
    const warm = await inFlight(stage.size(20_000, 100), CALLERS, wall() + WARM_MS, enqueueOne);

    const startedAt = wall();
    const single = await inFlight(stage.size(20_000, 1_000), CALLERS, startedAt + capMs, enqueueOne);
    stage.set('single', (single * 1_000) / (wall() - startedAt));
    await check(queue, warm + single);

    await queue.reset();
    const calls = chunks(jobs(stage.size(50_000, 5_000)), PER_CALL);
    const bulkAt = wall();
    let bulk = 0;
    for (const call of calls) {
      if (wall() > bulkAt + capMs) break;
      await queue.enqueueBulk(call);
      bulk += call.length;
    }
    stage.set('bulk', (bulk * 1_000) / (wall() - bulkAt));
    await check(queue, bulk);
  },
};

async function check(queue: OpenPeer, expected: number): Promise<void> {
  const { waiting } = await queue.counts();
  if (waiting !== expected) throw new Error(`wrong: ${waiting} jobs wait, ${expected} were enqueued`);
}
