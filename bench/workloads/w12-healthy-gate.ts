import { rotate } from '../harness/measure.ts';
import type { Guard } from '../harness/peer.ts';
import type { Metric, Workload } from '../harness/workload.ts';
import { w1 } from './w1-enqueue.ts';
import { w2 } from './w2-drain.ts';
import { w3 } from './w3-retry.ts';

/** What is compared, of the workloads that are run with each guard. */
const COMPARED = [
  { workload: w1, key: 'single', title: 'single enqueues' },
  { workload: w1, key: 'bulk', title: 'bulk enqueues' },
  { workload: w2, key: 'one', title: 'drain' },
  { workload: w2, key: 'two', title: 'drain by two' },
  { workload: w3, key: 'runs', title: 'retry churn' },
];
const guards: readonly Guard[] = ['none', 'soft', 'gate'];

export const w12: Workload = {
  id: 'W12',
  title: 'Healthy gates',
  what:
    'W1, W2 and W3 with all jobs behind the gate of one resource, with nothing set (the soft gate of their name), and with ' +
    '`resource: false`, which leaves the gates out. The three take turns; ratios are to the rate without gates of the same round.',
  peers: ['mulligan-memory', 'mulligan-sqlite', 'mulligan-postgres'],
  ownRounds: true,
  notQuick: 'it is W1 to W3, three times',
  metrics: COMPARED.flatMap(({ key, title }): Metric[] => [
    { key: `${key}-none`, title: `${title} without gates`, unit: '/s', better: 'higher' },
    { key: `${key}-soft`, title: `${title}, nothing set`, unit: 'x', better: 'higher' },
    { key: `${key}-gate`, title: `${title}, healthy gate`, unit: 'x', better: 'higher' },
  ]),
  async run(stage) {
    for (let round = 0; round < stage.rounds; round++) {
      for (const workload of [w1, w2, w3]) {
        const rates = new Map<string, number>();
        for (const guard of rotate(guards, round)) {
          stage.say(`round ${round + 1}: ${workload.id}, ${guard}`);
          const part = stage.guarded(guard);
          await workload.run(part);
          await part.close();
          for (const note of part.notes) if (note.startsWith('ended')) stage.note(`${workload.id}, ${guard}: ${note}`);
          for (const [key, [rate]] of Object.entries(part.values)) rates.set(`${key}-${guard}`, rate as number);
        }
        for (const { key } of COMPARED.filter((one) => one.workload === workload)) {
          const without = rates.get(`${key}-none`);
          if (without === undefined) continue;
          const line = guards.map((guard) => `${guard} ${Math.round(rates.get(`${key}-${guard}`) ?? 0)}`).join(', ');
          stage.say(`round ${round + 1}: ${workload.id} ${key}: ${line}`);
          stage.set(`${key}-none`, without);
          for (const guard of ['soft', 'gate']) {
            stage.set(`${key}-${guard}`, (rates.get(`${key}-${guard}`) ?? Number.NaN) / without);
          }
        }
      }
    }
  },
};
