import { median, rotate } from '../harness/measure.ts';
import type { Partitioned } from '../harness/peer.ts';
import type { Workload } from '../harness/workload.ts';

/** How many jobs a claim takes, and how many claims of that size are timed. */
const SIZES = [
  { limit: 1, claims: 100 },
  { limit: 10, claims: 100 },
  { limit: 100, claims: 60 },
];
const WARM_CLAIMS = 5;

export const w10: Workload = {
  id: 'W10',
  title: 'Claims among partitions',
  what:
    'One queue with 1,000,000 waiting jobs that lie in 100,000 partitions, one per resource; 99,000 of the resources are held, ' +
    'so that their jobs may not start. Beside it a queue with as many jobs in one partition (10,000 jobs and 1,000 partitions ' +
    'in a quick run). Claims through the store contract, in turn on both; the claimed jobs stay claimed. The median time of a ' +
    'claim, and its ratio to the single partition. ' +
    'Checked: each claim got as many jobs as it asked for, and none of a resource that is held.',
  peers: ['mulligan-sqlite', 'mulligan-postgres'],
  ownRounds: true,
  notQuick: 'filling takes a minute per store',
  metrics: SIZES.flatMap(({ limit }) => [
    { key: `one${limit}`, title: `claim of ${limit}, one partition`, unit: 'ms', better: 'lower' } as const,
    { key: `many${limit}`, title: `claim of ${limit}, many partitions`, unit: 'ms', better: 'lower' } as const,
    { key: `ratio${limit}`, title: `claim of ${limit}, many to one`, unit: 'x', better: 'lower' } as const,
  ]),
  async run(stage) {
    const jobs = stage.size(1_000_000, 10_000);
    const partitions = stage.size(100_000, 1_000);
    const held = stage.size(99_000, 100);
    const open = async (part: string, count: number, holds: number): Promise<Partitioned> => {
      const queue = await stage.open(part);
      if (queue.partitions === undefined) throw new Error('it has no partitions');
      stage.say(`filling ${jobs} jobs into ${count} partitions, ${holds} of them held`);
      const startedAt = performance.now();
      await queue.partitions.fill(jobs, count, holds);
      await queue.settleDown(true);
      stage.say(`filled in ${Math.round((performance.now() - startedAt) / 1_000)} s`);
      return queue.partitions;
    };
    const both = [
      { key: 'one', partitions: await open('one', 1, 0) },
      { key: 'many', partitions: await open('many', partitions, held) },
    ];
    for (const { limit, claims } of SIZES) {
      const times: Record<string, number[]> = { one: [], many: [] };
      for (let n = 0; n < claims + WARM_CLAIMS; n++) {
        for (const { key, partitions } of rotate(both, n)) times[key]?.push(await partitions.claim(limit));
      }
      const [one = Number.NaN, many = Number.NaN] = ['one', 'many'].map((key) =>
        median(times[key]?.slice(WARM_CLAIMS) ?? []),
      );
      stage.set(`one${limit}`, one);
      stage.set(`many${limit}`, many);
      stage.set(`ratio${limit}`, many / one);
    }
  },
};
