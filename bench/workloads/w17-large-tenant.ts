import { percentile, rotate, sleep, wall } from '../harness/measure.ts';
import type { LimitGuard, OpenPeer } from '../harness/peer.ts';
import { arrive, CONCURRENCY, type Stage, type Workload } from '../harness/workload.ts';
import { waitsOf } from './w5-starvation.ts';

const PER_SECOND = 50;
const SMALL_TENANTS = 999;
/** So that the large tenant alone cannot take all places. */
const AT_ONCE = CONCURRENCY / 2;
const WARM_MS = 2_000;

const keyed: LimitGuard = { keys: SMALL_TENANTS, concurrency: AT_ONCE };
const unkeyed: LimitGuard = { keys: null, concurrency: AT_ONCE };

const PARTS = [50, 99] as const;
const ms = { unit: 'ms', better: 'lower' } as const;
const x = { unit: 'x', better: 'lower' } as const;

export const w17: Workload = {
  id: 'W17',
  title: 'A large tenant',
  what:
    `1,000,000 jobs of one tenant wait (100,000 in memory, 20,000 in a quick run). Jobs of ${SMALL_TENANTS} others arrive, ${PER_SECOND} per second. All take 20 ms; one worker ` +
    `process with concurrency ${CONCURRENCY}, and a limit of ${AT_ONCE} per tenant. How long the jobs of the small tenants wait for their start, and how long in a queue without ` +
    'the large one; the two take turns. Once also with a limit that has no key, so that all tenants share it. Checked: no job of a small tenant ran twice.',
  peers: ['mulligan-memory', 'mulligan-sqlite', 'mulligan-postgres'],
  ownRounds: true,
  notQuick: 'filling takes a minute per store',
  metrics: [
    ...PARTS.map((part) => ({ key: `calm${part}`, title: `without the large one, p${part}`, ...ms })),
    ...PARTS.map((part) => ({ key: `large${part}`, title: `with it, p${part}`, ...ms })),
    ...PARTS.map((part) => ({ key: `ratio${part}`, title: `with to without, p${part}`, ...x })),
    ...PARTS.map((part) => ({ key: `shared${part}`, title: `with it, limit without a key, p${part}`, ...ms })),
  ],
  async run(stage) {
    const byTenant = stage.guarded(keyed);
    const together = stage.guarded(unkeyed);
    const calm = await byTenant.open('calm');
    const large = await crowded(stage, byTenant, 'large');
    const shared = await crowded(stage, together, 'shared');
    const both = [
      { part: 'calm', queue: calm },
      { part: 'large', queue: large },
    ];
    for (let round = 0; round < stage.rounds; round++) {
      const found = new Map<string, readonly number[]>();
      for (const { part, queue } of rotate(both, round)) found.set(part, await waits(stage, byTenant, queue, part));
      for (const part of PARTS) {
        const [without, with_] = both.map((one) => percentile(found.get(one.part) ?? [], part / 100));
        stage.set(`calm${part}`, without as number);
        stage.set(`large${part}`, with_ as number);
        stage.set(`ratio${part}`, (with_ as number) / (without as number));
      }
    }
    const last = await waits(stage, together, shared, 'shared');
    for (const part of PARTS) stage.set(`shared${part}`, percentile(last, part / 100));
    await byTenant.close();
    await together.close();
  },
};

async function crowded(stage: Stage, guarded: Stage, part: string): Promise<OpenPeer> {
  const queue = await guarded.open(part);
  if (queue.limits === undefined) throw new Error('it has no limits');
  const jobs = stage.size(stage.peer.inProcess ? 100_000 : 1_000_000, 20_000);
  stage.say(`filling ${jobs} jobs of one tenant`);
  await (await queue.limits()).crowd(jobs);
  await queue.settleDown(true);
  return queue;
}

/** A worker for as long as it takes: the others have the machine to themselves before and after. */
async function waits(stage: Stage, guarded: Stage, queue: OpenPeer, part: string): Promise<number[]> {
  const count = stage.size(1_000, 100);
  const crew = await guarded.crew(1, queue, { jobs: count }, part);
  await crew.go();
  await sleep(WARM_MS);
  const before = { at: wall(), ...(await queue.counts()) };
  const sent = await arrive(queue, count, PER_SECOND, { kind: 'work' });
  const after = { at: wall(), ...(await queue.counts()) };
  await crew.until(({ timed }) => timed >= count, wall() + stage.size(10_000, 2_000));
  const endedAt = wall();
  // Not dismissed: what it would leave behind would hold its places until its leases end.
  const found = waitsOf(guarded, sent, await crew.stop(), endedAt);
  const ran = Math.round(((before.waiting - after.waiting) * 1_000) / (after.at - before.at));
  stage.say(`${part}: p99 ${percentile(found, 0.99).toFixed(1)} ms; the large tenant's jobs ran ${ran} times a second`);
  for (const note of guarded.notes) stage.note(`${part}: ${note}`);
  return found;
}
