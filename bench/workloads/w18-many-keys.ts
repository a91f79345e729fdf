import { median, rotate } from '../harness/measure.ts';
import type { Limited } from '../harness/peer.ts';
import type { Metric, Stage, Workload } from '../harness/workload.ts';

const KEYS = [10, 1_000, 100_000] as const;
const QUICK_KEYS = [10, 1_000, 10_000] as const;
/** How many jobs a claim takes, and how many claims of that size are timed. */
const SIZES = [
  { limit: 1, claims: 60 },
  { limit: 10, claims: 60 },
  { limit: 100, claims: 40 },
];
const WARM_CLAIMS = 5;
const STATES = [
  { key: 'open', title: 'all with room', fullPart: 0 },
  { key: 'full', title: '9 of 10 full', fullPart: 0.9 },
];

export const w18: Workload = {
  id: 'W18',
  title: 'Many keys',
  what:
    '300,000 jobs wait behind a limit, in one queue under 10 keys, in another under 1,000, in a third under 100,000 (30,000 jobs, and 10,000 keys instead of 100,000 in a ' +
    'quick run); once with room for all of the jobs, and once with nine of ten keys full, which were served before the others. Claims through the store ' +
    'contract, in turn on all; the claimed jobs are completed. The median time of a claim, and its ratio to 10 keys. ' +
    'Checked: each claim got as many jobs as it asked for, and none of a key that is full.',
  peers: ['mulligan-memory', 'mulligan-sqlite', 'mulligan-postgres'],
  ownRounds: true,
  notQuick: 'filling takes minutes per store',
  metrics: STATES.flatMap((state) =>
    SIZES.flatMap(({ limit }) =>
      KEYS.flatMap((keys, index): Metric[] => {
        const title = `claim of ${limit}, ${keys.toLocaleString('en')} keys, ${state.title}`;
        const name = `${state.key}-${limit}-${keys}`;
        const time: Metric = { key: name, title, unit: 'ms', better: 'lower' };
        return index === 0
          ? [time]
          : [time, { key: `${name}-ratio`, title: `${title}, to 10`, unit: 'x', better: 'lower' }];
      }),
    ),
  ),
  async run(stage) {
    for (const { key: state, fullPart } of STATES) {
      const queues: { readonly keys: number; readonly limits: Limited }[] = [];
      for (const [index, keys] of KEYS.entries()) {
        const count = stage.size(keys, QUICK_KEYS[index] as number);
        queues.push({ keys, limits: await fill(stage, `${state}${keys}`, count, count * fullPart) });
      }
      for (const { limit, claims } of SIZES) {
        const times = new Map<number, number[]>(KEYS.map((keys) => [keys, []]));
        for (let n = 0; n < stage.size(claims, 5) + WARM_CLAIMS; n++) {
          for (const { keys, limits } of rotate(queues, n)) {
            const tookMs = await limits.claim(limit);
            if (n >= WARM_CLAIMS) times.get(keys)?.push(tookMs);
          }
        }
        const medians = KEYS.map((keys) => median(times.get(keys) ?? []));
        for (const [index, keys] of KEYS.entries()) {
          stage.set(`${state}-${limit}-${keys}`, medians[index] as number);
          if (index > 0)
            stage.set(`${state}-${limit}-${keys}-ratio`, (medians[index] as number) / (medians[0] as number));
        }
      }
    }
  },
};

async function fill(stage: Stage, part: string, keys: number, full: number): Promise<Limited> {
  const queue = await stage.open(part);
  const limits = await queue.limits?.();
  if (limits === undefined) throw new Error('it has no limits');
  const jobs = stage.size(300_000, 30_000);
  stage.say(`filling ${jobs} jobs under ${keys} keys, ${full} of them full`);
  const startedAt = performance.now();
  await limits.fill(jobs, keys, full);
  await queue.settleDown(true);
  stage.say(`filled in ${Math.round((performance.now() - startedAt) / 1_000)} s`);
  return limits;
}
