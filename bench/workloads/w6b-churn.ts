import { sleep, wall } from '../harness/measure.ts';
import type { OpenPeer } from '../harness/peer.ts';
import { addUp } from '../harness/recorder.ts';
import type { Stage, Workload } from '../harness/workload.ts';

const BACKLOG = 5_000;
const PER_CALL = 500;
const NUMBERS = 100_000;
const WARM_MS = 2_000;

export const w6b: Workload = {
  id: 'W6b',
  title: 'Churn',
  what:
    `Enqueue and drain side by side for a minute, the producer keeping ${BACKLOG.toLocaleString('en')} jobs waiting: the rate of the ` +
    'last five seconds to that of the first five. Then again while another connection holds a snapshot open, so that ' +
    'the engine may not clean up behind the queue. Checked: each job ran exactly once.',
  notQuick: 'it takes two minutes per peer',
  metrics: [
    { key: 'rate', title: 'rate', unit: '/s', better: 'higher' },
    { key: 'ratio', title: 'last to first', unit: 'x', better: 'higher' },
    { key: 'heldRate', title: 'rate, snapshot held', unit: '/s', better: 'higher' },
    { key: 'heldRatio', title: 'last to first, snapshot held', unit: 'x', better: 'higher' },
  ],
  async run(stage) {
    const queue = await stage.open();
    const plain = await churn(stage, queue);
    stage.set('rate', plain.rate);
    stage.set('ratio', plain.ratio);
    await queue.reset();
    const release = await queue.holdSnapshot();
    if (release === null) return stage.note(`${stage.peer.engine} has no snapshots to hold`);
    const held = await churn(stage, queue);
    await release();
    stage.set('heldRate', held.rate);
    stage.set('heldRatio', held.ratio);
  },
};

async function churn(stage: Stage, queue: OpenPeer): Promise<{ rate: number; ratio: number }> {
  const lastsMs = stage.size(60_000, 6_000);
  const spanMs = stage.size(5_000, 1_000);
  const crew = await stage.crew(1, queue, { jobs: NUMBERS });
  await crew.go();
  let enqueued = 0;
  const samples: { at: number; completed: number }[] = [];
  const startedAt = wall();
  const endsAt = startedAt + WARM_MS + lastsMs;
  while (wall() < endsAt) {
    const { completed } = crew.progress();
    samples.push({ at: wall(), completed });
    if (enqueued - completed >= BACKLOG) {
      await sleep(2);
      continue;
    }
    const from = enqueued;
    await queue.enqueueBulk(
      Array.from({ length: PER_CALL }, (_, n) => ({ n: (from + n) % NUMBERS, kind: 'noop' as const, sentAt: 0 })),
    );
    enqueued += PER_CALL;
  }
  const rateIn = (from: number, to: number): number => {
    const inside = samples.filter(({ at }) => at >= from && at <= to);
    const [first, last] = [inside[0], inside.at(-1)];
    if (!first || !last || last.at === first.at) return 0;
    return ((last.completed - first.completed) * 1_000) / (last.at - first.at);
  };
  const whole = rateIn(startedAt + WARM_MS, endsAt);
  const first = rateIn(startedAt + WARM_MS, startedAt + WARM_MS + spanMs);
  const last = rateIn(endsAt - spanMs, endsAt);
  const all = await crew.until(({ completed }) => completed >= enqueued, wall() + 30_000);
  const { completed } = addUp(await crew.stop(), NUMBERS);
  for (let n = 0; n < NUMBERS; n++) {
    const expected = Math.floor(enqueued / NUMBERS) + (n < enqueued % NUMBERS ? 1 : 0);
    const runs = completed[n] as number;
    if (runs > expected || (all && runs !== expected))
      throw new Error(`wrong: number ${n} ran ${runs} times, expected ${expected}`);
  }
  return { rate: whole, ratio: first === 0 ? 0 : last / first };
}
