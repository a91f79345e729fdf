import { rotate } from '../harness/measure.ts';
import type { Guard } from '../harness/peer.ts';
import type { Metric, Workload } from '../harness/workload.ts';
import { w1 } from './w1-enqueue.ts';
import { w2 } from './w2-drain.ts';
import { w3 } from './w3-retry.ts';

/** What is compared, of the workloads that are run with each guard. */
const rate = { unit: '/s', better: 'higher' } as const;
const cost = { unit: 'µs', better: 'lower' } as const;
const COMPARED = [
  { workload: w1, key: 'single', title: 'single enqueues', ...rate },
  { workload: w1, key: 'bulk', title: 'bulk enqueues', ...rate },
  { workload: w2, key: 'one', title: 'drain', ...rate },
  { workload: w2, key: 'two', title: 'drain by two', ...rate },
  { workload: w2, key: 'cpu', title: 'CPU time per job', ...cost },
  { workload: w3, key: 'runs', title: 'retry churn', ...rate },
  { workload: w3, key: 'cpu', title: 'CPU time per run of the churn', ...cost },
];
const guards = ['none', 'soft', 'gate'] as const satisfies readonly Guard[];

export const w12: Workload = {
  id: 'W12',
  title: 'Healthy gates',
  what:
    'W1, W2 and W3 with all jobs behind the gate of one resource, with nothing set (the soft gate of their name), and with ' +
    '`resource: false`, which leaves the gates out. The three take turns; ratios are to the value without gates of the same round. ' +
    'CPU time is of worker and server; it says more than a rate where the machine has other work.',
  peers: ['mulligan-memory', 'mulligan-sqlite', 'mulligan-postgres'],
  ownRounds: true,
  notQuick: 'it is W1 to W3, three times',
  metrics: COMPARED.flatMap(({ workload: { id }, key, title, unit, better }): Metric[] => [
    { key: `${id}-${key}-none`, title: `${title} without gates`, unit, better },
    { key: `${id}-${key}-soft`, title: `${title}, nothing set`, unit: 'x', better },
    { key: `${id}-${key}-gate`, title: `${title}, healthy gate`, unit: 'x', better },
  ]),
  async run(stage) {
    for (let round = 0; round < stage.rounds; round++) {
      for (const workload of [w1, w2, w3]) {
        const values = new Map<string, number>();
        for (const guard of rotate(guards, round)) {
          stage.say(`round ${round + 1}: ${workload.id}, ${guard}`);
          const part = stage.guarded(guard);
          await workload.run(part);
          await part.close();
          for (const note of part.notes) if (note.startsWith('ended')) stage.note(`${workload.id}, ${guard}: ${note}`);
          for (const [key, [value]] of Object.entries(part.values)) values.set(`${key}-${guard}`, value as number);
        }
        for (const { key } of COMPARED.filter((one) => one.workload === workload)) {
          const without = values.get(`${key}-none`);
          if (without === undefined) continue;
          const line = guards.map((guard) => `${guard} ${Math.round(values.get(`${key}-${guard}`) ?? 0)}`).join(', ');
          stage.say(`round ${round + 1}: ${workload.id} ${key}: ${line}`);
          stage.set(`${workload.id}-${key}-none`, without);
          for (const guard of ['soft', 'gate']) {
            stage.set(`${workload.id}-${key}-${guard}`, (values.get(`${key}-${guard}`) ?? Number.NaN) / without);
          }
        }
      }
    }
  },
};
